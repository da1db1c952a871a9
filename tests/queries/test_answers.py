"""Answers about packages, releases and stacks: a second answer is made from the pages."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest

from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash
from tests.queries.asking import rows, run
from tests.test_metadata import sample_specs


def test_specs_of_package(samples: sqlite3.Connection) -> None:
    """Specs of a package on a machine are those whose target the machine runs."""
    found = rows(samples, "specs_of_package", package="py-mpi4py", host="zen3")
    expected = {
        each["hash"]
        for each in sample_specs()
        if each["package"] == "py-mpi4py" and each["target"] in ("x86_64", "x86_64_v3")
    }
    assert {row["hash"] for row in found} == expected
    assert len(found) == len(expected)
    assert len(rows(samples, "specs_of_package")) == 129


@pytest.mark.parametrize("query", ["specs_of_package", "find_spec"])
def test_what_is_current_comes_first(query: str, built: Build) -> None:
    """Of a configuration what a branch lists, then releases and snapshots from new to old."""
    file = built(
        a=page("zlib", "develop", [spec(9)]),
        b=page("zlib", "v1.9", [spec(1)]),
        c=page("zlib", "v1.10", [spec(5), spec(9)]),
        d=page("zlib", "develop-2025-01-05", [spec(2), spec(1)]),
        e=page("zlib", "develop-2025-02-05", [spec(3)]),
    )
    parameter = {"specs_of_package": "package", "find_spec": "spec"}[query]

    found = run(file, query, **{parameter: "zlib"})

    assert [row["hash"] for row in found] == [*map(spec_hash, (9, 5, 1, 3, 2))]


@pytest.mark.parametrize("release", ["develop", "develop-2025-04-20"])
def test_targets_of_package(release: str, samples: sqlite3.Connection) -> None:
    """Each version and target of a package in one release comes with its specs there."""
    found = rows(samples, "targets_of_package", package="py-ml-dtypes", release=release)
    expected = Counter(
        (each["versions"][0], each["target"])
        for each in sample_specs()
        if each["package"] == "py-ml-dtypes" and each["release"] == release
    )
    assert {(row["version"], row["target"]): row["specs"] for row in found} == expected
    assert len(found) == len(expected)
    assert {row["release"] for row in found} == {release}
    assert [row["version"] for row in found] == sorted(
        (row["version"] for row in found), reverse=True
    )


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0"])
def test_releases_of_version(version: str, samples: sqlite3.Connection) -> None:
    """Each release that lists the version comes with the number of its specs there."""
    found = rows(samples, "releases_of_version", package="py-ml-dtypes", version=version)
    expected = Counter(
        each["release"]
        for each in sample_specs()
        if each["package"] == "py-ml-dtypes" and each["versions"] == [version]
    )
    assert {row["release"]: row["specs"] for row in found} == expected
    assert rows(samples, "releases_of_version") == rows(
        samples, "releases_of_version", package="py-ml-dtypes", version="0.4.0"
    )


def test_releases_of_hash(samples: sqlite3.Connection) -> None:
    """A hash, or its start, gives the releases that list it."""
    counts = Counter(each["hash"] for each in sample_specs())
    twice = min(spec_hash for spec_hash, count in counts.items() if count == 2)
    found = rows(samples, "releases_of_hash", hash=twice[:7].upper())
    assert [row["release"] for row in found] == ["develop", "develop-2025-04-20"]
    assert rows(samples, "releases_of_hash") == found


def test_most_hashes(samples: sqlite3.Connection) -> None:
    """The 116 binaries of py-safetensors are three configurations."""
    found = rows(samples, "most_hashes", package="py-safetensors")
    counts = Counter(
        (each["os"], each["target"])
        for each in sample_specs()
        if each["package"] == "py-safetensors"
    )
    assert [row["spec_count"] for row in found] == sorted(counts.values(), reverse=True)
    assert (len(found), sum(row["spec_count"] for row in found)) == (3, 116)


def test_packages_of_stack(samples: sqlite3.Connection) -> None:
    """A stack's packages come with their specs, each counted once."""
    found = rows(samples, "packages_of_stack", stack="e4s")
    in_stack = {
        (each["package"], each["hash"]) for each in sample_specs() if "e4s" in each["stacks"]
    }
    expected = Counter(package for package, _ in in_stack)
    assert {row["package"]: row["specs"] for row in found} == expected


def test_the_newest_version_of_a_stack_is_in_the_stack(built: Build) -> None:
    """1.10 is newer than 1.9, and 2.0 is in another stack."""
    versions = {"1.9": ["e4s"], "1.10": ["e4s", "root"], "2.0": ["hep"]}
    specs = [
        spec(number, versions=[version], stacks=stacks)
        for number, (version, stacks) in enumerate(versions.items())
    ]
    connection = built(zlib=page("zlib", specs=specs))
    (row,) = rows(connection, "packages_of_stack", stack="e4s")
    assert row == {"stack": "e4s", "package": "zlib", "specs": 2, "newest_version": "1.10"}


def test_newest_versions(samples: sqlite3.Connection) -> None:
    """Each package comes with its newest version, or those whose name holds the text."""
    found = {row["package"]: row["newest_version"] for row in rows(samples, "newest_versions")}
    assert found == {
        "py-ml-dtypes": "0.4.0",
        "py-mpi4py": "4.0.1",
        "py-pdm-backend": "2.4.3",
        "py-safetensors": "0.4.5",
    }
    assert len(rows(samples, "newest_versions", package="mpi")) == 1


def test_variant_values_of_package(samples: sqlite3.Connection) -> None:
    """Each value of each variant comes with the specs that have it."""
    assert rows(samples, "variant_values_of_package", package="py-pdm-backend") == [
        {
            "package": "py-pdm-backend",
            "variant": "build_system",
            "value": "python_pip",
            "specs": 77,
            "configurations": 7,
        }
    ]


def test_missing_for_family(built: Build) -> None:
    """Packages of one family that the other lacks, both ways, with what the family has of them."""
    connection = built(
        both=page("both", specs=[spec(1), spec(2, target="neoverse_v1")]),
        here=page("here", specs=[spec(3), spec(5, target="zen3", versions=["1.10"])]),
        there=page("there", specs=[spec(4, target="aarch64")]),
        other=page("other", specs=[spec(6), spec(7, target="power9le", versions=["9"])]),
    )
    assert rows(connection, "missing_for_family") == [
        {"package": "here", "specs": 2, "newest_version": "1.10"},
        {"package": "other", "specs": 1, "newest_version": "1.0"},
    ]
    swapped = rows(connection, "missing_for_family", has="aarch64", lacks="x86_64")
    assert [row["package"] for row in swapped] == ["there"]
    (row,) = run(connection, "specs_of_package", package="there", host="zen3")
    assert row["error"] == "no binary of there runs on zen3; targets: aarch64"


def test_problems_of_pages(built: Build, samples: sqlite3.Connection) -> None:
    """A page that contradicts itself is named with what it declares; the samples have none."""
    connection = built(odd=page("odd", meta={"num_specs": 7}))
    found = rows(connection, "problems_of_pages")
    assert [(row["code"], row["package"], row["value"]) for row in found] == [
        ("num_specs", "odd", "7")
    ]
    assert rows(samples, "problems_of_pages") == []
