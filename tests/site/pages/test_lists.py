"""Packages, releases and stacks: sorted, narrowed and counted as the address says."""

from dataclasses import replace
from itertools import product

import pytest

from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.pages.list_page import ListFilters, ListPage
from spack_cache_db.site.pages.lists import load_list
from spack_cache_db.site.pages.package_list import load_packages, processors_of_packages
from spack_cache_db.site.pages.processor_columns import counts_by_processor


def packages(lookups: Lookups, **asked: str) -> ListPage:
    """Return the list of packages as an address with these fields asks for it."""
    return load_packages(lookups, ListFilters.parse(list(asked.items())))


def release_names(lookups: Lookups) -> list[str]:
    """Return the names of all releases, in order."""
    return [release.name for release in lookups.releases.values()]


def names(page: ListPage) -> list[str]:
    """Return the names of a list, in its order."""
    return [row["name"] for row in page.in_order()]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["hdf5", "hostile", "netcdf-c", "py-torch", "py-torchvision", "zlib"]),
        ({"q": "TORCH"}, ["py-torch", "py-torchvision"]),
        ({"release": "v0.23.1"}, ["hdf5", "py-torch", "zlib"]),
        ({"stack": "hep"}, ["hdf5"]),
        ({"stack": "e4s", "release": "v0.23.1"}, ["hdf5", "py-torch"]),
        ({"has": "aarch64"}, ["hdf5"]),
        ({"host": "neoverse_v2"}, ["hdf5"]),
        (
            {"host": "haswell", "q": "h"},
            ["hdf5", "hostile", "py-torch", "py-torchvision"],
        ),
        ({"has": "x86_64", "lacks": "aarch64", "q": "5"}, []),
        (
            {"has": "x86_64_v3", "lacks": "zen3", "release": "develop-2025-04-20"},
            ["py-torch", "zlib"],
        ),
        (
            {"sort": "specs"},
            ["hdf5", "zlib", "hostile", "py-torch", "netcdf-c", "py-torchvision"],
        ),
        (
            {"sort": "nothing", "order": "desc"},
            ["zlib", "py-torchvision", "py-torch", "netcdf-c"],
        ),
    ],
)
def test_packages(lookups: Lookups, asked: dict[str, str], expected: list[str]) -> None:
    """A name, a release, a target that is there and one that is not narrow the list;
    all hold.
    """
    assert names(packages(lookups, **asked))[: len(expected) or None] == expected


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_long_list_comes_in_pages(lookups: Lookups, order: str) -> None:
    """The pages together show each row once, in the order of the JSON; filters are
    kept.
    """
    known = load_packages(lookups, ListFilters(sort="name", order=order))
    many = tuple(
        row | {"name": f"{row['name']}-{number:03}"}
        for row in known.rows
        for number in range(90)
    )
    shown: list[str] = []
    page = replace(known, rows=many)

    for number in range(1, page.window.page_count + 1):
        at = replace(page, filters=replace(page.filters, page=str(number)))
        shown += [row["name"] for row in at.in_order()[at.window.rows]]
        assert at.filters.at_page(2) == f"?sort=name&order={order}&page=2"
        assert (
            at.filters.at_page(1) == at.filters.address() == f"?sort=name&order={order}"
        )
    assert shown == [row["name"] for row in page.in_order()]
    assert page.window.page_count > 1


def test_what_is_not_known_is_told(lookups: Lookups) -> None:
    """A name without a binary is named; an unknown one also with those that are
    close.
    """
    unknown = packages(lookups, release="develp", host="zenn").faults
    unused = packages(
        lookups, host="power9le", has="zen9", compiler="gcc@99", os="foo"
    ).faults

    release, machine = unknown
    assert release.startswith("No release is called 'develp'; close: develop")
    assert release.endswith(". All releases are shown.")
    assert machine.startswith("Archspec knows no target 'zenn'; close: zen")
    assert sorted(unused) == [
        "No package in this database is built for the system foo.",
        "No package in this database is built with gcc@99.",
        "No package in this database is for the target zen9.",
        "No package in this database runs on power9le.",
    ]


