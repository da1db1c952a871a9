"""Connects to an untrusted SQLite file, read-only and within limits.

A hostile database could have a view whose statement never ends, or a value that fills
the memory.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

from spack_cache_db.errors import DatabaseError

OLDEST_SQLITE = (3, 26, 0)
"""The SQLite of RHEL 8. Datasette's `PRAGMA table_xinfo` is as old (SQLite docs,
"Release History").
"""

MOST_LENGTH = 16_000_000
"""Maximum size of a value or a row in bytes; SQLite takes several times its memory."""

MOST_STEPS = 2_000_000_000
"""Maximum of steps of SQLite's virtual machine for one statement: half a minute. The
longest statement over 1.3 million listings takes a tenth of that.
"""

STEPS_AT_ONCE = 1_000_000
"""Steps after which SQLite asks whether a statement may go on."""


def connect(path: Path) -> sqlite3.Connection:
    """Connect read-only to a file that does not change while it is open."""
    require_sqlite()
    # `immutable` leaves out locks and the search for a journal.
    uri = f"{path.resolve().as_uri()}?immutable=1"
    # `OpenFile` passes the connection between threads, one at a time.
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)
    return connection


def require_sqlite() -> None:
    """Check the SQLite that Python uses.

    Raises:
        DatabaseError: it is older than `OLDEST_SQLITE`, or lacks JSON or full-text
            search.
    """
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(str(number) for number in OLDEST_SQLITE[:2])
        found = f"{sys.executable} uses SQLite {version}, which is too old"
        raise DatabaseError(f"{found}; use a Python with SQLite {oldest} or newer")
    missing = _missing_part()
    if missing is not None:
        found = f"{sys.executable} uses a SQLite {version} without {missing}"
        advice = "use another Python, such as that of your distribution"
        raise DatabaseError(f"{found}; {advice}")


@cache
def _missing_part() -> str | None:
    """Return the name of a part that SQLite was compiled without; None if it has all of
    them.
    """
    statements = {
        "JSON": "SELECT value FROM json_each('[]')",
        "FTS5": "CREATE VIRTUAL TABLE temp.words USING fts5(tokens)",
    }
    with closing(sqlite3.connect(":memory:")) as connection:
        for part, statement in statements.items():
            try:
                connection.execute(statement)
            except sqlite3.OperationalError:
                return part
    return None


def limit_steps(connection: sqlite3.Connection) -> None:
    """Interrupt each statement of a connection after `MOST_STEPS`."""
    count = 0

    def begin(statement: str) -> None:
        """Count from 0, because another statement begins."""
        nonlocal count
        count = 0

    def is_too_much() -> bool:
        """Count `STEPS_AT_ONCE` steps; SQLite interrupts the statement after True."""
        nonlocal count
        count += STEPS_AT_ONCE
        return count > MOST_STEPS

    connection.set_trace_callback(begin)
    connection.set_progress_handler(is_too_much, STEPS_AT_ONCE)


def is_interrupted(error: Exception) -> bool:
    """Return whether a statement was interrupted (SQLite docs, "SQLITE_INTERRUPT")."""
    if not isinstance(error, sqlite3.OperationalError):
        return False
    return error.args == ("interrupted",)
