"""Names of releases: their kind, date and order, the release before, the mirror."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any

from spack_cache_db.spack.versions import version_key

_SNAPSHOT = re.compile(r"(?P<branch>.+)-(?P<date>\d{4}-\d{2}-\d{2})")
_RELEASE = re.compile(r"v\d+(?:\.\d+)*")
_BRANCHES = {"develop", "main", "master"}
_ORDER = ("branch", "release", "snapshot", "other")
_PUBLIC = "https://binaries.spack.io"

PUBLIC_SITE = "https://cache.spack.io/"
"""The address where Spack's public cache has its own pages."""


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
    """Return where Spack's public cache has the mirror of a release: under its name."""
    return f"{_PUBLIC}/{name}"


def is_public_mirror(url: str) -> bool:
    """Return whether an address lies in Spack's public cache."""
    return f"{url}/".startswith(f"{_PUBLIC}/")


def sort_releases(names: set[str], foremost: Iterable[str] = ()) -> list[str]:
    """Return branches, then releases, then snapshots, both from new to old, then others.

    Args:
        names: the releases.
        foremost: those that come before all others, in their order.
    """

    def newness(name: str) -> Any:
        return version_key(name.removeprefix("v"))

    ordered = [*dict.fromkeys(name for name in foremost if name in names)]
    others = names - {*ordered}
    for kind in _ORDER:
        of_kind = sorted(name for name in others if release_kind(name) == kind)
        if kind == "release":
            of_kind.sort(key=newness, reverse=True)
        elif kind == "snapshot":
            of_kind.sort(key=lambda name: str(release_date(name)), reverse=True)
        ordered += of_kind
    return ordered


def releases_before(names: Iterable[str]) -> dict[str, str]:
    """Return the release that came before each: what it is compared with.

    Before a snapshot is the previous snapshot of its branch, before a branch the newest snapshot of
    it, and before a release the previous release. What has none before it is left out.
    """
    newer: dict[str, str] = {}
    before: dict[str, str] = {}
    for name in sort_releases({*names}):
        line = _line(name)
        if line is None:
            continue
        if line in newer:
            before[newer[line]] = name
        newer[line] = name
    return before


def _line(name: str) -> str | None:
    """Return what releases that follow each other have in common: a branch, or being releases."""
    kind = release_kind(name)
    if kind == "snapshot" and (match := _SNAPSHOT.fullmatch(name)):
        return match["branch"]
    return {"branch": name, "release": ""}.get(kind)
