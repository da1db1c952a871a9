"""site.pages.grid: versions by targets."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.filters import Filters
from tests.site.pages.test_package import hdf5


def test_versions_come_newest_first(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Versions stand in Spack's order, not in that of text: 1.14.10 before 1.14.5 before 1.9."""
    page = hdf5(conn, lookups, Filters())

    assert [version for version, _ in page.grid.rows] == ["1.14.10", "1.14.5", "1.9"]


def test_cells_count_binaries(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A cell says how many binaries there are of a version for a target, None for none."""
    grid = hdf5(conn, lookups, Filters(version="1.14.5")).grid

    assert grid.targets == ("aarch64", "x86_64_v3")
    assert grid.rows == (("1.14.5", (2, 10)),)
