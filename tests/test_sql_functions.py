"""register: Spack's rules in SQL, on connections of the caller."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spack_cache_db
from spack_cache_db.errors import ArgumentError, DatabaseError
from spack_cache_db.spack.targets import (
    Build,
    build_runs_on,
    known_targets,
    runs_on,
)
from spack_cache_db.spack.version_order import version_order
from spack_cache_db.spack.versions import is_stable, version_key

VERSIONS = (
    "1.2", "1.2.0", "1.10", "1.9", "1.2-3", "1.2.3", "1.2a", "1.2.a", "1.2alpha1",
    "1.2beta", "1.2rc1", "1.2rc2", "1.2.0-rc1", "develop", "main", "master", "stable",
    "git.main=1.4", "git.v1=1.4", "0" * 40, "2024.01.01", "20240101", "1", "a", "abc",
    "1." + "9" * 50, "1." + "9" * 5000, "1.01", "1.1", "x-1", "x_1", "nightly-1",
)  # fmt: skip
WORDS = st.text("019abz.-_", min_size=1, max_size=12) | st.sampled_from(VERSIONS)


@given(WORDS, WORDS)
def test_the_order_of_texts_is_that_of_versions(left: str, right: str) -> None:
    """For any two versions, also with numbers of thousands of digits."""
    texts_are_ordered = version_order(left) < version_order(right)
    assert texts_are_ordered == (version_key(left) < version_key(right))


def test_all_pairs_of_odd_versions_are_in_order() -> None:
    """Prereleases, branches, git versions and equal versions."""
    assert sorted(VERSIONS, key=version_order) == sorted(VERSIONS, key=version_key)


def connect_sqlite(file: Path) -> Any:
    """Return a connection of sqlite3 with our functions."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    spack_cache_db.register(connection)
    return connection


def connect_duckdb(file: Path) -> Any:
    """Return a connection of DuckDB with our functions, and with the builds."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    spack_cache_db.register(connection, str(file))
    with closing(sqlite3.connect(file)) as source:
        rows = source.execute("SELECT hash, version, target FROM builds").fetchall()
    connection.execute("CREATE TABLE builds (hash TEXT, version TEXT, target TEXT)")
    connection.executemany("INSERT INTO builds VALUES (?, ?, ?)", rows)
    return connection


@pytest.fixture(params=[connect_sqlite, connect_duckdb])
def connection(request: pytest.FixtureRequest, samples_file: Path) -> Iterator[Any]:
    """A connection of each library."""
    connection = request.param(samples_file)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "spec", ["py-mpi4py@4:", "py-mpi4py target=:zen3 %gcc", "hdf5", "*"]
)
def test_specs_match_what_find_finds(
    connection: Any, samples_file: Path, spec: str
) -> None:
    """The same binaries, for each spec."""
    rows = connection.execute(
        f"SELECT hash FROM builds WHERE spec_match('{spec}', hash) ORDER BY hash"
    ).fetchall()
    found = spack_cache_db.find(samples_file, spec, with_hashes=True)
    expected = sorted({spec.hash for answer in found for spec in answer.specs or ()})

    assert [row[0] for row in rows] == expected


def test_a_spec_without_an_answer_has_a_reason(connection: Any) -> None:
    """The match is NULL, and the reason is a text."""
    (row,) = connection.execute(
        "SELECT spec_match('hdf5 ^', 'abc'), spec_error('hdf5 ^')"
    ).fetchall()
    assert row[0] is None
    assert "^" in row[1]


def test_targets_run_as_archspec_says(connection: Any) -> None:
    """For many pairs of targets."""
    names = sorted(known_targets())[::6]

    for target in names:
        for host in names:
            (row,) = connection.execute(
                f"SELECT runs_on('{target}', '{host}')"
            ).fetchall()
            assert row == (int(runs_on(target, host)),)


def test_builds_run_on_machines_with_their_platform(connection: Any) -> None:
    """For each platform, on a Mac, on a machine that is none and on one that may be
    one.
    """
    for platform in ("linux", "darwin", "cray"):
        for host in ("m2", "neoverse_v2", "aarch64", "zen3"):
            (row,) = connection.execute(
                f"SELECT build_runs_on('{platform}', 'aarch64', '{host}')"
            ).fetchall()
            assert row == (int(build_runs_on(Build(platform, "aarch64"), host)),)


def test_null_stays_null(connection: Any) -> None:
    """In every argument of every function."""
    (row,) = connection.execute(
        "SELECT spec_match(NULL, 'a'), spec_match('a', NULL), spec_error(NULL), "
        "runs_on(NULL, 'zen3'), runs_on('zen3', NULL), version_order(NULL), "
        "is_stable(NULL), build_runs_on(NULL, 'zen3', 'zen3'), "
        "build_runs_on('linux', NULL, 'zen3'), build_runs_on('linux', 'zen3', NULL)"
    ).fetchall()

    assert row == (None,) * 10


def test_versions_are_sorted(connection: Any) -> None:
    """By a function, in the statement."""
    rows = connection.execute(
        "SELECT version FROM (SELECT '1.10' AS version UNION ALL SELECT '1.9') AS v "
        "ORDER BY version_order(version)"
    ).fetchall()
    assert rows == [("1.9",), ("1.10",)]


def test_stable_versions_are_known(connection: Any) -> None:
    """As the filter of `find` leaves out all others."""
    for version in VERSIONS:
        (row,) = connection.execute(f"SELECT is_stable('{version}')").fetchall()
        assert row == (int(is_stable(version)),)


def test_other_connections_are_refused(samples_file: Path, tmp_path: Path) -> None:
    """The message names what is expected."""
    with pytest.raises(ArgumentError, match="expected one of sqlite3 or duckdb"):
        spack_cache_db.register(samples_file)

    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(ArgumentError, match="file is missing"):
        spack_cache_db.register(duckdb.connect())
    with pytest.raises(DatabaseError):
        spack_cache_db.register(duckdb.connect(), tmp_path / "none.db")
