"""The first page, and the page about the site: the size, age and sources of the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from spack_cache_db.query.changes import amounts_of_releases
from spack_cache_db.query.database import Lookups, Release, select
from spack_cache_db.query.installation import read_examples, read_origin
from spack_cache_db.query.totals import (
    PAGES,
    PROBLEMS,
    Mirror,
    Totals,
    facet_counts,
    newest_snapshot,
    read_mirrors,
    read_totals,
)
from spack_cache_db.site.pages.changes import Sides
from spack_cache_db.site.pages.filters import NameCounts, most_first

OLD = 30
"""Days after which a snapshot is called old."""
BARS = 12
"""Stacks in the chart of the largest stacks."""


class LatestChange(NamedTuple):
    """The number of binaries that the newest snapshot added and removed, and its comparison."""

    sides: Sides
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class Home:
    """The content of the first page.

    Attributes:
        owner: the publisher of the binaries.
        examples: specs that have results.
        age: the age of the newest snapshot in words; None unless it is old.
        change: None without two snapshots.
    """

    owner: str
    examples: tuple[str, ...]
    totals: Totals
    targets: int
    age: str | None
    change: LatestChange | None


@dataclass(frozen=True, slots=True)
class About:
    """The content of the page about the site.

    Attributes:
        over_time: the number of binaries in each snapshot, the oldest first.
        stacks: the number of binaries in each of the largest stacks.
        example: a release, as an example in the text.
        pages: the number of pages that the database was built from, by format.
    """

    totals: Totals
    over_time: NameCounts
    families: NameCounts
    stacks: NameCounts
    example: Release | None
    first_snapshot: str | None
    pages: NameCounts
    mirrors: tuple[Mirror, ...]
    problem_count: int


def load_home(lookups: Lookups) -> Home:
    """Return the content of the first page."""
    return Home(
        owner=read_origin(lookups.conn).owner,
        examples=read_examples(lookups.conn),
        totals=read_totals(lookups.conn),
        targets=len(lookups.families),
        age=age_of(newest_snapshot(lookups), date.today()),
        change=latest_change(lookups),
    )


def latest_change(lookups: Lookups) -> LatestChange | None:
    """Return how much the newest snapshot changed; None without two snapshots."""
    for release in lookups.releases.values():
        before = lookups.before(release)
        if release.kind == "snapshot" and before is not None:
            amounts = amounts_of_releases(lookups.conn, [release.id])[release.id]
            return LatestChange(Sides(before.name, release.name), *amounts)
    return None


def age_of(day: str | None, today: date) -> str | None:
    """Return the age of a day in words; None if it is not older than `OLD` days."""
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
    """Return the content of the page about the site."""
    releases = [*lookups.releases.values()]
    dated = sorted(
        (release.date, release.name, release.spec_count) for release in releases if release.date
    )
    families: Counter[str] = Counter()
    for target, count in facet_counts(lookups.conn, "target").items():
        families[lookups.families.get(target, target)] += count
    stacks = most_first({stack.name: stack.spec_count for stack in lookups.stacks.values()})
    return About(
        totals=read_totals(lookups.conn),
        over_time=tuple((name, count) for _, name, count in dated),
        families=most_first(families),
        stacks=stacks[:BARS],
        example=releases[0] if releases else None,
        first_snapshot=dated[0][0] if dated else None,
        pages=tuple((name, count) for name, count in select(lookups.conn, PAGES)),
        mirrors=read_mirrors(lookups.conn),
        problem_count=next(select(lookups.conn, PROBLEMS))[0],
    )
