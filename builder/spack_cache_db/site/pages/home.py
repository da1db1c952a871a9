"""The first page, and the page about the site: its size, its age and its sources."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from spack_cache_db.query.changes import amounts_of_releases
from spack_cache_db.query.database import Lookups, Release, select
from spack_cache_db.query.installation import read_examples, read_origin
from spack_cache_db.site.pages.changes import Sides
from spack_cache_db.site.pages.filters import NameCounts

TOTALS = """
SELECT
  (SELECT count(*) FROM packages WHERE spec_count > 0),
  (SELECT count(*) FROM specs WHERE release_count > 0),
  (SELECT count(*) FROM configurations WHERE spec_count > 0)
"""
TARGETS = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = 'targets'"
PAGES = "SELECT format, count(*) FROM pages GROUP BY format ORDER BY format"
MIRRORS = """
SELECT releases.name, stacks.name, mirrors.url, mirrors.path, mirrors.format, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
ORDER BY releases.position, stacks.name, mirrors.path
"""
PROBLEMS = "SELECT count(*) FROM problems"

OLD = 30
"""Days after which a snapshot is called old."""
BARS = 12


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a file holds; packages, specs and configurations are those with a binary."""

    packages: int
    specs: int
    configurations: int
    releases: int
    stacks: int


class LatestChange(NamedTuple):
    """The binaries that the newest snapshot added and removed, and where all are shown."""

    sides: Sides
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class Home:
    """Everything the first page shows.

    Attributes:
        owner: who publishes the binaries.
        examples: specs that find something.
        age: the age of the newest snapshot in words, where it is old.
        change: None where there are no two snapshots.
    """

    owner: str
    examples: tuple[str, ...]
    totals: Totals
    targets: int
    age: str | None
    change: LatestChange | None


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
        over_time: the number of binaries in each snapshot, the oldest first.
        families: the number of binaries for each family of targets.
        stacks: the number of binaries in each of the largest stacks.
    """

    totals: Totals
    over_time: NameCounts
    families: NameCounts
    stacks: NameCounts
    example: Release | None
    first_snapshot: str | None
    newest_snapshot: str | None
    pages: NameCounts
    mirrors: tuple[Mirror, ...]
    problem_count: int


def load_home(lookups: Lookups) -> Home:
    """Return the first page."""
    return Home(
        owner=read_origin(lookups.conn).owner,
        examples=read_examples(lookups.conn),
        totals=read_totals(lookups),
        targets=len(lookups.families),
        age=age_of(newest_snapshot(lookups), date.today()),
        change=latest_change(lookups),
    )


def latest_change(lookups: Lookups) -> LatestChange | None:
    """Return how much the newest snapshot changed; None where there are no two."""
    for release in lookups.releases.values():
        before = lookups.before(release)
        if release.kind == "snapshot" and before is not None:
            amounts = amounts_of_releases(lookups.conn, [release.id])[release.id]
            return LatestChange(Sides(before.name, release.name), *amounts)
    return None


def age_of(day: str | None, today: date) -> str | None:
    """Return how old a day is, in words; None where it is not older than `OLD` days."""
    try:
        days = (today - date.fromisoformat(day or "")).days
    except ValueError:
        return None
    if days <= OLD:
        return None
    months = days // 30
    if months < 12:
        return f"{months} month{'' if months == 1 else 's'} old"
    return f"{days // 365 or 1} year{'s' if days >= 730 else ''} old"


def load_about(lookups: Lookups) -> About:
    """Return the page about the site."""
    dated = sorted(
        (each.date, each.name, each.spec_count) for each in lookups.releases.values() if each.date
    )
    stacks = sorted(lookups.stacks.values(), key=lambda each: (-each.spec_count, each.name))
    return About(
        totals=read_totals(lookups),
        over_time=tuple((name, count) for _, name, count in dated),
        families=_families(lookups),
        stacks=tuple((each.name, each.spec_count) for each in stacks[:BARS]),
        example=next(iter(lookups.releases.values()), None),
        first_snapshot=dated[0][0] if dated else None,
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
