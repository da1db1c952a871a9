"""The first page and the page about the site: how much there is, how old it is, its sources."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spack_cache_db.query.database import Lookups, Release, select
from spack_cache_db.query.installation import (
    Examples,
    Install,
    Installation,
    Origin,
    install_first_example,
    read_examples,
    read_origin,
)
from spack_cache_db.records import INSTALLED
from spack_cache_db.site.pages.filters import NameCounts

TOTALS = """
SELECT
  (SELECT count(*) FROM packages WHERE spec_count > 0),
  (SELECT count(*) FROM specs WHERE release_count > 0),
  (SELECT count(*) FROM configurations WHERE spec_count > 0)
"""
TARGETS = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = 'targets'"
LARGEST = """
SELECT name, spec_count FROM packages WHERE spec_count > 0 ORDER BY spec_count DESC, name LIMIT 24
"""
PAGES = "SELECT format, count(*) FROM pages GROUP BY format ORDER BY format"
MIRRORS = """
SELECT releases.name, stacks.name, mirrors.url, mirrors.path, mirrors.format, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
ORDER BY releases.position, stacks.name, mirrors.path
"""
PROBLEMS = "SELECT count(*) FROM problems"

KINDS = (
    (INSTALLED, "Installed"),
    ("branch", "Branches"),
    ("release", "Releases"),
    ("snapshot", "Snapshots"),
    ("other", "Other"),
)
BARS = 12


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a file holds; packages, specs and configurations are those with a binary."""

    packages: int
    specs: int
    configurations: int
    releases: int
    stacks: int


@dataclass(frozen=True, slots=True)
class Home:
    """Everything the first page shows.

    Attributes:
        kinds: for each kind of release its name, a title, and the releases.
        install: the commands that install a package, from the release that a spec's page names.
        over_time: how many specs each snapshot has, oldest first.
    """

    origin: Origin
    examples: Examples | None
    totals: Totals
    kinds: tuple[tuple[str, str, tuple[Release, ...]], ...]
    install: Install | Installation | None
    over_time: NameCounts
    families: NameCounts
    stacks: NameCounts
    largest: NameCounts


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index that the file was built from."""

    release: str
    stack: str
    url: str | None
    path: str
    format: str
    spec_count: int


@dataclass(frozen=True, slots=True)
class About:
    """Everything the page about the site shows.

    Attributes:
        example: a release of the file, to show what one is.
        pages: how many pages the file was built from, by their format.
    """

    totals: Totals
    example: Release | None
    first_snapshot: str | None
    newest_snapshot: str | None
    pages: NameCounts
    mirrors: tuple[Mirror, ...]
    problem_count: int


def load_home(lookups: Lookups) -> Home:
    """Return the first page."""
    releases = tuple(lookups.releases.values())
    dated = sorted((each.date, each.name, each.spec_count) for each in releases if each.date)
    stacks = sorted(lookups.stacks.values(), key=lambda each: (-each.spec_count, each.name))
    return Home(
        origin=read_origin(lookups.conn),
        examples=read_examples(lookups),
        totals=read_totals(lookups),
        kinds=tuple(
            (kind, title, tuple(each for each in releases if each.kind == kind))
            for kind, title in KINDS
            if any(each.kind == kind for each in releases)
        ),
        install=install_first_example(lookups.conn),
        over_time=tuple((name, count) for _, name, count in dated),
        families=_families(lookups),
        stacks=tuple((each.name, each.spec_count) for each in stacks[:BARS]),
        largest=tuple((name, count) for name, count in select(lookups.conn, LARGEST)),
    )


def load_about(lookups: Lookups) -> About:
    """Return the page about the site."""
    dates = [each.date for each in lookups.releases.values() if each.date]
    return About(
        totals=read_totals(lookups),
        example=next(iter(lookups.releases.values()), None),
        first_snapshot=min(dates, default=None),
        newest_snapshot=newest_snapshot(lookups),
        pages=tuple((name, count) for name, count in select(lookups.conn, PAGES)),
        mirrors=tuple(Mirror(*row) for row in select(lookups.conn, MIRRORS)),
        problem_count=next(select(lookups.conn, PROBLEMS))[0],
    )


def read_totals(lookups: Lookups) -> Totals:
    """Return how much a file holds."""
    packages, specs, configurations = next(select(lookups.conn, TOTALS))
    releases, stacks = len(lookups.releases), len(lookups.stacks)
    return Totals(packages, specs, configurations, releases, stacks)


def newest_snapshot(lookups: Lookups) -> str | None:
    """Return the day of the newest snapshot, YYYY-MM-DD; None where there is no snapshot."""
    return max((each.date for each in lookups.releases.values() if each.date), default=None)


def _families(lookups: Lookups) -> NameCounts:
    counts: Counter[str] = Counter()
    for target, count in select(lookups.conn, TARGETS):
        counts[lookups.families.get(target, target)] += count
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
