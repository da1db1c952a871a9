"""One statement within its limits: its rows, what is too large, and who may read an answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from datasette.utils import escape_fts as datasettes_escape_fts
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.answers import Site, SiteSettings
from spack_cache_db.site.sandbox.statements import (
    RESULT_BYTES,
    RESULT_CELLS,
    TOO_MUCH,
    escape_fts,
    run_part,
    run_statement,
)
from spack_cache_db.site.workers.worker import INTERRUPTED, run_on, run_task

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    """A connection without data."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT zeroblob({RESULT_BYTES // 2 + 1}), zeroblob({RESULT_BYTES // 2})",
        NUMBERS.format(f" LIMIT {RESULT_CELLS // 100 + 1}") + f"SELECT x{', x' * 99} FROM n",
        f"{NUMBERS.format('')} SELECT x AS [{'y' * 100_000}] FROM n LIMIT 50",
        f"SELECT replace(hex(zeroblob({RESULT_BYTES // 3 + 1})), '00', 'é')",
    ],
)
def test_a_large_result_is_refused(conn: sqlite3.Connection, sql: str) -> None:
    """Bytes, cells, names that each row repeats, and text that JSON makes longer are counted."""
    name, message, _ = run_task(
        Site(SiteSettings(""), conn), run_on, (run_statement, sql, {}, None), 9
    )

    assert (name, message) == ("OperationalError", TOO_MUCH)


SORTED = "SELECT x, x % 7 AS y FROM n ORDER BY y, x"
PARTS = st.tuples(
    st.sampled_from(
        [f"{NUMBERS.format(' LIMIT :most')}{each}" for each in (SORTED, "SELECT x FROM n")]
    ),
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(1, 12),
)


@given(st.lists(PARTS, max_size=12))
def test_parts_are_those_of_the_statement(parts: list[tuple[str, int, int, int]]) -> None:
    """Whatever was asked before, a part has the rows that `LIMIT` and `OFFSET` give."""
    connection = sqlite3.connect(":memory:")
    for sql, first, count, most in parts:
        params = {"most": most}
        # A stream: each part begins with the last row of the one before.
        for place in range(first, first + 3 * count, max(count - 1, 1)):
            found = run_part(connection, sql, params, place, count)
            whole = run_statement(connection, f"{sql} LIMIT {count} OFFSET {place}", params, None)
            assert found == whole
    connection.close()


def test_a_part_that_was_ended_begins_anew(conn: sqlite3.Connection) -> None:
    """A statement that ran out of time in the middle gives its part when it is asked again."""
    sql = f"{NUMBERS.format(' LIMIT 100000')}SELECT x FROM n WHERE x < 5 OR x = 50000 OR x > 99000"
    assert run_part(conn, sql, {}, 0, 4).rows == [(1,), (2,), (3,), (4,)]
    ended = run_task(Site(SiteSettings(""), conn), run_on, (run_part, sql, {}, 3, 3), 0)
    assert ended[:2] == INTERRUPTED
    assert run_part(conn, sql, {}, 3, 3).rows == [(4,), (50000,), (99001,)]


@given(st.text(alphabet='ab" \t\n', max_size=12))
def test_searches_are_quoted_as_datasette_does(text: str) -> None:
    """The SQL function `escape_fts` is Datasette's; without a word, it is the empty phrase."""
    assert escape_fts(text) == (datasettes_escape_fts(text) or '""')
