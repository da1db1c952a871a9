"""What arbitrary read-only SQL may cost.

Anyone may send SQL, and SQLite's own defaults let one statement take gigabytes: the time limit
cannot stop `zeroblob(900000000)`, which is a single step. So the size of values, of statements,
of SQLite's heap and of whole results are bounded on every connection.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from typing import Any

from spack_cache_db.site.functions import replace_costly

MEGABYTE = 1_000_000
HEAP_BYTES = 96 * MEGABYTE
RESULT_BYTES = 16 * MEGABYTE
# Some functions take time with the square of this: instr() of two such values, half a second.
VALUE_BYTES = 200_000

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    # Datasette asks for the labels of a page of foreign keys with one parameter for each.
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 5_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

TOO_MUCH = "the result is larger than 16 MB: ask for fewer or shorter columns, or page with LIMIT"
NO_MEMORY = "the query needs more memory than this server gives to one"

RowFactory = Callable[[sqlite3.Cursor, tuple[Any, ...]], sqlite3.Row]


def restrict(conn: sqlite3.Connection) -> None:
    """Bound what any statement on this connection can take, and let it only read."""
    for limit, value in LIMITS.items():
        conn.setlimit(limit, value)
    conn.execute("PRAGMA query_only = 1")
    # The heap is shared by all connections of the process; setting it again changes nothing.
    conn.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
    replace_costly(conn, VALUE_BYTES)
    conn.row_factory = bounded_rows()


def bounded_rows(most: int = RESULT_BYTES) -> RowFactory:
    """Return a row factory that stops a result of more than `most` bytes.

    The rows of a result live in Python's memory, which SQLite's limits know nothing of.
    """
    current: Callable[[], sqlite3.Cursor | None] = _nothing
    taken = 0

    def row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        nonlocal current, taken
        if current() is not cursor:
            current, taken = weakref.ref(cursor), 0
        for value in values:
            if isinstance(value, str | bytes):
                taken += len(value)
        if taken > most:
            raise sqlite3.OperationalError(TOO_MUCH)
        return sqlite3.Row(cursor, values)

    return row


def _nothing() -> None:
    return None
