"""What a word typed into the search box names: a package, release, stack or target, or part of one.

All names of a file are a few thousand short words: they are read once and looked through here.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select

PACKAGES = "SELECT name, spec_count FROM packages WHERE release_count > 0 ORDER BY name"
TARGETS = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = 'targets'"

KINDS = ("package", "release", "stack", "target")
"""What a name may be of, the first first where it is of several."""
MOST_SUGGESTED = 8
LONGEST = 80
"""No name is longer that anybody types."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name, what it is of, and how many specs that has."""

    name: str
    kind: str
    spec_count: int

    @property
    def address(self) -> str:
        """The path of its page."""
        if self.kind == "target":
            return f"/packages?{urlencode({'has': self.name})}"
        return f"/{self.kind}/{quote(self.name)}"


def load_names(conn: sqlite3.Connection, lookups: Lookups) -> tuple[Name, ...]:
    """Return every name, in the order of `KINDS`: releases as the file has them, others sorted."""
    return (
        *(Name(name, "package", count) for name, count in select(conn, PACKAGES)),
        *(Name(each.name, "release", each.spec_count) for each in lookups.releases.values()),
        *(Name(each.name, "stack", each.spec_count) for each in lookups.stacks.values()),
        *(Name(name, "target", count) for name, count in sorted(select(conn, TARGETS))),
    )


def named(names: tuple[Name, ...], text: str) -> Name | None:
    """Return what is called so, capitals aside."""
    wanted = text.strip().lower()
    return next((each for each in names if each.name.lower() == wanted), None)


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that a text is part of, capitals aside: those first that begin with it."""
    wanted = text.strip().lower()
    if not wanted or len(wanted) > LONGEST:
        return []
    found = [each for each in names if wanted in each.name.lower()]
    return sorted(found, key=lambda each: not each.name.lower().startswith(wanted))


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return what to suggest to somebody who has typed so much: names and what they are of."""
    return [{"name": each.name, "kind": each.kind} for each in having(names, text)[:MOST_SUGGESTED]]
