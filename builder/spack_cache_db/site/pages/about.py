"""What the site says of itself: how old its data is, how much there is, and where it is from."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.lookups import Lookups, Release
from spack_cache_db.query.open import select

TOTALS = """
SELECT
  (SELECT count(*) FROM packages WHERE spec_count > 0),
  (SELECT count(*) FROM specs WHERE release_count > 0),
  (SELECT count(*) FROM configurations WHERE spec_count > 0)
"""
PAGES = "SELECT format, count(*) FROM pages GROUP BY format ORDER BY format"
MIRRORS = """
SELECT releases.name, stacks.name, mirrors.url, mirrors.path, mirrors.format, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
ORDER BY releases.position, stacks.name, mirrors.path
"""
PROBLEMS = "SELECT count(*) FROM problems"


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
    """What there is to tell of a file.

    Attributes:
        example: a release of the file, to show what one is.
        pages: how many pages it was built from, by their format.
    """

    package_count: int
    spec_count: int
    configuration_count: int
    release_count: int
    stack_count: int
    example: Release | None
    first_snapshot: str | None
    newest_snapshot: str | None
    pages: tuple[tuple[str, int], ...]
    mirrors: tuple[Mirror, ...]
    problem_count: int


def load_about(conn: sqlite3.Connection, lookups: Lookups) -> About:
    """Return what there is to tell of the file."""
    packages, specs, configurations = next(select(conn, TOTALS))
    dates = [each.date for each in lookups.releases.values() if each.date]
    return About(
        package_count=packages,
        spec_count=specs,
        configuration_count=configurations,
        release_count=len(lookups.releases),
        stack_count=len(lookups.stacks),
        example=next(iter(lookups.releases.values()), None),
        first_snapshot=min(dates, default=None),
        newest_snapshot=newest_snapshot(lookups),
        pages=tuple((name, count) for name, count in select(conn, PAGES)),
        mirrors=tuple(Mirror(*row) for row in select(conn, MIRRORS)),
        problem_count=next(select(conn, PROBLEMS))[0],
    )


def newest_snapshot(lookups: Lookups) -> str | None:
    """Return the day of the newest snapshot, YYYY-MM-DD; None where there is no snapshot."""
    return max((each.date for each in lookups.releases.values() if each.date), default=None)
