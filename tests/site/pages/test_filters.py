"""What a page is narrowed to, in an address and in a file; machines to choose from; data."""

from __future__ import annotations

import pytest

from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.site.pages.filters import (
    EVERYWHERE,
    LAST_PAGE,
    Filters,
    Narrowing,
    hosts_of,
    package_links,
    page_number,
)
from spack_cache_db.spack.targets import runs_on


def test_filters_survive_the_address() -> None:
    """What an address says is what the address of the same filters says."""
    pairs = [("release", "develop"), ("variant", "+mpi"), ("variant", "~cxx"), ("versions", "all")]

    assert Filters.parse(pairs).pairs() == pairs


def test_filters_ignore_what_they_do_not_know() -> None:
    """Unknown, empty and senseless parts of an address change nothing."""
    pairs = [
        ("x", "1"),
        ("target", ""),
        ("page", "-3"),
        ("versions", "everything"),
        ("_sql", "drop"),
    ]

    assert Filters.parse(pairs) == Filters()


def test_a_new_filter_starts_at_the_first_page() -> None:
    """Narrowing or widening the rows leads back to page one."""
    filters = Filters(variants=("+mpi",), page=4)

    assert filters.with_value("target", "zen3").page == 1
    assert filters.without("variant", "+mpi") == Filters()


def test_opening_a_row_keeps_the_page() -> None:
    """The hashes of one row are shown where the row stands, and a new filter closes them."""
    filters = Filters(target="zen3", page=4, opened="abc")

    assert filters.address() == "?target=zen3&page=4&open=abc"
    assert Filters.parse(filters.pairs()) == filters
    assert filters.with_value("target", "zen4").opened is None
    assert filters.changed(page=5).opened is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("0", 1),
        ("007", 7),
        ("0" * 5_000 + "7", 7),
        ("9" * 5_000, LAST_PAGE),
        ("1" + "0" * 9, LAST_PAGE),
        ("-7", 1),
        ("1e3", 1),
        ("٣", 1),
        ("", 1),
    ],
)
def test_every_text_is_a_page_number(text: str, number: int) -> None:
    """A number has as many digits as it likes; what is none leads to the first page."""
    assert page_number(text) == number


def test_it_survives_the_address() -> None:
    """What an address says is what the same narrowing says; the first of a name counts."""
    pairs = [("release", "develop"), ("host", "zen3")]

    assert Narrowing.parse([*pairs, ("host", "zen4"), ("q", "x")]).pairs == pairs
    assert Narrowing.parse(pairs).but() == "&release=develop&host=zen3"
    assert Narrowing.parse([("release", ""), ("stack", " ")]) == EVERYWHERE
    assert EVERYWHERE.but() == ""


def test_names_that_are_not_known_are_errors(lookups: Lookups) -> None:
    """A release, a stack or a machine that is not there is told, and not taken for any."""
    assert EVERYWHERE.scope(lookups) == Narrowing(release=None).scope(lookups)
    for narrowing in (Narrowing(release="v9"), Narrowing(stack="root"), Narrowing(host="zen99")):
        with pytest.raises(UnknownNameError):
            narrowing.scope(lookups)


def test_what_it_is_in_a_file(lookups: Lookups) -> None:
    """Names become the ids of the file."""
    scope = Narrowing("develop", "e4s", "zen3").scope(lookups)
    release = lookups.conn.execute("SELECT id FROM releases WHERE name = 'develop'").fetchone()[0]
    stack = lookups.conn.execute("SELECT id FROM stacks WHERE name = 'e4s'").fetchone()[0]

    found = {each.kind: (each.text, each.asked) for each in scope}
    assert found == {
        "release": ("develop", release),
        "stack": ("e4s", stack),
        "host": ("zen3", "zen3"),
    }


TARGETS = ("x86_64_v3", "neoverse_v1")


def test_every_machine_runs_something() -> None:
    """Machines stand by maker, the newest first, and each runs what was built for a target."""
    hosts = hosts_of(TARGETS)

    assert [*hosts][:3] == ["AMD", "Arm", "Intel"]
    assert [*hosts][-1] == "Any x86_64"
    assert hosts["AMD"].index("zen4") < hosts["AMD"].index("zen3")
    assert "x86_64" not in hosts["Any x86_64"]
    for names in hosts.values():
        assert all(any(runs_on(target, host) for target in TARGETS) for host in names)


def test_a_target_that_archspec_does_not_know_is_its_own_machine() -> None:
    """What was built for a processor of another name runs there, and of nothing nothing runs."""
    assert [*hosts_of(["mine"]).values()] == [("mine",)]
    assert hosts_of([]) == {}


def test_data_links_carry_the_filters() -> None:
    """The data of a filtered page is filtered the same way."""
    links = package_links("spack-cache", "hdf5", Filters(release="develop", target="zen3"))

    assert links.json == (
        "/spack-cache/build_listings.json?package=hdf5&release=develop&target=zen3&_shape=array"
    )


def test_a_machine_is_kept() -> None:
    """What runs on a machine has a view; in a release, its targets are named one by one."""
    anywhere = package_links("spack-cache", "hdf5", Filters(host="zen"))
    release = package_links("spack-cache", "hdf5", Filters(host="power9le", release="develop"))

    assert anywhere.browse == "/spack-cache/host_builds?package=hdf5&host=zen"
    assert release.browse == (
        "/spack-cache/build_listings?package=hdf5&release=develop"
        "&target__in=power8le%2Cpower9le%2Cppc64le"
    )
