"""All names of a file, and the page that each leads to from the search box."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.names import Spellings
from spack_cache_db.query.packages import summary_of
from spack_cache_db.site.pages.filters import condition_of, hosts_of
from spack_cache_db.spack.normal_forms import NO_COMPILER
from spack_cache_db.spack.targets import family, runs_on

PACKAGES = """
SELECT packages.name, packages.spec_count, known_packages.description
FROM packages LEFT JOIN known_packages ON known_packages.name = packages.name
WHERE packages.release_count > 0 ORDER BY packages.name
"""
UNBUILT = "SELECT name FROM package_status WHERE spec_count = 0 ORDER BY name"
FACET = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = :facet"

MOST_SUGGESTED = 8
LONGEST = 80
"""No name is longer that anybody types."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name, what it is of, how many specs that has, and of a package what it is for."""

    name: str
    kind: str
    spec_count: int
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
    """Return every name, those of packages first: a name of two kinds leads to the first of them.

    Releases stand in the file's order, names of every other kind are sorted.
    """
    return (
        *(
            Name(name, "package", count, summary_of(description or ""))
            for name, count, description in select(lookups.conn, PACKAGES)
        ),
        *(Name(each.name, "release", each.spec_count) for each in lookups.releases.values()),
        *(Name(each.name, "stack", each.spec_count) for each in lookups.stacks.values()),
        *_targets(dict(select(lookups.conn, FACET, facet="targets"))),
        *_compilers(dict(select(lookups.conn, FACET, facet="compilers"))),
        *(
            Name(name, "os", count)
            for name, count in sorted(select(lookups.conn, FACET, facet="oss"))
        ),
    )


def _targets(counts: Mapping[str, int]) -> Iterator[Name]:
    """Yield every machine on which something runs, and how many specs do; of a family all."""
    names = {name for hosts in hosts_of(counts).values() for name in hosts}
    for name in sorted(names | {*map(family, counts)}):
        fits = (
            count
            for target, count in counts.items()
            if runs_on(target, name) or family(target) == name
        )
        yield Name(name, "target", sum(fits))


def _compilers(counts: Mapping[str, int]) -> Iterator[Name]:
    """Yield every compiler, without a version, and how many specs it has built."""
    for name in sorted({text.partition("@")[0] for text in counts} - {NO_COMPILER}):
        built = condition_of("compiler", name)
        yield Name(name, "compiler", sum(counts[text] for text in counts if built.holds(text)))


def named(names: tuple[Name, ...], spellings: Spellings, text: str) -> Name | None:
    """Return the first name that a text spells."""
    wanted = {kind: spellings.canonical(kind, text.strip()) for kind in spellings.names}
    return next((each for each in names if each.name == wanted[each.kind]), None)


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that a text is part of, capitals aside: those first that begin with it."""
    wanted = text.strip().lower()
    if not wanted or len(wanted) > LONGEST:
        return []
    found = [each for each in names if wanted in each.name.lower()]
    return sorted(found, key=lambda each: not each.name.lower().startswith(wanted))


def load_close(lookups: Lookups, kind: str, text: str) -> list[Name]:
    """Return the names of one kind that are spelled much like a text, the closest first.

    Packages are also those that Spack has and no binary exists of.
    """
    names = [each for each in load_names(lookups) if each.kind == kind]
    if kind == "package":
        names += [Name(name, "package", 0) for (name,) in select(lookups.conn, UNBUILT)]
    known = {each.name.lower(): each for each in names}
    found = difflib.get_close_matches(text.strip().lower()[:LONGEST], known, MOST_SUGGESTED)
    return [known[each] for each in found]


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return what to suggest to somebody who has typed so much: names and what they are of."""
    return [
        {"name": each.name, "kind": each.kind} | ({"summary": each.summary} if each.summary else {})
        for each in having(names, text)[:MOST_SUGGESTED]
    ]
