"""site.pages.package_counts: configurations and specs by package, and by target."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest

from spack_cache_db.query.find import find
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.package_counts import Count, counts_by_target, package_counts


@pytest.mark.parametrize(
    ("release", "stack"),
    [*product([None, "develop", "develop-2025-04-20", "v0.23.1"], [None, "e4s", "hep"])],
)
def test_counts_are_what_is_found(
    conn: sqlite3.Connection, lookups: Lookups, release: str | None, stack: str | None
) -> None:
    """Every count is that of the answer to `*` in the same release and stack."""
    expected: dict[str, dict[str, Count]] = {}
    for found in find(conn, "*", release=release, stack=stack):
        counts = expected.setdefault(found.package, {})
        configurations, specs = counts.get(found.target, (0, 0))
        counts[found.target] = (configurations + 1, specs + found.spec_count)

    place = lookups.release(release), lookups.stack(stack)
    counted = counts_by_target(conn, lookups, *place)

    assert counted == expected
    assert counted
    assert package_counts(conn, lookups, *place) == {
        name: (sum(each[0] for each in counts.values()), sum(each[1] for each in counts.values()))
        for name, counts in expected.items()
    }
