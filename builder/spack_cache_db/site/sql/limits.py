"""Limits of the memory and time of visitors' SQL, and settings that let it only read.

The measures are those of sqlite.org/security.html, "Untrusted SQL Inputs", as far as
this Python has them. SQLite checks the time between two of its instructions, so the
limits of length bound what a single instruction can take.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEAP_BYTES = 96_000_000
"""Memory of SQLite in this process, for all connections together."""

LIMITS = {
    # Bytes of a text or row. The lists of ids that our own pages send are shorter
    # (`query.open.sql.IDS_AT_ONCE`).
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
    # A statement: its bytes, columns, nested expressions, parts of a UNION, and
    # instructions when it is compiled.
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 6_000,
    # Arguments of a function, and characters of the pattern of LIKE.
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    # Datasette reads the labels of a page's foreign keys with one parameter each.
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 5_000,
    # Other files, triggers that call triggers, and threads for sorting.
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""SQLite's limits of a connection (sqlite.org/limits.html).

They are far above what pages need, and bound what one statement of a visitor can take.
"""

SETTINGS = (
    "query_only = 1",
    # Views may use only functions that SQLite marks as harmless.
    "trusted_schema = 0",
    # Finds damaged pages of a file before they are used.
    "cell_size_check = 1",
)
"""Pragmas of a connection."""
DEFENSIVE = {
    "SQLITE_DBCONFIG_DEFENSIVE": True,
    "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False,
}
"""Settings of a connection in Python 3.12 and later; 3.11 has no `setconfig`."""

STEPS = 1_000
"""Instructions of SQLite between two checks of the time, as in Datasette."""
CLOCK_TIMES = 2
"""Longest time by the clock, in multiples of the processor time."""


def bound_heap() -> None:
    """Limit SQLite's memory in this process, permanently and for all connections."""
    conn = sqlite3.connect(":memory:")
    conn.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
    conn.close()


def restrict(conn: sqlite3.Connection, *, may_attach: bool = False) -> None:
    """Limit what any statement on a connection can take, and let it only read.

    Args:
        conn: the connection.
        may_attach: whether other files may be attached to it.
    """
    for limit, value in LIMITS.items():
        is_lifted = may_attach and limit == sqlite3.SQLITE_LIMIT_ATTACHED
        if not is_lifted:
            conn.setlimit(limit, value)
    for setting in SETTINGS:
        conn.execute(f"PRAGMA {setting}")
    for name, value in DEFENSIVE.items():
        if hasattr(sqlite3, name):
            conn.setconfig(getattr(sqlite3, name), value)  # type: ignore[attr-defined,unused-ignore]


@contextmanager
def time_limit(conn: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt statements after so many seconds of this thread's processor time.

    On a busy machine, that takes longer by the clock; `CLOCK_TIMES` is the limit of
    that. SQLite reports an interrupted statement as `sqlite3.OperationalError`.
    """
    end_of_work = time.thread_time() + seconds
    end_by_clock = time.monotonic() + CLOCK_TIMES * seconds

    def is_over() -> bool:
        return time.thread_time() > end_of_work or time.monotonic() > end_by_clock

    # SQLite interrupts the statement if the function returns a true value.
    conn.set_progress_handler(is_over, STEPS)
    try:
        yield
    finally:
        conn.set_progress_handler(None, STEPS)
