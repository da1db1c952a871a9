"""SQL functions that refuse what one call could keep busy for minutes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from spack_cache_db.site.functions import replace_costly

LONGEST = 200_000
TEXT = "replace(hex(zeroblob(49999)), '00', 'a')"


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    """A connection with the replaced functions, and the limit that their refusals meet."""
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    replace_costly(connection, LONGEST)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT printf('%.2f %s %05d', 1.5, 'x', 7)", "1.50 x 00007"),
        ("SELECT format('%%')", "%"),
        ("SELECT trim('xxaxx', 'x')", "a"),
        ("SELECT rtrim(15, 5)", "1"),
        ("SELECT instr('gcc@13', '@')", 4),
        ("SELECT replace('a-b', '-', '_')", "a_b"),
        ("SELECT replace(NULL, 'a', 'b')", None),
        ("SELECT trim(NULL, 'x')", None),
    ],
)
def test_useful_functions_work(conn: sqlite3.Connection, sql: str, value: object) -> None:
    """Functions that are bounded still do what SQLite's own do."""
    assert conn.execute(sql).fetchone() == (value,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%.*c', 900000000, 'x')",
        "SELECT format('%900000000d', 1)",
        f"SELECT trim({TEXT}, {TEXT})",
        f"SELECT instr({TEXT}, {TEXT})",
        f"SELECT replace({TEXT}, {TEXT}, 'b')",
    ],
)
def test_costly_calls_are_refused(conn: sqlite3.Connection, sql: str) -> None:
    """A call that would take time with the square of its arguments is refused with a reason."""
    with pytest.raises(sqlite3.DataError, match="too big"):
        conn.execute(sql).fetchone()
