"""All names of a database, and the page to which the search box leads for each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import Spellings, package_counts
from spack_cache_db.query.packages import summarized_packages
from spack_cache_db.query.totals import facet_counts
from spack_cache_db.site.pages.filters import hosts_of
from spack_cache_db.spack.normal_forms import NO_COMPILER
from spack_cache_db.spack.targets import family

MOST_SUGGESTED = 8
LONGEST = 80
"""Longest text, in characters, that is compared with names."""


class Name(NamedTuple):
    """A name and its kind; for a package also its purpose."""

    name: str
    kind: str
    summary: str = ""

    @property
    def address(self) -> str:
        """The path of its page."""
        if self.kind in ("package", "release", "stack"):
            return f"/{self.kind}/{quote(self.name)}"
        field = self.kind
        if field == "target":
            field = "has" if self.name == family(self.name) else "host"
        return f"/packages?{urlencode({field: self.name})}"


def load_names(lookups: Lookups) -> tuple[Name, ...]:
    """Return every name, packages first: a name of two kinds leads to the page of the first.

    Releases have the database's order, all other kinds are sorted.
    """
    return lookups.once(load_names, lambda: tuple(_names(lookups)))


def _names(lookups: Lookups) -> Iterator[Name]:
    for name, summary in summarized_packages(lookups.conn):
        yield Name(name, "package", summary)
    for kind, records in (("release", lookups.releases), ("stack", lookups.stacks)):
        yield from (Name(record.name, kind) for record in records.values())
    facets = facet_counts(lookups.conn)
    targets, compilers, systems = (facets[facet].keys() for facet in ("target", "compiler", "os"))
    names_of = {
        "target": {name for hosts in hosts_of(targets).values() for name in hosts}.union(
            map(family, targets)
        ),
        "compiler": {text.partition("@")[0] for text in compilers} - {NO_COMPILER},
        "os": systems,
    }
    for kind, names in names_of.items():
        yield from (Name(name, kind) for name in sorted(names))


def named(names: tuple[Name, ...], spellings: Spellings, text: str) -> Name | None:
    """Return the first name that a text spells; None if there is none."""
    canonical = {kind: spellings.canonical(kind, text.strip()) for kind in spellings.names}
    return next((name for name in names if name.name == canonical[name.kind]), None)


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that contain a text, ignoring case; those that begin with it come first."""
    part = text.strip().lower()
    if not part or len(part) > LONGEST:
        return []
    matches = [name for name in names if part in name.name.lower()]
    return sorted(matches, key=lambda name: not name.name.lower().startswith(part))


def load_close(lookups: Lookups, kind: str, text: str) -> list[Name]:
    """Return the names of one kind that are similar to a text, the closest first.

    Packages include those of Spack without a binary.
    """
    names = [name for name in load_names(lookups) if name.kind == kind]
    if kind == "package":
        counts = package_counts(lookups)
        names += [Name(name, kind) for name, count in counts.items() if not count]
    by_text = {name.name.lower(): name for name in names}
    close = difflib.get_close_matches(text.strip().lower()[:LONGEST], by_text, MOST_SUGGESTED)
    return [by_text[name] for name in close]


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return suggestions for a text in the search box: names, kinds and purposes."""
    return [
        {"name": name.name, "kind": name.kind} | ({"summary": name.summary} if name.summary else {})
        for name in having(names, text)[:MOST_SUGGESTED]
    ]
