"""How many configurations and specs each package has for each target, in a release and a stack."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from spack_cache_db.query.lookups import Lookups, Release, Stack
from spack_cache_db.query.open import select

_TARGETS = """
SELECT configurations.package, configurations.target, {} FROM {} WHERE {}
GROUP BY configurations.package, configurations.target
"""
_LISTED = "AS listed JOIN configurations ON configurations.id = listed.configuration"
TARGETS = _TARGETS.format(
    "count(*), sum(spec_count)", "configurations", "configurations.spec_count > 0"
)
TARGETS_IN_RELEASE = _TARGETS.format(
    "count(*), sum(listed.spec_count)",
    f"configuration_releases {_LISTED}",
    "listed.release = :release",
)
TARGETS_IN_STACK = _TARGETS.format(
    "count(*), sum(listed.spec_count)",
    f"configuration_stacks {_LISTED}",
    "listed.stack = :stack",
)
# Within a release a spec has the configuration that the release shows (see query/specs.py).
TARGETS_IN_BOTH = _TARGETS.format(
    "count(DISTINCT configurations.id), count(*)",
    """listings JOIN specs ON specs.id = listings.spec
    LEFT JOIN listing_configurations AS other
      ON other.release = listings.release AND other.spec = listings.spec
    JOIN configurations
      ON configurations.id = coalesce(other.configuration, specs.configuration)""",
    """listings.release = :release AND listings.stacks IN (
      SELECT stack_set FROM stack_set_members WHERE stack = :stack)""",
)

Counts = dict[str, dict[str, tuple[int, int]]]
"""By package and target: configurations, and specs."""


def package_counts(
    conn: sqlite3.Connection, lookups: Lookups, release: Release | None, stack: Stack | None
) -> Counts:
    """Return the counts in a release, a stack, that stack in that release, or everywhere."""
    counts: Counts = {}
    packages, targets = lookups.words["package"], lookups.words["target"]
    for package, target, configurations, specs in _rows(conn, release, stack):
        counts.setdefault(packages[package], {})[targets[target]] = (configurations, specs)
    return counts


def _rows(
    conn: sqlite3.Connection, release: Release | None, stack: Stack | None
) -> Iterator[tuple[int, int, int, int]]:
    if release is None and stack is None:
        return select(conn, TARGETS)
    if release is None:
        return select(conn, TARGETS_IN_STACK, stack=stack and stack.id)
    if stack is None:
        return select(conn, TARGETS_IN_RELEASE, release=release.id)
    return select(conn, TARGETS_IN_BOTH, release=release.id, stack=stack.id)
