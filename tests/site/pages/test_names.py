"""site.pages.names: what a word in the search box leads to."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.names import LONGEST, Name, having, load_names, named, suggested


@pytest.fixture(scope="module")
def names(conn: sqlite3.Connection, lookups: Lookups) -> tuple[Name, ...]:
    """Every name of the invented cache."""
    return load_names(conn, lookups)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hdf5", "/package/hdf5"),
        (" HDF5 ", "/package/hdf5"),
        ("develop-2025-04-20", "/release/develop-2025-04-20"),
        ("V0.23.1", "/release/v0.23.1"),
        ("hep", "/stack/hep"),
        ("zen3", "/packages?has=zen3"),
        ("aarch64", "/packages?has=aarch64"),
        ("hdf", None),
        ("root", None),
        ("", None),
    ],
)
def test_a_name_has_a_page(names: tuple[Name, ...], text: str, address: str | None) -> None:
    """Packages, releases, stacks and targets lead to a page each, capitals aside."""
    found = named(names, text)

    assert (found and found.address) == address


def test_part_of_a_name(names: tuple[Name, ...]) -> None:
    """What begins with the text comes first, then what has it elsewhere, whatever its kind."""
    found = [(each.kind, each.name) for each in having(names, "E4")]

    assert found == [("stack", "e4s"), ("stack", "e4s-arm")]
    assert [each.name for each in having(names, "vision")] == ["py-torchvision"]
    assert [each.name for each in having(names, "h")][:3] == ["hdf5", "hostile", "hep"]
    assert having(names, "x" * (LONGEST + 1)) == having(names, " ") == []


def test_suggestions_are_few(names: tuple[Name, ...]) -> None:
    """At most eight names, with what they are of."""
    assert suggested(names, "torchv") == [{"name": "py-torchvision", "kind": "package"}]
    assert len(suggested(names, "e")) == 8
