"""Names of releases: kind, date, order, preceding release, and public mirror."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from spack_cache_db.spack.versions import version_key

_SNAPSHOT = re.compile(r"(?P<branch>.+)-(?P<date>\d{4}-\d{2}-\d{2})")
_RELEASE = re.compile(r"v\d+(?:\.\d+)*")
_BRANCHES = {"develop", "main", "master"}
_ORDER = ("branch", "release", "snapshot", "other")
_PUBLIC = "https://binaries.spack.io"

PUBLIC_SITE = "https://cache.spack.io/"
"""The website of Spack's public cache."""


def release_kind(name: str) -> str:
    """Return `branch`, `snapshot` (a name that ends in a date), `release` or `other`."""
    if name in _BRANCHES:
        return "branch"
    if release_date(name):
        return "snapshot"
    return "release" if _RELEASE.fullmatch(name) else "other"


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


def sort_releases(names: set[str], foremost: Iterable[str] = ()) -> list[str]:
    """Return branches, then releases and snapshots, newest first, then others.

    Names in `foremost` come before all others, in their order.
    """
    ordered = [*dict.fromkeys(name for name in foremost if name in names)]
    remaining = names - {*ordered}
    for kind in _ORDER:
        of_kind = sorted(name for name in remaining if release_kind(name) == kind)
        if kind == "release":
            of_kind.sort(key=lambda name: version_key(name.removeprefix("v")), reverse=True)
        elif kind == "snapshot":
            of_kind.sort(key=lambda name: str(release_date(name)), reverse=True)
        ordered += of_kind
    return ordered


def releases_before(names: Iterable[str]) -> dict[str, str]:
    """Return the preceding release of each release that has one.

    A snapshot follows the previous snapshot of its branch, a branch its newest snapshot, and a
    release the previous release.
    """
    newer: dict[str, str] = {}
    before: dict[str, str] = {}
    for name in sort_releases({*names}):
        series = _series(name)
        if series is None:
            continue
        if series in newer:
            before[newer[series]] = name
        newer[series] = name
    return before


def _series(name: str) -> str | None:
    """Return the branch of a branch or snapshot, "" for a release, None for others."""
    kind = release_kind(name)
    if kind == "snapshot" and (match := _SNAPSHOT.fullmatch(name)):
        return match["branch"]
    return {"branch": name, "release": ""}.get(kind)
