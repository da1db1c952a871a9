"""The names that a database has, by which pasted text is read.

In a line of a log, `zlib` is a spec if the database has a package of this name, and
`2feova4` is a hash if one of its binaries has a hash that begins so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The packages and hashes of a database, as two tests.

    Attributes:
        is_package: returns whether a package has a name, such as `zlib`.
        is_hash: returns whether the hash of a binary has a prefix, such as `2feova4`.
    """

    is_package: Callable[[str], bool] = lambda name: True
    is_hash: Callable[[str], bool] = lambda prefix: True


ANY_NAME = KnownNames()
"""The names where no database is given: each may be a package or a hash."""
