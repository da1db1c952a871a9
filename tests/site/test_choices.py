"""site.choices: what a package can be narrowed to, and the grid of versions by targets."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.package import PackagePage
from tests.site.test_package import hdf5


def choice(page: PackagePage, name: str) -> dict[str, int]:
    """The values of one filter with their counts."""
    return next((dict(each.values) for each in page.choices if each.name == name), {})


def test_versions_come_newest_first(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Versions stand in Spack's order, not in that of text: 1.14.10 before 1.14.5 before 1.9."""
    page = hdf5(conn, lookups, Filters())

    assert [version for version, _ in page.grid.rows] == ["1.14.10", "1.14.5", "1.9"]


@pytest.mark.parametrize(
    "chosen",
    [Filters(), Filters(release="develop"), Filters(stack="e4s"), Filters(variants=("+mpi",))],
)
def test_counts_say_what_a_filter_leads_to(
    conn: sqlite3.Connection, lookups: Lookups, chosen: Filters
) -> None:
    """The count beside each value is the number of rows behind it."""
    page = hdf5(conn, lookups, chosen)
    promised = {
        (each.name, value): count
        for each in page.choices
        for value, count in each.values
        if each.name == "variant" or chosen.value(each.name) is None
    }
    kept = {
        (name, value): hdf5(conn, lookups, chosen.with_value(name, value)).configuration_count
        for name, value in promised
    }

    assert promised == kept


def test_root_is_never_a_stack(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """The top-level index is in the file, but no page shows it as a stack."""
    page = hdf5(conn, lookups, Filters())

    assert "root" not in choice(page, "stack")
    assert all("root" not in row.stacks for row in page.rows)
