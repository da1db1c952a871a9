"""Statements, answers, and what they look like between two processes."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.sql.limits import RESULT_BYTES, RESULT_CELLS
from spack_cache_db.site.sql.statement import (
    INTERRUPTED,
    Answer,
    Refusal,
    Rows,
    Statement,
    receive,
    run,
    send,
)

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "
VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary()
)


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    """A connection without data."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


def asked(sql: str, params: Any = None, *, most: int | None = None, ms: float = 1000) -> Statement:
    """A statement as Datasette asks it."""
    return Statement(sql, {} if params is None else params, ms, most)


def test_rows_are_cut_where_asked(conn: sqlite3.Connection) -> None:
    """No more rows come than were asked for, and it is said whether there were more."""
    sql = NUMBERS.format(" LIMIT 5") + "SELECT x AS number FROM n"

    assert run(conn, asked(sql, most=5)) == Rows(
        ["number"], [(1,), (2,), (3,), (4,), (5,)], is_cut=False
    )
    assert run(conn, asked(sql, most=4)) == Rows(["number"], [(1,), (2,), (3,), (4,)], is_cut=True)


@pytest.mark.parametrize("params", [{"a": 1, "b": b"\x00"}, [1, b"\x00"]])
def test_parameters_are_bound(conn: sqlite3.Connection, params: Any) -> None:
    """Named and numbered parameters mean what they mean in SQLite."""
    sql = "SELECT :a, :b" if isinstance(params, dict) else "SELECT ?, ?"

    answer = run(conn, asked(sql, params))

    assert isinstance(answer, Rows)
    assert answer.rows == [(1, b"\x00")]


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
    answer = run(conn, asked(sql))

    assert isinstance(answer, Refusal)
    assert "larger than" in answer.message


def test_the_time_ends_a_statement(conn: sqlite3.Connection) -> None:
    """A statement without end is interrupted; the next one has its own time."""
    endless = NUMBERS.format("") + "SELECT count(*) FROM n"

    assert run(conn, asked(endless, ms=20)) == INTERRUPTED
    assert isinstance(run(conn, asked("SELECT 1")), Rows)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [("SELECT no_such", "OperationalError"), ("SELECT ?", "ProgrammingError")],
)
def test_errors_keep_their_kind(conn: sqlite3.Connection, sql: str, kind: str) -> None:
    """A statement that SQLite or Python refuses says which exception it was."""
    answer = run(conn, asked(sql))

    assert isinstance(answer, Refusal)
    assert answer.kind == kind


@given(st.lists(st.tuples(VALUES, VALUES)), st.booleans())
def test_answers_arrive_as_they_were_sent(rows: list[tuple[Any, Any]], is_cut: bool) -> None:
    """Whatever SQLite can store comes out of a message as it went in."""
    stream = io.BytesIO()
    answer = Rows(["a", "b"], rows, is_cut)
    send(stream, answer)
    stream.seek(0)

    encoded = receive(stream)

    assert encoded is not None
    assert msgspec.msgpack.decode(encoded, type=Answer) == answer


@pytest.mark.parametrize("left", range(8))
def test_half_a_message_is_none(left: int) -> None:
    """A message of which a part is missing is not taken for one."""
    stream = io.BytesIO()
    send(stream, Refusal("x", "y"))
    assert receive(io.BytesIO(stream.getvalue()[:left])) is None
