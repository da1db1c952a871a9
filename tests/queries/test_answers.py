"""Answers about packages, releases and stacks: a second answer is made from the pages."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest

from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash
from tests.queries.asking import rows, run
from tests.test_metadata import sample_specs


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
