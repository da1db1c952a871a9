"""query.examples: what one may ask a file for."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.examples import Examples, read_examples
from spack_cache_db.query.find import find
from spack_cache_db.query.lookups import read_lookups
from tests.conftest import Build
from tests.pagetexts import page, spec


@pytest.mark.parametrize("file", ["samples", "all_samples", "real_index", "all_sources"])
def test_examples_find_something(file: str, request: pytest.FixtureRequest) -> None:
    """Whatever a file holds, each of its examples has an answer in it."""
    conn: sqlite3.Connection = request.getfixturevalue(file)
    examples = read_examples(conn, read_lookups(conn))

    assert examples is not None
    for query in examples:
        assert find(conn, query), query


def test_what_is_well_known_comes_first(built: Build) -> None:
    """Of a package that many know the configuration with the best known variant is shown."""
    conn = built(
        a=page("foo", specs=[spec(number) for number in range(9)]),
        b=page(
            "hdf5",
            specs=[
                spec(11, variants=["~mpi", "+shared"], compiler="gcc@12.1.0"),
                spec(12, variants=["+mpi", "+shared"], compiler="gcc@13.2.0", target="zen3"),
            ],
        ),
    )

    assert read_examples(conn, read_lookups(conn)) == Examples(
        "hdf5 +mpi", "target=zen3 %gcc@13", "hdf5 +mpi target=zen3"
    )


def test_without_compiler_and_variants(built: Build) -> None:
    """What has no compiler, and no variant that many know, is asked for without."""
    conn = built(a=page("foo", specs=[spec(1, compiler="none", variants=["~x"])]))

    assert read_examples(conn, read_lookups(conn)) == Examples(
        "foo", "target=x86_64_v3", "foo target=x86_64_v3"
    )


def test_nothing_has_no_examples(built: Build) -> None:
    """A file without a binary is asked for nothing."""
    conn = built(a=page("foo", specs=[]))

    assert read_examples(conn, read_lookups(conn)) is None
