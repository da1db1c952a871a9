"""site.pages.package: the rows of a package, what is folded, and what filters leave."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.site.pages.filters import Filters
from spack_cache_db.site.pages.package import PackagePage, load_package
from tests import pagetexts
from tests.conftest import Build
from tests.pagetexts import spec


def hdf5(conn: sqlite3.Connection, lookups: Lookups, filters: Filters) -> PackagePage:
    """The page of hdf5."""
    page = load_package(conn, lookups, "hdf5", filters)
    assert page is not None
    return page


def test_look_alike_specs_are_one_row(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Fourteen specs in five configurations are five rows with their counts."""
    page = hdf5(conn, lookups, Filters())

    assert (page.configuration_count, page.spec_count) == (5, 14)
    assert sorted(row.spec_count for row in page.rows) == [1, 1, 2, 3, 7]


def test_common_values_are_folded(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """What is the same in all rows stands once above the table, and in no row."""
    page = hdf5(conn, lookups, Filters(version="1.14.5", target="x86_64_v3"))

    assert ("compiler", "gcc@13.2.0") in page.common
    assert page.common_variants == ("build_system=cmake", "~cxx")
    assert sorted(row.variants for row in page.rows) == [("+mpi",), ("~mpi",)]


def test_common_values_can_be_shown(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """On request every row says everything."""
    page = hdf5(conn, lookups, Filters(version="1.14.5", common=True))

    assert page.common == ()
    assert all("build_system=cmake" in row.variants for row in page.rows)


@pytest.mark.parametrize(
    ("filters", "configurations", "specs"),
    [
        (Filters(version="1.14.5"), 3, 12),
        (Filters(target="zen3"), 1, 1),
        (Filters(host="zen3"), 4, 12),
        (Filters(host="icelake"), 3, 11),
        (Filters(host="neoverse_v2"), 1, 2),
        (Filters(host="no such machine"), 0, 0),
        (Filters(compiler="gcc@11.4.0"), 1, 1),
        (Filters(os="rhel8"), 1, 1),
        (Filters(variants=("+mpi",)), 4, 11),
        (Filters(variants=("+mpi", "~cxx"), target="x86_64_v3"), 2, 8),
        (Filters(stack="hep"), 1, 7),
        (Filters(release="v0.23.1"), 1, 7),
        (Filters(release="develop", stack="e4s"), 3, 11),
        (Filters(release="v0.23.1", stack="e4s-arm"), 0, 0),
        (Filters(release="no such release"), 0, 0),
        (Filters(stack="root"), 0, 0),
        (Filters(version="1.14.5", target="zen3"), 0, 0),
    ],
)
def test_filters_combine_with_and(
    conn: sqlite3.Connection,
    lookups: Lookups,
    filters: Filters,
    configurations: int,
    specs: int,
) -> None:
    """Each further filter leaves fewer rows, and the counts are those of the place chosen."""
    page = hdf5(conn, lookups, filters)

    assert (page.configuration_count, page.spec_count) == (configurations, specs)


def test_what_is_current_comes_first(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """What the foremost release has not any more comes last; in a chosen release, the newest."""
    versions = [row.configuration.version for row in hdf5(conn, lookups, Filters()).rows]
    snapshot = hdf5(conn, lookups, Filters(release="develop-2025-04-20"))

    assert versions == ["1.14.5", "1.14.5", "1.14.5", "1.9", "1.14.10"]
    assert [row.configuration.version for row in snapshot.rows] == ["1.14.10", "1.14.5"]


def test_a_package_that_is_known_as_a_dependency_only(real_index: sqlite3.Connection) -> None:
    """Its page has no configuration, no version and nothing to choose."""
    lookups = read_lookups(real_index)
    page = load_package(real_index, lookups, "gcc", Filters.parse([]))

    assert page is not None
    assert (page.package.release_count, page.package.newest_version) == (0, None)
    assert (page.rows, page.choices, page.grid.rows, page.spec_count) == ((), (), (), 0)


def test_a_package_that_one_release_shows(built: Build) -> None:
    """Its page has no configuration, and offers the release that has one."""
    conn = built(
        a=pagetexts.page("bar", "develop", [spec(1)]), b=pagetexts.page("baz", "v1.0", [spec(1)])
    )
    lookups = read_lookups(conn)

    anywhere = load_package(conn, lookups, "baz", Filters())
    there = load_package(conn, lookups, "baz", Filters(release="v1.0"))

    assert anywhere is not None and there is not None
    assert (anywhere.rows, anywhere.package.newest_version) == ((), None)
    assert [(each.name, each.values) for each in anywhere.choices] == [("release", (("v1.0", 1),))]
    assert [row.spec_count for row in there.rows] == [1]


def test_externals_are_no_configurations_of_a_package(real_index: sqlite3.Connection) -> None:
    """Rows, grid and filters of a package that also has an external have its binaries only."""
    lookups = read_lookups(real_index)
    page = load_package(real_index, lookups, "llvm", Filters.parse([]))

    assert page is not None
    assert page.spec_count == page.package.spec_count > 0
    assert "17.0.6" not in str((page.rows, page.grid, page.choices))
