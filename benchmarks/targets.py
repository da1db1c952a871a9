"""The URLs of a load: many of each kind of page, taken from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

from benchmarks.server import PLAIN_PAGE

SAMPLE = 50
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
_LISTINGS = "/spack-cache/build_listings?release=develop&_nocount=1"
FACETS = "_facet=compiler_id&_facet=os_id&_facet=target_id"


@dataclass(frozen=True, slots=True)
class PageKind:
    """One kind of page.

    Attributes:
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
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as db:
        is_graph = bool(_column(db, "SELECT EXISTS (SELECT 1 FROM dependencies)")[0])
        return [
            PageKind("versions.json", (PLAIN_PAGE,), goal=None),
            *(_graph if is_graph else _catalogue)(db),
        ]


def knows_dependencies(kinds: list[PageKind]) -> bool:
    """Return whether these are the kinds of a file with dependency data."""
    return any(kind.name == WITH_DEPENDENCIES for kind in kinds)


def with_query(address: str, query: str) -> str:
    """Return an address with another field of its query string."""
    joint = "&" if "?" in address else "?"
    return f"{address}{joint}{query}"


def _catalogue(db: sqlite3.Connection) -> list[PageKind]:
    packages = _column(
        db, "SELECT name FROM packages ORDER BY configuration_count DESC, name"
    )
    largest, sample = (
        packages[0],
        Random(1).sample(packages, min(SAMPLE, len(packages))),
    )
    hashes = _column(db, "SELECT hash FROM specs ORDER BY hash")
    compilers = _column(db, "SELECT compiler FROM compilers ORDER BY compiler")
    releases = _column(db, "SELECT name FROM releases ORDER BY position")
    stacks = _column(db, "SELECT name FROM stacks WHERE NOT is_root ORDER BY name")
    hosts = _column(db, "SELECT DISTINCT host FROM target_runs_on ORDER BY host")
    hashes = _some(hashes)
    return [
        PageKind("home", ("/",)),
        PageKind("package", _pages("package", sample)),
        PageKind(LARGEST, _pages("package", [largest]), goal=10),
        PageKind("package, release, host", tuple(_narrowed(sample, releases, hosts))),
        PageKind("spec", _pages("spec", hashes)),
        PageKind("release", _pages("release", releases)),
        PageKind("stack", _pages("stack", stacks)),
        PageKind("packages", ("/packages",)),
        PageKind("packages of a release", _all("/packages?release=", releases)),
        PageKind("packages, has, lacks", ("/packages?has=x86_64_v3&lacks=aarch64",)),
        PageKind("releases", ("/releases",)),
        PageKind("stacks", ("/stacks",)),
        PageKind("about", ("/about",)),
        PageKind("diff", tuple(_diffs(db))),
        PageKind("cover, 20 specs", (_cover(sample[:20]),)),
        PageKind("find, words", _all("/find?q=", list(WORDS))),
        PageKind("suggest", tuple(f"/suggest.json?q={name[:4]}" for name in sample)),
        PageKind("find", tuple(_finds(sample, compilers))),
        PageKind(
            "search", tuple(_table("_search=" + quote(text)) for text in SEARCHED)
        ),
        PageKind("list of tables", ("/spack-cache",)),
        PageKind("configurations", (_table(""),)),
        PageKind("configurations, 3 facets", (_table(FACETS),)),
        PageKind("builds of a package", tuple(map(_builds, sample))),
        PageKind("listings of a release", (_LISTINGS,), 10),
        PageKind(
            "canned query",
            _all("/spack-cache/variant_values_of_package?package=", sample),
        ),
        PageKind("JSON, 100 rows", ("/spack-cache/configurations.json?_size=100",)),
        PageKind(
            "CSV stream",
            ("/spack-cache/configurations.csv?_stream=on&_size=max",),
            2,
            goal=None,
        ),
        PageKind("download", ("/spack-cache.db",), 2, goal=None),
    ]


def _graph(db: sqlite3.Connection) -> list[PageKind]:
    hashes = _column(
        db,
        "SELECT hash FROM specs WHERE release_count > 0"
        " AND id IN (SELECT spec_id FROM dependencies) ORDER BY hash",
    )
    others_of = _column(db, OTHER_BINARIES)
    packages = _column(
        db,
        "SELECT name FROM packages WHERE spec_count > 0 ORDER BY spec_count DESC, name LIMIT 20",
    )
    queries = tuple("/find?q=" + quote(f"^{name}") for name in packages)
    return [
        PageKind(WITH_DEPENDENCIES, _pages("spec", _some(hashes))),
        PageKind("spec, most binaries", _pages("spec", others_of), 20),
        PageKind("find, ^dependency", queries, 20, goal=25),
        PageKind("cover, 20 specs", (_cover(packages),)),
        PageKind(
            "canned query",
            _all("/spack-cache/dependencies_of_hash?hash=", _some(hashes)),
        ),
    ]


def _some(values: list[str]) -> list[str]:
    return Random(2).sample(values, min(SAMPLE, len(values)))


def _all(start: str, values: list[str]) -> tuple[str, ...]:
    return tuple(start + quote(value) for value in values)


def _narrowed(
    packages: list[str], releases: list[str], hosts: list[str]
) -> Iterator[str]:
    random = Random(4)
    for name in packages:
        release, host = quote(random.choice(releases[:3])), quote(random.choice(hosts))
        yield f"/package/{quote(name)}?release={release}&host={host}"


def _cover(packages: list[str]) -> str:
    return "/cover?q=" + quote("\n".join(packages))


def _pages(kind: str, names: list[str]) -> tuple[str, ...]:
    return tuple(f"/{kind}/{quote(name)}" for name in names)


def _finds(packages: list[str], compilers: list[str]) -> Iterator[str]:
    random = Random(3)
    for name in packages:
        yield "/find?q=" + quote(f"{name} %{random.choice(compilers)}")


def _diffs(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the comparisons of the newest snapshots with those before them."""
    sides = db.execute(
        "SELECT previous.name, releases.name FROM releases"
        " JOIN releases AS previous ON previous.id = releases.previous_release_id"
        " WHERE releases.kind = 'snapshot' ORDER BY releases.position LIMIT 10"
    )
    for old, new in sides:
        yield f"/diff/{quote(old)}...{quote(new)}"


def _table(query: str) -> str:
    return f"/spack-cache/configurations?{query}".rstrip("?")


def _builds(package: str) -> str:
    return f"/spack-cache/builds?package={quote(package)}"


def _column(db: sqlite3.Connection, sql: str) -> list[str]:
    return [row[0] for row in db.execute(sql)]
