"""What narrows an answer beside its text, and how that reads in an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self
from urllib.parse import urlencode

from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.find import scope_of
from spack_cache_db.query.lookups import Lookups


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Names that narrow an answer, as a visitor gives them; None narrows nothing."""

    release: str | None = None
    stack: str | None = None
    host: str | None = None

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the pairs of a query string; the first of each name counts."""
        named = dict(reversed(pairs))
        return cls(**{name: named.get(name, "").strip() or None for name in NAMES})

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of an address that narrow the same."""
        named = ((name, getattr(self, name)) for name in NAMES)
        return [(name, value) for name, value in named if value is not None]

    @property
    def narrowing(self) -> str:
        """The same as the end of a query string."""
        return f"&{urlencode(self.pairs)}" if self.pairs else ""

    def scope(self, lookups: Lookups) -> Scope:
        """Return what it is in a file.

        Raises:
            UnknownNameError: there is no such release, stack or host.
        """
        return scope_of(lookups, self.release, self.stack, self.host)


NAMES = tuple(each.name for each in fields(Narrowing))
EVERYWHERE = Narrowing()
