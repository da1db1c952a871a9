"""The URLs of a load: many of each kind of page, taken from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

from benchmarks.built import connected
from benchmarks.server import PLAIN_PAGE

SAMPLE = 50
"""Pages of a kind, at most."""
LARGEST = "package, the largest"
WITH_DEPENDENCIES = "spec, with dependencies"
OTHER_BINARIES = """
SELECT hash FROM (
  SELECT id FROM configurations WHERE spec_count > 0 ORDER BY spec_count DESC, id LIMIT 5) AS most
JOIN specs ON specs.id = (
  SELECT min(id) FROM specs WHERE configuration_id = most.id AND release_count > 0)
"""
WORDS = ("A100", "gcc 13", "arm")
"""Searches in words that ask for no package."""
SEARCHED = (
    "cuda",
    "gcc@11.4.0",
    "py-torch",
    "x86_64_v3",
    "+mpi",
    "hdf5",
    "~shared",
    "oneapi",
)
LARGEST_FIRST = "SELECT name FROM packages ORDER BY configuration_count DESC, name"
MOST_BINARIES = """
SELECT name FROM packages WHERE spec_count > 0 ORDER BY spec_count DESC, name LIMIT 20
"""
WITH_DEPENDENCY = """
SELECT hash FROM specs
WHERE release_count > 0 AND id IN (SELECT spec_id FROM dependencies)
ORDER BY hash
"""
NEWEST_SNAPSHOTS = """
SELECT previous.name, releases.name FROM releases
JOIN releases AS previous ON previous.id = releases.previous_release_id
WHERE releases.kind = 'snapshot' ORDER BY releases.position LIMIT 10
"""
TABLE = "/spack-cache/configurations"
LISTINGS = "/spack-cache/build_listings?release=develop&_nocount=1"
BUILDS_OF_PACKAGE = "/spack-cache/builds?package="
QUERY_OF_PACKAGE = "/spack-cache/variant_values_of_package?package="
QUERY_OF_HASH = "/spack-cache/dependencies_of_hash?hash="
FACETS = "_facet=compiler_id&_facet=os_id&_facet=target_id"


@dataclass(frozen=True, slots=True)
class PageKind:
    """One kind of page.

    Attributes:
        name: its name.
        targets: its URLs.
        requests: how many requests measure it.
        goal: its processor time divided by that of the plainest page; None if it is not
            a page.
    """

    name: str
    targets: tuple[str, ...]
    requests: int = 100
    goal: float | None = 8


def page_kinds(file: Path) -> list[PageKind]:
    """Return the kinds of pages to measure, the plainest first.

    For a file with dependency data, these are the pages that show it.
    """
    plainest = PageKind("versions.json", (PLAIN_PAGE,), goal=None)
    with closing(connected(file)) as db:
        if db.execute("SELECT 1 FROM dependencies LIMIT 1").fetchone():
            return [plainest, *_graph_pages(db)]
        return [plainest, *_catalogue_pages(db)]


def knows_dependencies(kinds: list[PageKind]) -> bool:
    """Return whether these are the kinds of a file with dependency data."""
    return any(kind.name == WITH_DEPENDENCIES for kind in kinds)


def with_query(address: str, query: str) -> str:
    """Return an address with another field of its query string."""
    joint = "&" if "?" in address else "?"
    return f"{address}{joint}{query}"


def _catalogue_pages(db: sqlite3.Connection) -> Iterator[PageKind]:
    """Yield the kinds of pages of a file of pages."""
    packages = _column(db, LARGEST_FIRST)
    sample = Random(1).sample(packages, min(SAMPLE, len(packages)))
    hashes = _some(_column(db, "SELECT hash FROM specs ORDER BY hash"))
    compilers = _column(db, "SELECT compiler FROM compilers ORDER BY compiler")
    releases = _column(db, "SELECT name FROM releases ORDER BY position")
    stacks = _column(db, "SELECT name FROM stacks WHERE NOT is_root ORDER BY name")
    hosts = _column(db, "SELECT DISTINCT host FROM target_runs_on ORDER BY host")

    # Pages of one thing.
    yield PageKind("home", ("/",))
    yield PageKind("package", _quoted("/package/", sample))
    yield PageKind(LARGEST, _quoted("/package/", packages[:1]), goal=10)
    narrowed = tuple(_narrowed(sample, releases, hosts))
    yield PageKind("package, release, host", narrowed)
    yield PageKind("spec", _quoted("/spec/", hashes))
    yield PageKind("release", _quoted("/release/", releases))
    yield PageKind("stack", _quoted("/stack/", stacks))

    # Lists, and pages that compare.
    yield PageKind("packages", ("/packages",))
    yield PageKind("packages of a release", _quoted("/packages?release=", releases))
    yield PageKind("packages, has, lacks", ("/packages?has=x86_64_v3&lacks=aarch64",))
    yield PageKind("releases", ("/releases",))
    yield PageKind("stacks", ("/stacks",))
    yield PageKind("about", ("/about",))
    yield PageKind("diff", tuple(_diffs(db)))
    yield PageKind("cover, 20 specs", (_cover(sample[:20]),))

    # Searches.
    yield PageKind("find, words", _quoted("/find?q=", WORDS))
    beginnings = tuple(f"/suggest.json?q={name[:4]}" for name in sample)
    yield PageKind("suggest", beginnings)
    yield PageKind("find", tuple(_finds(sample, compilers)))
    yield PageKind("search", _quoted(f"{TABLE}?_search=", SEARCHED))

    # Pages of Datasette.
    yield PageKind("list of tables", ("/spack-cache",))
    yield PageKind("configurations", (TABLE,))
    yield PageKind("configurations, 3 facets", (f"{TABLE}?{FACETS}",))
    yield PageKind("builds of a package", _quoted(BUILDS_OF_PACKAGE, sample))
    yield PageKind("listings of a release", (LISTINGS,), 10)
    yield PageKind("canned query", _quoted(QUERY_OF_PACKAGE, sample))
    yield PageKind("JSON, 100 rows", (f"{TABLE}.json?_size=100",))

    # Answers in many pieces.
    whole_table = f"{TABLE}.csv?_stream=on&_size=max"
    yield PageKind("CSV stream", (whole_table,), 2, goal=None)
    yield PageKind("download", ("/spack-cache.db",), 2, goal=None)


def _graph_pages(db: sqlite3.Connection) -> Iterator[PageKind]:
    """Yield the kinds of pages that show dependencies."""
    hashes = _some(_column(db, WITH_DEPENDENCY))
    packages = _column(db, MOST_BINARIES)
    yield PageKind(WITH_DEPENDENCIES, _quoted("/spec/", hashes))
    others_of = _column(db, OTHER_BINARIES)
    yield PageKind("spec, most binaries", _quoted("/spec/", others_of), 20)
    dependents = [f"^{name}" for name in packages]
    yield PageKind("find, ^dependency", _quoted("/find?q=", dependents), 20, goal=25)
    yield PageKind("cover, 20 specs", (_cover(packages),))
    yield PageKind("canned query", _quoted(QUERY_OF_HASH, hashes))


def _column(db: sqlite3.Connection, sql: str) -> list[str]:
    return [value for (value,) in db.execute(sql)]


def _some(values: list[str]) -> list[str]:
    """Return a sample, the same in each run."""
    return Random(2).sample(values, min(SAMPLE, len(values)))


def _quoted(start: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return addresses that begin in one way and end with a value each."""
    return tuple(start + quote(value) for value in values)


def _narrowed(
    packages: list[str], releases: list[str], hosts: list[str]
) -> Iterator[str]:
    """Yield the page of each package, with a new release and a machine."""
    chance = Random(4)
    for name in packages:
        release = quote(chance.choice(releases[:3]))
        host = quote(chance.choice(hosts))
        yield f"/package/{quote(name)}?release={release}&host={host}"


def _cover(packages: list[str]) -> str:
    return "/cover?q=" + quote("\n".join(packages))


def _finds(packages: list[str], compilers: list[str]) -> Iterator[str]:
    """Yield a search for each package with a compiler."""
    chance = Random(3)
    for name in packages:
        yield "/find?q=" + quote(f"{name} %{chance.choice(compilers)}")


def _diffs(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the comparisons of the newest snapshots with those before them."""
    for old, new in db.execute(NEWEST_SNAPSHOTS):
        yield f"/diff/{quote(old)}...{quote(new)}"
