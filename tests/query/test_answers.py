"""What is found, how it is narrowed, and in which order."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from spack_cache_db.query.answers import Found, find
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.configurations import FoundSpec
from spack_cache_db.query.names import UnknownNameError
from spack_cache_db.spack.lexer import QuerySyntaxError
from tests.configurations import configuration
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash

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


def summary(found: list[Found]) -> list[tuple[str, str, int]]:
    """Return what tells the records apart."""
    return [(each.package, each.version, each.spec_count) for each in found]


def test_the_records(built: Build) -> None:
    """A record tells names, counts, releases in the file's order, stacks and days."""
    newest, oldest = find(built(**TWO_RELEASES), "hdf5", with_hashes=True)

    assert newest == Found(
        *configuration(
            package="hdf5",
            version="1.10",
            compiler="gcc@13.2.0",
            os="ubuntu24.04",
            platform="linux",
            target="x86_64_v3",
            variants=("build_system=cmake", "~cuda"),
        ),
        spec_count=2,
        releases=("develop-2025-02-02", "develop-2025-01-05"),
        stacks=("e4s", "ml"),
        first_seen="2025-01-05",
        last_seen="2025-02-02",
        specs=(
            FoundSpec(
                releases=("develop-2025-02-02", "develop-2025-01-05"),
                stacks=("e4s", "ml"),
                first_seen="2025-01-05",
                last_seen="2025-02-02",
                hash=spec_hash(2),
            ),
            FoundSpec(
                releases=("develop-2025-02-02",),
                stacks=("e4s",),
                first_seen="2025-02-02",
                last_seen="2025-02-02",
                hash=spec_hash(3),
            ),
        ),
    )
    assert newest.hashes == (spec_hash(2), spec_hash(3))
    assert (oldest.version, oldest.spec_count, oldest.hashes) == ("1.9", 1, (spec_hash(1),))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"release": "develop-2025-01-05"}, [("hdf5", "1.10", 1), ("hdf5", "1.9", 1)]),
        ({"stack": "ml"}, [("hdf5", "1.10", 1)]),
        ({"release": "develop-2025-01-05", "stack": "ml"}, []),
        ({"release": "develop-2025-01-05", "stack": "e4s", "limit": 1}, [("hdf5", "1.10", 1)]),
        ({"limit": 1}, [("hdf5", "1.10", 2)]),
    ],
)
def test_what_narrows_an_answer(
    built: Build, options: dict[str, Any], expected: list[tuple[str, str, int]]
) -> None:
    """Release, stack and limit narrow what is found, and counts are of what is left."""
    assert summary(find(built(**TWO_RELEASES), "hdf5", **options)) == expected


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        ({"host": "zen4"}, ["zen3"]),
        ({"host": "m2"}, ["m1"]),
        ({"host": "haswell"}, []),
        ({"os": "rhel8"}, ["m1"]),
        ({"os": "rhel9"}, []),
        ({"platform": "darwin"}, []),
        ({"host": "zen3", "os": "ubuntu24.04", "platform": "linux"}, ["zen3"]),
    ],
)
def test_what_runs_on_a_machine(built: Build, options: dict[str, Any], targets: list[str]) -> None:
    """A machine keeps what archspec says it can run, and its own system and platform."""
    found = find(built(**TWO_RELEASES), "hdf5-tools", **options)

    assert [each.target for each in found] == targets


def test_a_machine_and_a_query_must_both_agree(built: Build) -> None:
    """A query for one system on a machine with another has no answer."""
    assert find(built(**TWO_RELEASES), "hdf5-tools os=rhel8", os="ubuntu24.04") == []


def test_a_hash_is_recorded_specs_itself_alone(built: Build) -> None:
    """Counts, releases, stacks and days are those of the one spec, not of its siblings."""
    (found,) = find(built(**TWO_RELEASES), f"/{spec_hash(3)}")

    assert (found.version, found.spec_count) == ("1.10", 1)
    assert (found.releases, found.stacks) == (("develop-2025-02-02",), ("e4s",))
    assert (found.first_seen, found.last_seen) == ("2025-02-02", "2025-02-02")


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
