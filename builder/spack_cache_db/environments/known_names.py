"""The names by which a text is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Tests whether a package has a name, and whether a binary's hash has a prefix;
    default any.
    """

    is_package: Callable[[str], bool] = lambda name: True
    is_hash: Callable[[str], bool] = lambda prefix: True


ANY_NAME = KnownNames()
