"""Snapshots on pages: binaries over time, the age of the newest, stacks that shrank.

A snapshot is a branch on one day: `develop-2026-11-22` of `develop`. Branches are not
mixed, because a line through the snapshots of two of them would show changes that never
happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.query.stored.totals import facet_counts
from spack_cache_db.site.charts.records import Point
from spack_cache_db.site.pages.feeds import date_of
from spack_cache_db.site.pages.sides import Sides

OLD_DAYS = 30
"""Days after which a snapshot is called old."""
MOST_POINTS = 60
"""Points of a chart over time; more would take long, and be too narrow to press."""
MOST_SHRUNK = 5
"""Stacks that the first page names."""


class Age(NamedTuple):
    """How old a snapshot is, such as `7 days old`, and whether that is too old."""

    words: str
    is_old: bool


class ShrunkStack(NamedTuple):
    """A stack that has fewer binaries than in the snapshot before; `path` compares
    both.
    """

    name: str
    fewer: int
    path: str


def branch_of(release: Release) -> str:
    """Return the branch of a snapshot: `develop` for `develop-2026-11-22`.

    Other releases are their own branch.
    """
    return (
        release.name.removesuffix(f"-{release.date}") if release.date else release.name
    )


def newest_of(lookups: Lookups) -> Release | None:
    """Return the newest snapshot; None without snapshots."""
    dated = [release for release in lookups.releases.values() if release.date]
    return max(dated, key=lambda release: release.date or "", default=None)


def snapshots_of(lookups: Lookups, branch: str) -> list[Release]:
    """Return the snapshots of a branch, the oldest first."""
    snapshots = [
        release
        for release in lookups.releases.values()
        if date_of(release.date) is not None and branch_of(release) == branch
    ]
    return sorted(snapshots, key=lambda release: release.date or "")


def points_of(
    snapshots: Sequence[Release],
    counts: Mapping[int, int],
    chosen: Release | None = None,
) -> list[Point]:
    """Return a point for each snapshot, or for some of them if they are too many.

    Points are not links: a keyboard would stop at each of them, and they are too small
    to press.

    Args:
        snapshots: the snapshots of a branch, the oldest first.
        counts: the counts by the ids of releases; those without one have 0.
        chosen: the snapshot that stands out.
    """
    points = []
    for release in thinned(snapshots, chosen):
        day = date_of(release.date)
        assert day is not None
        is_chosen = chosen is not None and release.id == chosen.id
        count = counts.get(release.id, 0)
        points.append(Point(day, count, is_chosen=is_chosen))
    return points


def binaries_over_time(
    snapshots: Sequence[Release], chosen: Release | None = None
) -> list[Point]:
    """Return the number of binaries of each snapshot."""
    counts = {release.id: release.spec_count for release in snapshots}
    return points_of(snapshots, counts, chosen)


def thinned(
    snapshots: Sequence[Release], chosen: Release | None = None
) -> list[Release]:
    """Return at most `MOST_POINTS` snapshots and the chosen one, at even steps that end
    with the newest.
    """
    step = -(-len(snapshots) // MOST_POINTS)
    newest = len(snapshots) - 1
    return [
        release
        for place, release in enumerate(snapshots)
        if (newest - place) % max(step, 1) == 0
        or (chosen is not None and release.id == chosen.id)
    ]


def age_of(day: str | None, today: date) -> Age | None:
    """Return the age of a day, such as `today`, `1 day old` or `2 months old`; None if
    the day is not known.
    """
    snapshot = date_of(day)
    if snapshot is None:
        return None
    days = (today - snapshot).days
    if days < 1:
        return Age("today", is_old=False)
    if days <= OLD_DAYS:
        return Age(f"{counted(days, 'day')} old", is_old=False)
    months = days // 30
    if months < 12:
        return Age(f"{counted(months, 'month')} old", is_old=True)
    # Twelve months of 30 days are a little less than a year.
    years = max(days // 365, 1)
    return Age(f"{counted(years, 'year')} old", is_old=True)


def shrunk_stacks(lookups: Lookups, newest: Release) -> list[ShrunkStack]:
    """Return the stacks that have fewer binaries in a snapshot than in the one before,
    those that lost most first.
    """
    before = lookups.before(newest)
    if before is None:
        return []
    old_counts = facet_counts(lookups.conn, before.id)["stack"]
    new_counts = facet_counts(lookups.conn, newest.id)["stack"]
    shrunk = []
    for name, old_count in old_counts.items():
        fewer = old_count - new_counts.get(name, 0)
        if fewer > 0:
            path = Sides(before.name, newest.name, stack=name).address()
            shrunk.append(ShrunkStack(name, fewer, path))
    return sorted(shrunk, key=lambda stack: (-stack.fewer, stack.name))
