"""The build of thousands of pages: nothing lost, the same bytes for every `--jobs`, few steps."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from spack_cache_db.build import build
from spack_cache_db.build.verification import verify
from tests.builds import digest
from tests.corpus import pages as corpus
from tests.metadata import QUERIES


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a twentieth of the corpus: some 5,500 pages of every era."""
    folder = tmp_path_factory.mktemp("scale") / "pages"
    corpus.write(folder, 0.05)
    return folder


@pytest.fixture(scope="module")
def file(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the twentieth."""
    output = tmp_path_factory.mktemp("scale") / "x.db"
    build(pages, output, jobs=2)
    return output


@pytest.mark.slow
def test_what_is_built_is_the_same_and_whole(tmp_path: Path) -> None:
    """1, 2 and 4 processes give the same bytes, from which each page of each era is rebuilt."""
    source = tmp_path / "pages"
    corpus.write(source, 0.01)
    files = [tmp_path / f"{jobs}.db" for jobs in (1, 2, 4)]
    reports = [build(source, file, jobs=int(file.stem)) for file in files]
    assert {report.sha256 for report in reports} == {digest(files[0])}
    assert len({file.read_bytes() for file in files}) == 1

    found = verify(files[0], source, jobs=2)
    assert found.pages == reports[0].pages == sum(1 for _ in source.rglob("*.md")) > 1000
    assert (found.faults, found.differences) == ((), ())


@pytest.fixture(scope="module")
def connection(file: Path) -> Iterator[Connection]:
    """Open it."""
    connection = sqlite3.connect(file)
    yield connection
    connection.close()


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
def test_what_a_person_asks_a_view_takes_few_steps(query: str, connection: Connection) -> None:
    """A view finds its way by indexes: steps of SQLite's machine, which no load changes."""
    spec_hash, package = connection.execute(
        "SELECT hash, package FROM builds WHERE target = 'x86_64_v3' LIMIT 1"
    ).fetchone()
    sql = f"SELECT * FROM {query}"
    assert in_few_steps(connection, sql, {"hash": spec_hash, "package": package}, 50_000)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_what_a_canned_query_is_asked_first_takes_few_steps(
    query: str, connection: Connection
) -> None:
    """With nothing filled in, the broadest that most of them can be asked."""
    sql, params = QUERIES[query]["sql"], dict.fromkeys(QUERIES[query].get("params", ()), "")
    in_few_steps(connection, sql, params, 600_000)


def in_few_steps(
    connection: Connection, sql: str, params: dict[str, str], most: int
) -> list[tuple[object, ...]]:
    """Return the rows of a statement; SQLite ends one that takes more steps with an error."""
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