def test_releases(lookups: Lookups) -> None:
    """Releases stand in the file's order, by kind and name as asked; dates may be
    missing.
    """
    snapshots = load_list(
        lookups, "releases", ListFilters(kind="snapshot", sort="date", order="asc")
    )
    by_date = load_list(lookups, "releases", ListFilters(sort="date"))

    assert names(load_list(lookups, "releases", ListFilters()))[0] == "develop"
    assert names(snapshots) == ["develop-2025-04-13", "develop-2025-04-20"]
    assert names(by_date)[:2] == ["develop-2025-04-20", "develop-2025-04-13"]
    assert by_date.total == len(by_date.rows) == 4


def test_every_column_of_a_narrowed_list_says_what_the_narrowing_has(
    lookups: Lookups,
) -> None:
    """The newest version is that of the release; columns of all releases say that they
    are.
    """
    release, machine, whole = (
        packages(lookups, q="hdf5", **asked)
        for asked in ({"release": "develop-2025-04-13"}, {"host": "aarch64"}, {})
    )

    assert [row["version"] for row in release.rows] == ["1.14.5"]
    assert [row["version"] for row in machine.rows] == ["1.14.5"]
    assert [row["version"] for row in whole.rows] == ["1.14.10"]
    assert [
        column.title for column in release.columns if "any build" in column.title
    ] == [
        "Releases, any build",
        "Last snapshot, any build",
    ]
    assert not [each.title for each in whole.columns if "any build" in each.title]


@pytest.mark.parametrize(
    "asked",
    [{"host": "zen3"}, {"target": "aarch64"}, {"compiler": "gcc", "os": "rhel8"}],
)
def test_the_newest_release_with_a_binary_is_named(
    lookups: Lookups, asked: dict[str, str]
) -> None:
    """It is the first release whose own list is not empty, with as many packages as
    that has.
    """
    lists = {
        name: packages(lookups, release=name, **asked)
        for name in release_names(lookups)
    }
    name, own = next((name, page) for name, page in lists.items() if page.rows)
    found = packages(lookups, **asked).newest

    assert found == (name, len(own.rows))
    assert own.newest is None
    assert packages(lookups, host="power9le").newest is None
    assert packages(lookups).newest is None


def test_packages_of_one_release_and_not_of_another(lookups: Lookups) -> None:
    """`has` and `lacks` take releases: each pair is the difference of the lists of
    both.
    """
    releases = release_names(lookups)
    of = {name: set(names(packages(lookups, release=name))) for name in releases}

    for one, other in product(releases, repeat=2):
        page = packages(lookups, has=one, lacks=other)
        assert set(names(page)) == of[one] - of[other]
        assert (page.faults, page.package_query) == ((), f"?release={one}")
        within = packages(lookups, release=one, has=other, lacks="aarch64")
        assert set(names(within)) <= of[one] & of[other]
    assert any(of[one] - of[other] for one, other in product(releases, repeat=2))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"release": "develop"},
        {"stack": "e4s"},
        {"stack": "e4s", "release": "v0.23.1"},
        {"compiler": "gcc", "stable": "1"},
        {"has": "v0.23.1"},
    ],
)
def test_processors_count_the_binaries_of_a_row(
    lookups: Lookups, asked: dict[str, str]
) -> None:
    """The numbers of a row add up to its binaries, unless a machine is chosen."""
    page = packages(lookups, **asked)
    binaries = {row["name"]: row["specs"] for row in page.rows}
    counts = processors_of_packages(lookups, list(binaries), page.conditions)

    assert binaries
    assert {name: sum(counts[name].values()) for name in counts} == binaries
    with_machine = packages(lookups, **asked, host="haswell")
    shown = [name for name in names(with_machine) if name in binaries]
    assert shown
    of_any = processors_of_packages(lookups, shown, with_machine.conditions)
    assert of_any == {name: counts[name] for name in shown}


def test_an_unknown_package_leaves_the_counts_as_they_are(lookups: Lookups) -> None:
    """The counts of all packages are cached: asking for a name adds none."""
    assert processors_of_packages(lookups, ["hdf5", "nonesuch"], ()).keys() == {"hdf5"}
    counts = counts_by_processor(lookups, matching(lookups, ()))
    with pytest.raises(KeyError):
        counts["nonesuch"]
