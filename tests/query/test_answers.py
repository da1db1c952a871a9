"""What is found, how it is narrowed, and in which order."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from spack_cache_db.query.answers import find
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.spack.lexer import QuerySyntaxError
from tests.conftest import Build
from tests.pagetexts import page, spec

TWO_RELEASES = {
    "a": page(
        "hdf5",
        "develop-2025-01-05",
        [spec(1, versions=["1.9"]), spec(2, versions=["1.10"], stacks=["e4s", "root"])],
    ),
    "b": page(
        "hdf5",
        "develop-2025-02-02",
        [spec(2, versions=["1.10"], stacks=["ml", "root"]), spec(3, versions=["1.10"])],
    ),
    "c": page("hdf5-tools", "develop", [spec(4, target="zen3"), spec(5, os="rhel8", target="m1")]),
    "d": page("iconv", "develop", [spec(6)]),
}


def test_packages_stand_in_order(built: Build) -> None:
    """An anonymous query gives packages by machine and name, each with its newest version first."""
    found = find(built(**TWO_RELEASES), "*")

    assert [(each.package, each.version) for each in found] == [
        ("hdf5", "1.10"),
        ("hdf5", "1.9"),
        ("hdf5-tools", "1.0"),
        ("iconv", "1.0"),
        ("hdf5-tools", "1.0"),
    ]


def test_a_virtual_name_that_is_a_package_is_found(built: Build) -> None:
    """A name that is virtual in Spack is refused, unless the file has such a package."""
    assert len(find(built(**TWO_RELEASES), "iconv@1: ~cuda")) == 1
    with pytest.raises(UnsupportedQuery, match="virtual package"):
        find(built(**TWO_RELEASES), "mpi")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"release": "develop-2025-01-06"}, "no release is called .* close: .*develop-2025-01-05"),
        ({"stack": "e4z"}, "no stack is called 'e4z'; close: e4s"),
        ({"stack": "root"}, "no stack is called 'root'"),
        ({"host": "zen33"}, "archspec knows no target 'zen33'; close: zen3, "),
        (
            {"host": "qqq"},
            "archspec knows no target 'qqq'; expected a name such as zen3 or neoverse_v2",
        ),
    ],
)
def test_unknown_names(built: Build, options: dict[str, Any], reason: str) -> None:
    """An unknown release, stack or machine is an error that names what is close."""
    with pytest.raises(UnknownNameError, match=reason):
        find(built(**TWO_RELEASES), "hdf5", **options)


def test_no_record_is_a_limit_as_well(samples: sqlite3.Connection) -> None:
    """At most so many records, none if none are wanted."""
    counts = [len(find(samples, "py-mpi4py", limit=limit)) for limit in (None, 0, 2, 1000)]
    assert counts == [7, 0, 2, 7]


def test_syntax_errors_are_those_of_the_parser(samples: sqlite3.Connection) -> None:
    """A text that is no spec raises the parser's own error, with its caret."""
    with pytest.raises(QuerySyntaxError, match=r"\n +\^\n"):
        find(samples, "hdf5@@1")
