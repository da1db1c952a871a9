"""All names of a database, and the page to which the search box leads for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.names.spellings import Spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.package_data import summarized_packages
from spack_cache_db.query.stored.totals import facet_counts
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.site import Site
from spack_cache_db.spack.targets import family, hosts_of

MOST_SUGGESTED = 8


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
        of_target = "has" if self.name == family(self.name) else "host"
        field = of_target if self.kind == "target" else self.kind
        return f"/packages?{urlencode({field: self.name})}"


def load_names(lookups: Lookups) -> tuple[Name, ...]:
    """Return every name, packages first: a name of two kinds leads to the page of the
    first.

    Releases have the database's order, all other kinds are sorted.
    """
    return lookups.once(load_names, lambda: tuple(_names(lookups)))


def _names(lookups: Lookups) -> Iterator[Name]:
    for name, summary in summarized_packages(lookups.conn):
        yield Name(name, "package", summary)
    facets = facet_counts(lookups.conn)
    targets, compilers, systems = (
        facets[facet].keys() for facet in ("target", "compiler", "os")
    )
    hosts = chain.from_iterable(hosts_of(targets).values())
    names_of: dict[str, Iterable[str]] = {
        "release": (release.name for release in lookups.releases.values()),
        "stack": (stack.name for stack in lookups.stacks.values()),
        "target": sorted({*hosts, *map(family, targets)}),
        "compiler": sorted(
            {text.partition("@")[0] for text in compilers} - {NO_COMPILER}
        ),
        "os": sorted(systems),
    }
    for kind, names in names_of.items():
        yield from (Name(name, kind) for name in names)


def named(names: tuple[Name, ...], spellings: Spellings, text: str) -> Name | None:
    """Return the first name that a text spells; None if there is none."""
    canonical = {
        kind: spellings.canonical(kind, text.strip()) for kind in spellings.names
    }
    return next((name for name in names if name.name == canonical[name.kind]), None)


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that contain a text, ignoring case; those that begin with it
    come first.
    """
    part = text.strip().lower()
    matches = [name for name in names if part and part in name.name.lower()]
    return sorted(matches, key=lambda name: not name.name.lower().startswith(part))


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return suggestions for a text in the search box: names, kinds and purposes."""
    matches = having(names, text)[:MOST_SUGGESTED]
    return [
        {key: text for key, text in name._asdict().items() if text} for name in matches
    ]


def suggest(site: Site, request: PageRequest) -> PageResponse:
    """Return `/suggest.json?q=`: the names that contain a text."""
    return data(
        json_text(suggested(load_names(site.lookups), request.args.get("q", ""))),
        "json",
    )
