"""Names of releases: kind, date, order, preceding release, and public mirror."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from itertools import pairwise

from spack_cache_db.spack.versions import version_key

_SNAPSHOT = re.compile(r"(?P<branch>.+)-(?P<date>\d{4}-\d{2}-\d{2})")
_RELEASE = re.compile(r"v\d+(?:\.\d+)*")
_BRANCHES = {"develop", "main", "master"}
_ORDER = ("branch", "release", "snapshot", "other")
_PUBLIC = "https://binaries.spack.io"

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


def snapshot_branches(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the snapshots of each branch that has some, from new to old."""
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: str(release_date(name)), reverse=True):
        if release_date(name) and (match := _SNAPSHOT.fullmatch(name)):
            found.setdefault(match["branch"], []).append(name)
    return found


def release_date(name: str) -> str | None:
    """Return a snapshot's date as `YYYY-MM-DD`; None for other releases."""
    match = _SNAPSHOT.fullmatch(name)
    if not match:
        return None
    try:
        return date.fromisoformat(match["date"]).isoformat()
    except ValueError:
        return None


def public_mirror(name: str) -> str:
    """Return the URL of a release's mirror in Spack's public cache."""
    return f"{_PUBLIC}/{name}"


def is_public_mirror(url: str) -> bool:
    """Return whether a URL belongs to Spack's public cache."""
    return f"{url}/".startswith(f"{_PUBLIC}/")


def sort_releases(names: set[str], leading: Iterable[str] = ()) -> list[str]:
    """Return branches, then releases and snapshots, newest first, then others.

    Names in `leading` come before all others, in their order.
    """
    ordered = [*dict.fromkeys(name for name in leading if name in names)]
    remaining, branches = names - {*ordered}, snapshot_branches(names)
    for kind in _ORDER:
        of_kind = sorted(
            name for name in remaining if release_kind(name, branches) == kind
        )
        if kind == "release":
            of_kind.sort(
                key=lambda name: version_key(name.removeprefix("v")), reverse=True
            )
        elif kind == "snapshot":
            of_kind.sort(key=lambda name: str(release_date(name)), reverse=True)
        ordered += of_kind
    return ordered


def releases_before(names: Iterable[str]) -> dict[str, str]:
    """Return the preceding release of each release that has one.

    A snapshot follows the previous snapshot of its branch, a branch its newest
    snapshot, and a release its newest snapshot, or else the previous release.
    """
    ordered = sort_releases({*names})
    before = dict(pairwise(name for name in ordered if release_kind(name) == "release"))
    for branch, snapshots in snapshot_branches(ordered).items():
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
    removed = set[str]()
    for snapshots in snapshot_branches(names).values():
        days = {name: date.fromisoformat(str(release_date(name))) for name in snapshots}
        # The last value of a key stays, which is the oldest snapshot.
        weekly = [
            *{
                days[name].isocalendar()[:2]: name for name in snapshots[newest:]
            }.values()
        ]
        monthly = {
            (days[name].year, days[name].month): name for name in weekly[newest:]
        }
        removed |= {*snapshots} - {
            *snapshots[:newest],
            *weekly[:newest],
            *monthly.values(),
        }
    return removed
