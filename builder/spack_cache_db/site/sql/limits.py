"""How large a statement, its values and its result may be, on every connection.

These bound what one step costs in memory, and what is left for the page that shows the result: its
cost goes with cells and characters. Time has its bound in `runner`.
"""

from __future__ import annotations

import sqlite3

MEGABYTE = 1_000_000
HEAP_BYTES = 96 * MEGABYTE
RESULT_BYTES = 4 * MEGABYTE
"""A control character takes six times its size as JSON, and all of it stands in memory thrice."""
RESULT_CELLS = 25_000
"""A thousand rows of the widest table are half of it."""

LIMITS = {
    # Ids are asked for in texts that are not longer (`query.connection.IDS_AT_ONCE`).
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
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
PRAGMAS = (
    "query_only = 1",
    # Views may use functions that are known to be harmless, and no others.
    "trusted_schema = 0",
    "cell_size_check = 1",
    # The heap is shared by all connections of a process; setting it again changes nothing.
    f"hard_heap_limit = {HEAP_BYTES}",
)
# Python has these from 3.12 on.
DEFENSIVE = {"SQLITE_DBCONFIG_DEFENSIVE": True, "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False}

TOO_MUCH = (
    "the result is larger than 4 MB or 25,000 cells: ask for fewer or shorter columns, or page with"
    " LIMIT"
)
NO_MEMORY = "the query needs more memory than this server gives to one"


def restrict(conn: sqlite3.Connection) -> None:
    """Bound what any statement on this connection can take, and let it only read.

    The measures are those of sqlite.org/security.html, as far as this Python has them.
    """
    for limit, value in LIMITS.items():
        conn.setlimit(limit, value)
    for pragma in PRAGMAS:
        conn.execute(f"PRAGMA {pragma}")
    for name, value in DEFENSIVE.items():
        if hasattr(sqlite3, name):
            conn.setconfig(getattr(sqlite3, name), value)  # type: ignore[attr-defined,unused-ignore]
