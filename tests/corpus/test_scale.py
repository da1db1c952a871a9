"""Thousands of pages of every era: nothing is lost, and questions take few steps."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection

import pytest

from spack_cache_db.assembly.builds import build
from tests.corpus import pages as corpus
from tests.metadata import QUERIES


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A database of a twentieth of the corpus: some 5,500 consistent pages of every
    era.
    """
    folder = tmp_path_factory.mktemp("scale")
    specs = corpus.write(folder / "pages", 0.05).specs
    report = build(folder / "pages", folder / "x.db", jobs=2)
    assert (report.specs, report.problems) == (specs, 0)
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "builds LIMIT 100",
        "builds WHERE hash = :hash",
        "builds WHERE package = :package",
        "builds WHERE target = 'x86_64_v3' LIMIT 100",
        "build_listings LIMIT 100",
        "build_listings WHERE hash = :hash",
        "build_listings WHERE package = :package LIMIT 100",
        "build_listings WHERE release = 'develop' LIMIT 100",
        "build_listings WHERE release = 'develop' AND package = :package",
        "host_builds WHERE host = 'zen3' LIMIT 100",
        "host_builds WHERE host = 'zen3' AND package = :package",
        "configuration_counts WHERE package = :package",
        "variant_counts WHERE package = :package",
        "spec_variants WHERE hash = :hash",
        "spec_variants LIMIT 100",
        "spec_stacks WHERE hash = :hash",
        "listing_stacks WHERE release = 'develop' LIMIT 100",
        "release_changes WHERE package = :package",
    ],
)
def test_a_question_to_a_view_takes_few_steps(
    query: str, connection: Connection
) -> None:
    """A view finds its way by indexes: steps of SQLite's machine, which no load
    changes.
    """
    spec_hash, package = connection.execute(
        "SELECT hash, package FROM builds WHERE target = 'x86_64_v3' LIMIT 1"
    ).fetchone()
    sql = f"SELECT * FROM {query}"

    assert in_few_steps(
        connection, sql, {"hash": spec_hash, "package": package}, 50_000
    )


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_a_canned_query_takes_few_steps(query: str, connection: Connection) -> None:
    """With nothing filled in, the broadest that most of them can be asked."""
    sql = QUERIES[query]["sql"]
    params = dict.fromkeys(QUERIES[query].get("params", ()), "")
    in_few_steps(connection, sql, params, 600_000)


def in_few_steps(
    connection: Connection, sql: str, params: dict[str, str], most: int
) -> list[tuple[object, ...]]:
    """Return the rows of a statement; SQLite ends one that takes more steps with an
    error.
    """
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1000
        return steps > most

    connection.set_progress_handler(count, 1000)
    try:
        return connection.execute(sql, params).fetchall()
    finally:
        connection.set_progress_handler(None, 0)
