"""How many configurations and specs each package has, or has for each target, in one place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from spack_cache_db.query.lookups import Lookups, Release, Stack
from spack_cache_db.query.open import select

_LISTED = "AS listed JOIN configurations ON configurations.id = listed.configuration"
ANYWHERE = "count(*), sum(spec_count) FROM configurations WHERE configurations.spec_count > 0"
IN_RELEASE = f"""
count(*), sum(listed.spec_count) FROM configuration_releases {_LISTED}
WHERE listed.release = :release
"""
IN_STACK = f"""
count(*), sum(listed.spec_count) FROM configuration_stacks {_LISTED} WHERE listed.stack = :stack
"""
# Within a release a spec has the configuration that the release shows (see query/specs.py).
IN_BOTH = """
count(DISTINCT configurations.id), count(*)
FROM release_specs AS shown JOIN configurations ON configurations.id = shown.configuration
WHERE shown.release = :release
  AND shown.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
"""
PACKAGE = ("configurations.package",)
# To sort by both takes a third of the time.
PACKAGE_AND_TARGET = ("configurations.package", "configurations.target")

Count = tuple[int, int]
"""Configurations, and specs."""


def package_counts(
    conn: sqlite3.Connection, lookups: Lookups, release: Release | None, stack: Stack | None
) -> dict[str, Count]:
    """Return the counts in a release, a stack, that stack in that release, or everywhere."""
    packages = lookups.words["package"]
    rows = _rows(conn, PACKAGE, release, stack)
    return {packages[package]: (configurations, specs) for package, configurations, specs in rows}


def counts_by_target(
    conn: sqlite3.Connection, lookups: Lookups, release: Release | None, stack: Stack | None
) -> dict[str, dict[str, Count]]:
    """Return these counts of each package for each target."""
    counts: dict[str, dict[str, Count]] = {}
    packages, targets = lookups.words["package"], lookups.words["target"]
    rows = _rows(conn, PACKAGE_AND_TARGET, release, stack)
    for package, target, configurations, specs in rows:
        counts.setdefault(packages[package], {})[targets[target]] = (configurations, specs)
    return counts


def _rows(
    conn: sqlite3.Connection,
    by: tuple[str, ...],
    release: Release | None,
    stack: Stack | None,
) -> Iterator[tuple[int, ...]]:
    """Yield the columns by which is counted, and the counts."""
    columns = ", ".join(by)
    counted = {(False, False): ANYWHERE, (True, False): IN_RELEASE, (False, True): IN_STACK}
    sql = counted.get((release is not None, stack is not None), IN_BOTH)
    where = {"release": release and release.id, "stack": stack and stack.id}
    return select(conn, f"SELECT {columns}, {sql} GROUP BY {columns}", **where)
