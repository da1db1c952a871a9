"""All names of a database, and the page to which the search box leads for each.

`/suggest.json?q=<text>` lists those that contain a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.package_data import summarized_packages
from spack_cache_db.query.stored.totals import facet_counts
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.site import Site
from spack_cache_db.spack.targets import family, hosts_of

MOST_SUGGESTED = 8
KINDS = ("package", "release", "stack", "target", "compiler", "os")
"""The kinds of names; a name of two kinds leads to the page of the first."""


class Name(NamedTuple):
    """A name and its kind; for a package also its purpose."""

    name: str
    kind: str
    summary: str = ""

    @property
    def address(self) -> str:
        """The path of its page, such as `/package/zlib` or `/packages?host=zen3`."""
        if self.kind in ("package", "release", "stack"):
            return f"/{self.kind}/{quote(self.name)}"
        field = self.kind
        if self.kind == "target":
            # A family has no CPU of its own on which binaries could run.
            is_family = self.name == family(self.name)
            field = "has" if is_family else "host"
        return f"/packages?{urlencode({field: self.name})}"


def suggest(site: Site, request: PageRequest) -> PageResponse:
    """Return `/suggest.json?q=`: the names that contain a text."""
    text = request.args.get("q", "")
    suggestions = suggested(load_names(site.lookups), text)
    return data(json_text(suggestions), "json")


def suggested(names: tuple[Name, ...], text: str) -> list[dict[str, str]]:
    """Return suggestions for a text in the search box: names, kinds and purposes."""
    suggestions = []
    for name in having(names, text)[:MOST_SUGGESTED]:
        filled = {key: value for key, value in name._asdict().items() if value}
        suggestions.append(filled)
    return suggestions


def having(names: tuple[Name, ...], text: str) -> list[Name]:
    """Return the names that contain a text, ignoring case; those that begin with it
    come first.
    """
    part = text.strip().lower()
    if not part:
        return []
    matches = [name for name in names if part in name.name.lower()]
    return sorted(matches, key=lambda name: not name.name.lower().startswith(part))


def named(lookups: Lookups, text: str) -> Name | None:
    """Return the first name that a text spells; None if there is none."""
    names = names_by_kind(lookups)
    spellings = read_spellings(lookups)
    for kind in KINDS:
        canonical = spellings.canonical(kind, text.strip())
        if (kind, canonical) in names:
            return names[kind, canonical]
    return None


def names_by_kind(lookups: Lookups) -> Mapping[tuple[str, str], Name]:
    """Return every name by its kind and its text; cached."""

    def read() -> Mapping[tuple[str, str], Name]:
        return {(name.kind, name.name): name for name in load_names(lookups)}

    return lookups.once(names_by_kind, read)


def load_names(lookups: Lookups) -> tuple[Name, ...]:
    """Return every name, in the order of `KINDS`; cached.

    Releases have the database's order, all other kinds are sorted.
    """
    return lookups.once(load_names, lambda: tuple(_names(lookups)))


def _names(lookups: Lookups) -> Iterator[Name]:
    """Yield the names in the order of their kinds."""
    for name, summary in summarized_packages(lookups.conn):
        yield Name(name, "package", summary)
    for release in lookups.releases.values():
        yield Name(release.name, "release")
    for stack in lookups.stacks.values():
        yield Name(stack.name, "stack")
    facets = facet_counts(lookups.conn)

    # Targets of binaries, their families, and the machines that run such binaries.
    targets = facets["target"].keys()
    builds = [build for build in lookups.builds if build.target in targets]
    hosts = chain.from_iterable(hosts_of(builds).values())
    families = (family(target) for target in targets)
    for target in sorted({*hosts, *families}):
        yield Name(target, "target")

    # Compilers without their versions.
    compilers = {text.partition("@")[0] for text in facets["compiler"]}
    for compiler in sorted(compilers - {NO_COMPILER}):
        yield Name(compiler, "compiler")

    for system in sorted(facets["os"]):
        yield Name(system, "os")
