"""What the pages are computed from, over the invented cache."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.site.catalog import Catalog
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.find import find
from spack_cache_db.site.groups import load_release, load_stack
from spack_cache_db.site.home import load_home
from spack_cache_db.site.package import PackagePage, load_package
from spack_cache_db.site.spec import load_spec
from tests.site.cache import spec_hash

MPI = "hdf5 1.14.5 x86_64_v3 gcc@13.2.0 ('build_system=cmake', '~cxx', '+mpi') 0"


def hdf5(conn: sqlite3.Connection, catalog: Catalog, filters: Filters) -> PackagePage:
    """The page of hdf5."""
    page = load_package(conn, catalog, "hdf5", filters)
    assert page is not None
    return page


def facet(page: PackagePage, name: str) -> dict[str, int]:
    """The values of one filter with their counts."""
    return next((dict(each.values) for each in page.facets if each.name == name), {})


def test_versions_come_newest_first(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """Versions stand in Spack's order, not in that of text: 1.14.10 before 1.14.5 before 1.9."""
    page = hdf5(conn, catalog, Filters())

    assert [version for version, _ in page.grid.rows] == ["1.14.10", "1.14.5", "1.9"]


def test_look_alike_specs_are_one_row(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """Fourteen specs in five configurations are five rows with their counts."""
    page = hdf5(conn, catalog, Filters())

    assert (page.configuration_count, page.spec_count) == (5, 14)
    assert sorted(row.configuration.spec_count for row in page.rows) == [1, 1, 2, 3, 7]


def test_common_values_are_folded(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """What is the same in all rows stands once above the table, and in no row."""
    page = hdf5(conn, catalog, Filters(version="1.14.5", target="x86_64_v3"))

    assert ("compiler", "gcc@13.2.0") in page.common
    assert page.common_variants == ("build_system=cmake", "~cxx")
    assert sorted(row.variants for row in page.rows) == [("+mpi",), ("~mpi",)]


def test_common_values_can_be_shown(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """On request every row says everything."""
    page = hdf5(conn, catalog, Filters(version="1.14.5", common=True))

    assert page.common == ()
    assert all("build_system=cmake" in row.variants for row in page.rows)


@pytest.mark.parametrize(
    ("filters", "configurations", "specs"),
    [
        (Filters(version="1.14.5"), 3, 12),
        (Filters(target="zen3"), 1, 1),
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
    catalog: Catalog,
    filters: Filters,
    configurations: int,
    specs: int,
) -> None:
    """Each further filter leaves fewer rows, and the counts are those of the place chosen."""
    page = hdf5(conn, catalog, filters)

    assert (page.configuration_count, page.spec_count) == (configurations, specs)


@pytest.mark.parametrize(
    "chosen",
    [Filters(), Filters(release="develop"), Filters(stack="e4s"), Filters(variants=("+mpi",))],
)
def test_counts_say_what_a_filter_leads_to(
    conn: sqlite3.Connection, catalog: Catalog, chosen: Filters
) -> None:
    """The count beside each value is the number of rows behind it."""
    page = hdf5(conn, catalog, chosen)
    promised = {
        (each.name, value): count
        for each in page.facets
        for value, count in each.values
        if each.name == "variant" or chosen.value(each.name) is None
    }
    kept = {
        (name, value): hdf5(conn, catalog, chosen.with_value(name, value)).configuration_count
        for name, value in promised
    }

    assert promised == kept


def test_root_is_never_a_stack(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """The top-level index is in the file, but no page shows it as a stack."""
    page = hdf5(conn, catalog, Filters())

    assert "root" not in facet(page, "stack")
    assert load_stack(conn, catalog, "root") is None
    assert all("root" not in row.stacks for row in page.rows)


def test_hashes_are_those_of_the_chosen_release(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """A hash offered under a release filter is listed in that release."""
    page = hdf5(conn, catalog, Filters(release="develop-2025-04-20", target="zen3"))

    assert [row.hashes for row in page.rows] == [
        (spec_hash(MPI.replace("1.14.5 x86_64_v3", "1.14.10 zen3")),)
    ]


def test_spec_knows_its_listings_and_siblings(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """A spec's page has every release that lists it and every other hash of its configuration."""
    page = load_spec(conn, catalog, spec_hash(MPI))

    assert page is not None
    assert [each.release for each in page.listings] == [
        "develop",
        "v0.23.1",
        "develop-2025-04-20",
        "develop-2025-04-13",
    ]
    assert (page.sibling_count, len(page.siblings)) == (6, 6)
    assert page.stacks == ("e4s", "hep")
    assert page.install.mirror == "spack mirror add develop https://binaries.spack.io/develop"


def test_command_hash_is_unambiguous(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """Where two hashes share 7 characters the install command uses 8."""
    page = load_spec(conn, catalog, "aaaaaaa" + "b" * 25)

    assert page is not None
    assert page.install.install == "spack install zlib/aaaaaaab"


def test_snapshots_know_their_neighbours(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """A snapshot leads to the one before and after; a branch has neither."""
    earlier = load_release(conn, catalog, "develop-2025-04-13")
    later = load_release(conn, catalog, "develop-2025-04-20")
    branch = load_release(conn, catalog, "develop")

    assert earlier is not None and (earlier.before, earlier.after) == (None, "develop-2025-04-20")
    assert later is not None and (later.before, later.after) == ("develop-2025-04-13", None)
    assert branch is not None and (branch.before, branch.after) == (None, None)


def test_stack_counts_each_spec_once(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """A stack's packages are counted over all releases, each spec once."""
    page = load_stack(conn, catalog, "hep")

    assert page is not None
    assert page.packages == (("hdf5", 7),)
    assert len(page.releases) == 4


def test_home_counts_everything(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """The totals on the first page are those of the file, and it starts with a release."""
    page = load_home(conn, catalog)

    assert (page.totals.packages, page.totals.releases) == (6, 4)
    assert page.install is not None and page.install.release == "v0.23.1"
    assert [name for name, _ in page.over_time] == ["develop-2025-04-13", "develop-2025-04-20"]


def test_search_leads_to_a_package(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """The name of a package alone is that package."""
    assert find(conn, catalog, " hdf5 ").package == "hdf5"


def test_search_leads_to_a_spec(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """A hash is that spec; a short one may be several."""
    assert find(conn, catalog, "/ddddddd").hashes == ("ddddddd" + "e" * 25,)
    assert len(find(conn, catalog, "aaaaaaa").hashes) == 2


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("hdf5 +mpi", 4),
        ("hdf5+mpi target=aarch64", 1),
        ("hdf5@1.14", 4),
        ("hdf5@1.10:1.14.5", 3),
        ("hdf5 target=:zen3", 4),
        ("hdf5@1.14.5 ~mpi", 1),
        ("hdf5 %gcc@11", 1),
        ("+cuda", 1),
        ("~cuda", 1),
        ("target=zen3 +mpi", 1),
        ("hdf5 +cuda", 0),
        ("torch", 0),
    ],
)
def test_search_reads_specs(
    conn: sqlite3.Connection, catalog: Catalog, text: str, rows: int
) -> None:
    """Configurations are found that satisfy the spec, and only those."""
    page = find(conn, catalog, text)

    assert page.found is not None
    assert page.found.count == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [("hdf5 +", "name of a variant"), ("hdf5 ^mpich", "no dependencies"), ("mpi", "virtual")],
)
def test_search_says_what_is_wrong(
    conn: sqlite3.Connection, catalog: Catalog, text: str, said: str
) -> None:
    """A text that is no spec, or that pages cannot answer, has a reason and no rows."""
    page = find(conn, catalog, text)

    assert page.error is not None and said in page.error
    assert page.found is None


def test_search_finds_parts_of_names(conn: sqlite3.Connection, catalog: Catalog) -> None:
    """Part of a name finds all packages that have it."""
    names = [name for name, _ in find(conn, catalog, "torch").packages]

    assert sorted(names) == ["py-torch", "py-torchvision"]
