"""Parameters that are empty, wrong, or have blanks around them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.build import build
from tests.graphs import installs, run_time
from tests.indexes import index, node, record
from tests.queries.asking import DEPENDENCY_QUERIES, EVERY_QUERY, QUERIES, opened, rows, run

OF_TWO_RELEASES = sorted(name for name, each in QUERIES.items() if "old" in each["params"])
NONE_IN_THE_SAMPLES = {
    "missing_for_family",
    "most_replaced",
    "only_in_snapshots",
    "problems_of_pages",
}


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_empty_parameters_ask_for_something(samples: sqlite3.Connection, query: str) -> None:
    """Each query answers with nothing filled in, and its last column is for what is wrong."""
    cursor = samples.execute(QUERIES[query]["sql"], dict.fromkeys(QUERIES[query]["params"], ""))
    assert [column[0] for column in cursor.description][-1] == "error"
    if query in OF_TWO_RELEASES:
        # The samples have one snapshot.
        (told,) = run(samples, query)
        assert told["error"].startswith("no release comes before develop-2025-04-20")
    else:
        assert rows(samples, query) or query in NONE_IN_THE_SAMPLES
    assert QUERIES[query]["title"]
    assert "column error" in " ".join(QUERIES[query]["description"].split())


@pytest.mark.parametrize("query", DEPENDENCY_QUERIES)
def test_empty_parameters_ask_for_dependencies(query: str, real_index: sqlite3.Connection) -> None:
    """Each query answers with nothing filled in, and its last column is for what is wrong."""
    found = rows(real_index, query)

    assert found
    assert [*run(real_index, query)[0]][-1] == "error"
    assert EVERY_QUERY[query]["title"]
    assert "column error" in " ".join(EVERY_QUERY[query]["description"].split())


WRONG = [
    ("find_spec", "spec", "py-mpi", "nothing here satisfies 'py-mpi'; /find says what comes near"),
    ("find_spec", "spec", "py-mpi4py@9:", "nothing here satisfies 'py-mpi4py@9:'; /find says"),
    ("find_spec", "spec", "py-mpi4py@@", "cannot read this spec at column 10"),
    ("find_spec", "spec", "py-mpi4py ^mpi", "this file has no dependency data"),
    ("find_spec", "page", "2", "no page '2'; pages: 1 to 1"),
    ("find_spec", "page", "0", "no page '0'; the first is 1"),
    ("find_spec", "page", "9" * 30, f"no page '{'9' * 30}'; pages: 1 to 1"),
    ("specs_of_package", "package", "py-mpi", "no release has a package 'py-mpi'; near it: py-m"),
    ("specs_of_package", "host", "zen33", "nothing here runs on a host 'zen33'; hosts: "),
    (
        "specs_of_package",
        "host",
        "power9le",
        "nothing here runs on a host 'power9le'; hosts: ",
    ),
    ("specs_of_package", "page", "2", "no page '2'; pages: 1 to 1"),
    ("targets_of_package", "package", "x", "no release has a package 'x'; near it: py-ml-dtypes"),
    (
        "targets_of_package",
        "release",
        "devel",
        "no release 'devel' has py-ml-dtypes; releases that have it: develop, develop-2025-04-20",
    ),
    ("targets_of_package", "release", "Develop", "no release 'Develop' has py-ml-dtypes; releases"),
    ("targets_of_package", "page", "2", "no page '2'; pages: 1 to 1"),
    (
        "releases_of_version",
        "package",
        "mpi4py",
        "no release has a package 'mpi4py'; near it: py-mpi4py",
    ),
    ("releases_of_version", "page", "1.0", "no page '1.0'; pages: 1 to 1"),
    (
        "releases_of_version",
        "version",
        "0.4",
        "py-ml-dtypes has no version '0.4'; versions: 0.4.0, 0.3.1",
    ),
    ("releases_of_hash", "hash", "aqp7di", "too short: 'aqp7di'; a hash has 32 characters, 7 of"),
    ("releases_of_hash", "hash", "a'aaa;-- ", "no hash begins with 'a'aaa;--'; all hashes"),
    ("releases_of_hash", "page", "+1", "no page '+1'; pages: 1 to 1"),
    ("most_hashes", "page", "2x", "no page '2x'; pages: 1 to 1"),
    ("most_hashes", "package", "py-", "no release has a package 'py-'; near it: py-ml-dtypes, py"),
    ("packages_of_stack", "stack", "e4", "no stack is called 'e4'; stacks: "),
    ("packages_of_stack", "stack", "E4S", "no stack is called 'E4S'; stacks: "),
    ("packages_of_stack", "stack", "root", "no stack is called 'root'; stacks: "),
    ("packages_of_stack", "page", "-1", "no page '-1'; pages: 1 to 1"),
    ("newest_versions", "package", "mpi5", "no package has 'mpi5' in its name; near it: py-m"),
    ("newest_versions", "page", "0", "no page '0'; pages: 1 to 1"),
    (
        "variant_values_of_package",
        "package",
        "PY-MPI4PY",
        "no release has a package 'PY-MPI4PY'; near it: py-mpi4py",
    ),
    ("variant_values_of_package", "page", "two", "no page 'two'; pages: 1 to 1"),
    (
        "missing_for_family",
        "has",
        "x86_64_v3",
        "no family is called 'x86_64_v3', a target of the family x86_64; families: aarch64, x86_64",
    ),
    ("missing_for_family", "has", "X86_64", "no family is called 'X86_64'; families: aarch64, x86"),
    (
        "missing_for_family",
        "lacks",
        "x86_64",
        "has and lacks are the same family, 'x86_64'; families: aarch64, x86_64",
    ),
    ("missing_for_family", "lacks", "aarch", "no family is called 'aarch'; families: aarch64, x"),
    ("missing_for_family", "page", "9" * 30, f"no page '{'9' * 30}'; pages: 1 to 1"),
    ("problems_of_pages", "page", "2", "no page '2'; pages: 1 to 1"),
    *(
        (query, parameter, "devel", "no release is called 'devel'; near it: develop, develop-2025")
        for query in OF_TWO_RELEASES
        for parameter in ("old", "new")
    ),
    *(
        (query, "package", "py-", "no release has a package 'py-'; near it: py-ml-dtypes, py")
        for query in ("longest_kept", "most_replaced", "only_in_snapshots")
    ),
    *(
        (query, "page", "2x", "no page '2x'; pages: 1 to 1")
        for query in ("longest_kept", "most_replaced", "only_in_snapshots")
    ),
]


@pytest.mark.parametrize(("query", "parameter", "value", "error"), WRONG)
def test_a_wrong_parameter_is_told(
    samples: sqlite3.Connection, query: str, parameter: str, value: str, error: str
) -> None:
    """One row says what is wrong and which values there are; no other row is given."""
    (row,) = run(samples, query, **{parameter: value})
    assert row.pop("error").startswith(error)
    assert set(row.values()) == {None}


@pytest.mark.parametrize("query", OF_TWO_RELEASES)
def test_a_wrong_page_of_what_changed_is_told(samples: sqlite3.Connection, query: str) -> None:
    """Between two releases that are there."""
    told = run(samples, query, old="develop", new="develop-2025-04-20", page="2x")
    assert "no page '2x'; pages: 1 to 1" in {row["error"] for row in told}


def test_every_parameter_of_every_query_can_be_wrong() -> None:
    """The tests above leave none out."""
    declared = {(query, name) for query, each in QUERIES.items() for name in each["params"]}
    declared -= {(query, "page") for query in OF_TWO_RELEASES}
    assert {(query, parameter) for query, parameter, _, _ in WRONG} == declared


WRONG_HASHES = [
    ("hash", "abc", "too short: 'abc'; a hash has 32 characters, 7 of them are enough"),
    ("hash", "a'aaa;-- ", "no hash begins with 'a'aaa;--'; all hashes are in the table specs"),
    ("page", "9", "no page '9'; pages: 1 to 1"),
    ("release", "devel", "no release is called 'devel'; releases: develop"),
]


@pytest.mark.parametrize(
    ("query", "parameter", "value", "error"),
    [
        (query, *wrong)
        for query in DEPENDENCY_QUERIES
        for wrong in WRONG_HASHES
        if wrong[0] in EVERY_QUERY[query]["params"]
    ],
)
def test_a_wrong_parameter_about_dependencies_is_told(
    query: str, parameter: str, value: str, error: str, real_index: sqlite3.Connection
) -> None:
    """One row says what is wrong; no other row is given."""
    (row,) = run(real_index, query, **{parameter: value})

    assert row.pop("error") == error
    assert set(row.values()) == {None}


def test_several_hashes_are_told(tmp_path: Path) -> None:
    """A beginning that two hashes share is answered with both."""
    twins = [{**node(f"twin{end}"), "hash": "a" * 31 + end} for end in "bc"]
    (tmp_path / "index.json").write_bytes(index(*map(record, twins)))
    build([str(tmp_path / "index.json")], tmp_path / "x.db")
    connection = opened(tmp_path / "x.db")

    for query in DEPENDENCY_QUERIES:
        (row,) = run(connection, query, hash="a" * 9)
        both = ", ".join(each["hash"] for each in twins)
        assert row["error"] == f"several hashes begin with '{'a' * 9}': {both}"
    connection.close()


def test_blanks_around_a_parameter_say_nothing(samples: sqlite3.Connection) -> None:
    """What is pasted with blanks, or a hash with its slash, is the same."""
    assert rows(samples, "most_hashes", package=" py-mpi4py ")
    assert rows(samples, "releases_of_hash", hash=" /aqp7dic ")
    assert rows(samples, "newest_versions", page=" 1")


def test_blanks_and_a_slash_say_nothing(real_index: sqlite3.Connection) -> None:
    """A hash that was pasted with them is the same, and its beginning is enough."""
    dag_hash = max(installs(), key=lambda each: len(run_time(each)))
    whole = rows(real_index, "dependencies_of_hash", hash=dag_hash)

    assert rows(real_index, "dependencies_of_hash", hash=f" /{dag_hash[:7].upper()} ") == whole
