"""The build at a twentieth of the site's size: nothing lost, the same bytes for every `--jobs`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from spack_cache_db.build import build
from spack_cache_db.site.sandbox import spec_functions
from spack_cache_db.verify import verify
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
def test_every_number_of_jobs_gives_the_same_bytes(pages: Path, file: Path, tmp_path: Path) -> None:
    """With 1, 2 and 4 processes."""
    reports = [build([str(pages)], tmp_path / f"{jobs}.db", jobs=jobs) for jobs in (1, 4)]
    assert {report.sha256 for report in reports} == {digest(file)}
    assert reports[0].pages > 5000
    assert {(tmp_path / f"{jobs}.db").read_bytes() for jobs in (1, 4)} == {file.read_bytes()}


@pytest.mark.slow
def test_every_page_is_read_back(pages: Path, file: Path) -> None:
    """Each page, rebuilt from the database alone, says what its source says."""
    found = verify(file, pages, jobs=2)
    assert found.pages == sum(1 for _ in pages.rglob("*.md"))
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
        "spec_variants WHERE hash = :hash",
        "spec_variants LIMIT 100",
        "spec_stacks WHERE hash = :hash",
        "spec_stacks WHERE release = 'develop' LIMIT 100",
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
    spec_functions.register(connection)
    sql, params = QUERIES[query]["sql"], dict.fromkeys(QUERIES[query]["params"], "")
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
