"""The limits of a result, and the parts of a stream."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.sql.limits import time_limit
from spack_cache_db.site.sql.running import (
    RESULT_BYTES,
    RESULT_CELLS,
    TOO_MUCH,
    run_part,
    run_statement,
)

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    """A connection without data."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT zeroblob({RESULT_BYTES // 2 + 1}), zeroblob({RESULT_BYTES // 2})",
        NUMBERS.format(f" LIMIT {RESULT_CELLS // 100 + 1}")
        + f"SELECT x{', x' * 99} FROM n",
        f"{NUMBERS.format('')} SELECT x AS [{'y' * 100_000}] FROM n LIMIT 50",
        f"SELECT replace(hex(zeroblob({RESULT_BYTES // 3 + 1})), '00', 'é')",
    ],
)
def test_a_large_result_is_refused(empty: sqlite3.Connection, sql: str) -> None:
    """Bytes, cells, names that each row repeats, and text that JSON makes longer are
    counted.
    """
    with pytest.raises(sqlite3.OperationalError) as caught:
        run_statement(empty, sql, {}, None)

    assert caught.value.args == (TOO_MUCH,)


SORTED = "SELECT x, x % 7 AS y FROM n ORDER BY y, x"
PARTS = st.tuples(
    st.sampled_from(
        [
            f"{NUMBERS.format(' LIMIT :most')}{each}"
            for each in (SORTED, "SELECT x FROM n")
        ]
    ),
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(1, 12),
)


@given(st.lists(PARTS, max_size=12))
def test_parts_are_those_of_the_statement(
    parts: list[tuple[str, int, int, int]],
) -> None:
    """Whatever was asked before, a part has the rows that `LIMIT` and `OFFSET` give."""
    connection = sqlite3.connect(":memory:")
    for sql, first, count, most in parts:
        params = {"most": most}
        # A stream: each part begins with the last row of the one before.
        for place in range(first, first + 3 * count, max(count - 1, 1)):
            found = run_part(
                connection, f"{sql} limit {count} offset {place}", params, None
            )
            whole = run_statement(
                connection, f"{sql} LIMIT {count} OFFSET {place}", params, None
            )
            assert found == whole
    connection.close()


def test_a_part_that_was_ended_begins_anew(empty: sqlite3.Connection) -> None:
    """A statement that ran out of time in the middle gives its part when it is asked
    again.
    """
    sql = f"{NUMBERS.format(' LIMIT 100000')}SELECT x FROM n WHERE x < 5 OR x = 50000 OR x > 99000"
    later = f"{sql} limit 3 offset 3"

    assert run_part(empty, f"{sql} limit 4", {}, None).rows == [(1,), (2,), (3,), (4,)]
    with (
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
        time_limit(empty, 0),
    ):
        run_part(empty, later, {}, None)
    assert run_part(empty, later, {}, None).rows == [(4,), (50000,), (99001,)]
