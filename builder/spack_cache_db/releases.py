"""What the name of a release says: its kind, its date, and which release precedes it.

A name such as `develop` is that of a branch, `develop-2026-11-24` is a snapshot of it,
`v1.0` is a release of Spack, and any other name is `other`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date
from itertools import pairwise

from spack_cache_db.spack.versions import VersionKey, version_key

_SNAPSHOT = re.compile(r"(?P<branch>.+)-(?P<date>\d{4}-\d{2}-\d{2})")
_RELEASE = re.compile(r"v\d+(?:\.\d+)*")
_BRANCHES = {"develop", "main", "master"}

_ORDER = ("branch", "release", "snapshot", "other")
"""The order of kinds in lists."""

PUBLIC_MIRRORS = "https://binaries.spack.io"
"""The URL below which the mirrors of Spack's public cache are."""

PUBLIC_SITE = "https://cache.spack.io/"
"""The website of Spack's public cache."""


def release_kind(name: str, branches: Collection[str] = ()) -> str:
    """Return `branch`, `snapshot` (a name that ends in a date), `release` or `other`.

    Names in `branches`, which have snapshots, are branches rather than others.
    """
    if name in _BRANCHES:
        return "branch"
    if release_date(name):
        return "snapshot"
    if _RELEASE.fullmatch(name):
        return "release"
    return "branch" if name in branches else "other"


def release_date(name: str) -> str | None:
    """Return a snapshot's date as `YYYY-MM-DD`; None for other releases."""
    match = _SNAPSHOT.fullmatch(name)
    if match is None:
        return None
    try:
        return date.fromisoformat(match["date"]).isoformat()
    except ValueError:
        # There is no such day.
        return None


def snapshot_branches(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the snapshots of each branch that has some, from new to old."""
    snapshots = [name for name in names if release_date(name)]
    by_branch: dict[str, list[str]] = {}
    for name in _newest_first(snapshots):
        match = _SNAPSHOT.fullmatch(name)
        if match is not None:
            by_branch.setdefault(match["branch"], []).append(name)
    return by_branch


def _newest_first(snapshots: Iterable[str]) -> list[str]:
    return sorted(snapshots, key=lambda name: str(release_date(name)), reverse=True)


def public_mirror(name: str) -> str:
    """Return the URL of a release's mirror in Spack's public cache."""
    return f"{PUBLIC_MIRRORS}/{name}"


def is_public_mirror(url: str) -> bool:
    """Return whether a URL belongs to Spack's public cache."""
    return f"{url}/".startswith(f"{PUBLIC_MIRRORS}/")


def sort_releases(names: set[str], leading: Iterable[str] = ()) -> list[str]:
    """Return branches, then releases and snapshots, newest first, then others.

    Names in `leading` come before all others, in their order.
    """
    ordered = []
    for name in dict.fromkeys(leading):
        if name in names:
            ordered.append(name)
    remaining = names.difference(ordered)
    branches = snapshot_branches(names)
    for kind in _ORDER:
        # By name, which is the order of branches and others.
        of_kind = sorted(
            name for name in remaining if release_kind(name, branches) == kind
        )
        if kind == "release":
            of_kind.sort(key=_release_number, reverse=True)
        elif kind == "snapshot":
            of_kind = _newest_first(of_kind)
        ordered += of_kind
    return ordered


def _release_number(name: str) -> VersionKey:
    """Return the key by which Spack orders the version of a release such as `v1.0`."""
    return version_key(name.removeprefix("v"))


def releases_before(names: Iterable[str]) -> dict[str, str]:
    """Return the preceding release of each release that has one.

    A snapshot follows the previous snapshot of its branch, a branch its newest
    snapshot, and a release its newest snapshot, or else the previous release.
    """
    ordered = sort_releases(set(names))
    # Both lists are from new to old, so the second of two neighbours is the older one.
    releases = [name for name in ordered if release_kind(name) == "release"]
    before = dict(pairwise(releases))
    for branch, snapshots in snapshot_branches(ordered).items():
        # A name such as `develop-2026-11-24-2026-11-25` has a snapshot as its branch,
        # which has a place in its own branch.
        if release_kind(branch) != "snapshot" and branch in ordered:
            before[branch] = snapshots[0]
        before |= pairwise(snapshots)
    return before


def thinned_out(names: Iterable[str], newest: int) -> set[str]:
    """Return the snapshots to remove: daily ones stay for `newest`, then weekly, then
    monthly ones.

    Before the newest snapshots of a branch, the first of each ISO week stays for as
    many weeks; before these weeks, the first of each month.
    """
    removed: set[str] = set()
    for snapshots in snapshot_branches(names).values():
        daily = snapshots[:newest]
        weekly = _oldest_by(_week, snapshots[newest:])
        monthly = _oldest_by(_month, weekly[newest:])
        kept = {*daily, *weekly[:newest], *monthly}
        removed |= set(snapshots) - kept
    return removed


def _oldest_by(
    period_of: Callable[[str], tuple[int, int]], snapshots: Sequence[str]
) -> list[str]:
    """Return the oldest snapshot of each period, from new to old.

    Args:
        period_of: returns the week or the month of a snapshot.
        snapshots: snapshots from new to old.
    """
    # The last snapshot of a period replaces the others, in their place.
    oldest = {}
    for name in snapshots:
        oldest[period_of(name)] = name
    return list(oldest.values())


def _week(snapshot: str) -> tuple[int, int]:
    """Return the year and the week of a snapshot in the ISO calendar."""
    year, week, _ = date.fromisoformat(str(release_date(snapshot))).isocalendar()
    return year, week


def _month(snapshot: str) -> tuple[int, int]:
    day = date.fromisoformat(str(release_date(snapshot)))
    return day.year, day.month
