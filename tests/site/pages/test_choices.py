"""site.pages.choices: what a package can be narrowed to."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.filters import Filters
from spack_cache_db.site.pages.package import PackagePage
from tests.site.pages.test_package import hdf5


def choice(page: PackagePage, name: str) -> dict[str, int]:
    """The values of one filter with their counts."""
    return next((dict(each.values) for each in page.choices if each.name == name), {})


@pytest.mark.parametrize(
    "chosen",
    [
        Filters(),
        Filters(release="develop"),
        Filters(stack="e4s"),
        Filters(variants=("+mpi",)),
        Filters(host="zen3"),
        Filters(release="develop", host="icelake", version="1.14.5"),
        Filters(target="zen3", compiler="gcc@13.2.0"),
        Filters(variants=("+mpi", "~cxx"), stack="hep", release="v0.23.1"),
        Filters(os="rhel8", version="1.14.5"),
        Filters(os="rhel8", version="1.14.5", target="zen3"),
        Filters(release="no such release", host="zen3"),
    ],
)
def test_counts_say_what_a_choice_leads_to(
    conn: sqlite3.Connection, lookups: Lookups, chosen: Filters
) -> None:
    """The count beside each value is the number of rows behind it, in place of the one chosen."""
    page = hdf5(conn, lookups, chosen)
    promised = {
        (each.name, each.chosen, value): count
        for each in page.choices
        for value, count in each.values
    }

    def kept(name: str, before: str | None, value: str) -> int:
        freed = chosen if before is None else chosen.without(name, before)
        return hdf5(conn, lookups, freed.with_value(name, value)).configuration_count

    assert promised == {each: kept(*each) for each in promised}


def test_choices_stay_where_nothing_is_left(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """With no result each filter still shows its value, and what it could be instead."""
    chosen = Filters(os="rhel8", version="1.14.5", variants=("+mpi",))
    page = hdf5(conn, lookups, chosen)

    assert page.configuration_count == 0
    assert {each.name: each.chosen for each in page.choices if each.chosen} == {
        "os": "rhel8",
        "version": "1.14.5",
        "variant": "+mpi",
    }
    assert choice(page, "version") == {"1.14.5": 0, "1.9": 1}
    assert choice(page, "os") == {"rhel8": 0, "ubuntu24.04": 2}


def test_a_variant_can_be_switched(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A chosen variant is called by its name and offers its other values."""
    (mpi,) = (
        each
        for each in hdf5(conn, lookups, Filters(variants=("+mpi",))).choices
        if each.chosen == "+mpi"
    )

    assert (mpi.label, dict(mpi.values)) == ("mpi", {"+mpi": 4, "~mpi": 1})


def test_machines_stand_by_family(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Each machine on which something runs is offered, those of one family side by side."""
    hosts = choice(hdf5(conn, lookups, Filters()), "host")

    assert hosts["zen3"] == 4
    assert hosts["icelake"] == 3
    assert hosts["neoverse_v2"] == 1
    assert "power9le" not in hosts
    assert list(hosts).index("neoverse_v2") < list(hosts).index("icelake")


def test_root_is_never_a_stack(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """The top-level index is in the file, but no page shows it as a stack."""
    page = hdf5(conn, lookups, Filters())

    assert "root" not in choice(page, "stack")
    assert all("root" not in row.stacks for row in page.rows)
