"""Our functions in SQL."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import escape_fts as datasettes_escape_fts
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.answers.spec_functions import MOST_KEPT
from spack_cache_db.site.sql.functions import escape_fts, register


@given(st.text(alphabet='ab" \t\n', max_size=12))
def test_searches_are_quoted_as_datasette_does(text: str) -> None:
    """The SQL function `escape_fts` is Datasette's; without a word, it is the empty
    phrase.
    """
    assert escape_fts(text) == (datasettes_escape_fts(text) or '""')


ASK = "SELECT spec_match(:spec, :hash), spec_match(:spec, 1), spec_error(:spec)"
ZLIB = "ddddddd" + "e" * 25


@pytest.fixture(scope="module")
def sql(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the invented cache with the functions."""
    connection = sqlite3.connect(database)
    register(connection)
    yield connection
    connection.close()


def ask(sql: sqlite3.Connection, spec: Any, dag_hash: Any = ZLIB) -> tuple[Any, ...]:
    """Ask of a hash, of a configuration, and what is wrong."""
    row: tuple[Any, ...] = sql.execute(ASK, {"spec": spec, "hash": dag_hash}).fetchone()
    return row


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("zlib@@", "\n      ^\n"),
        ("", "expected a package name"),
        ("zlib ^hdf5", "no dependency data"),
        ("x" * 5000, "at most 2000 characters"),
        (b"\xff", "cannot read"),
        (15, None),
    ],
)
def test_errors_are_texts(
    sql: sqlite3.Connection, spec: Any, reason: str | None
) -> None:
    """What cannot be answered is NULL, and spec_error says why."""
    *matched, error = ask(sql, spec)

    if reason is None:
        assert error is None
    else:
        assert reason in error
        assert matched == [None, None]


def test_null_is_null(sql: sqlite3.Connection) -> None:
    """NULL gives NULL, as in SQLite's own functions."""
    assert ask(sql, None) == (None, None, None)
    assert ask(sql, "zlib", None)[0] is None
    assert ask(sql, "zlib", 1.5)[0] is None


def test_the_time_limit_holds(sql: sqlite3.Connection) -> None:
    """A statement that asks ever new queries ends when its time is over."""
    endless = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT count(spec_match('@' || replace(hex(zeroblob(40)), '00', '1:2,') || i, 1))
        FROM n
    """
    looks = iter(range(1000))
    sql.set_progress_handler(lambda: next(looks) >= 20, 1000)
    try:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            sql.execute(endless).fetchall()
    finally:
        sql.set_progress_handler(None, 0)

    assert next(looks) < 1000


def test_many_queries_in_one_statement(sql: sqlite3.Connection) -> None:
    """More queries than are kept are answered all the same."""
    specs = [f"hdf5@{major}:" for major in range(MOST_KEPT * 3)]
    asked = " UNION ALL ".join("SELECT spec_match(?, 1)" for _ in specs)

    assert len(sql.execute(asked, specs).fetchall()) == len(specs)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_asking_for_the_versions_takes_no_memory(datasette: Any) -> None:
    """Datasette opens a connection for it each time, which must be let go again."""
    taken = []
    for _ in range(3):
        for _ in range(50):
            assert (await datasette.client.get("/-/versions.json")).status_code == 200
        taken.append(
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        )

    pages = (10 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert taken[2] - taken[1] < pages
