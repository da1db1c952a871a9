"""Opens a database read-only, after checking its header and its statements."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from spack_cache_db import schema
from spack_cache_db.bounded_files import HEAD, open_regular, unreadable
from spack_cache_db.errors import DatabaseError

_HEADER = struct.Struct(">16s 12x I 28x I 4x I")
_SHADOWS = tuple(
    f"{table}_{kind}" for table in schema.FULL_TEXT for kind in ("config", "data", "docsize", "idx")
)
"""The tables in which FTS5 keeps an index (SQLite FTS5 docs, 4.4 and Appendix A)."""

MOST_STEPS = 2_000_000_000
"""Maximum of steps of SQLite's virtual machine for one statement: half a minute. The longest
statement over 1.3 million listings takes a tenth of that."""

STEPS_AT_ONCE = 1_000_000

MOST_LENGTH = 16_000_000
"""Maximum size of a value or a row in bytes; SQLite takes several times its memory."""


def is_own(head: bytes) -> bool:
    """Return whether a file is a spack-cache-db database or its inspect file.

    `head` is the first `HEAD` bytes of the file (SQLite docs, "Database File Format").
    """
    is_ours = head[68:72] == schema.APPLICATION_ID.to_bytes(4, "big")
    inspection = b'{\n "spack-cache": {\n'
    return (head.startswith(b"SQLite format 3\0") and is_ours) or head.startswith(inspection)


def is_database(path: Path) -> bool:
    """Return whether a file is a spack-cache-db database; False if it cannot be read."""
    try:
        with open_regular(path) as stream:
            return is_own(stream.read(HEAD))
    except OSError:
        return False


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database read-only.

    Raises:
        DatabaseError: it is missing, not a spack-cache-db database, of another schema version, or
            damaged.
    """
    check_header(path)
    # `OpenFile` passes the connection between threads, one at a time.
    uri = f"{path.resolve().as_uri()}?immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)
    try:
        _check_statements(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        raise damaged(path, error) from None
    _limit_steps(connection)
    return connection


def damaged(path: Path, error: Exception) -> DatabaseError:
    """Return the error of a database that is damaged."""
    why = "a statement does not end" if is_interrupted(error) else str(error)
    return DatabaseError(f"{path}: is damaged: {why}; build it again")


@contextmanager
def damage_as_error(path: Path) -> Iterator[None]:
    """Turn exceptions of a damaged database into `DatabaseError`."""
    try:
        yield
    except sqlite3.ProgrammingError:
        # The connection was closed.
        raise
    except (sqlite3.DatabaseError, JSONDecodeError) as error:
        raise damaged(path, error) from None


def is_interrupted(error: Exception) -> bool:
    """Return whether a statement was interrupted (SQLite docs, "SQLITE_INTERRUPT")."""
    return isinstance(error, sqlite3.OperationalError) and error.args == ("interrupted",)


def _limit_steps(connection: sqlite3.Connection) -> None:
    """Interrupt each statement after `MOST_STEPS`, which only a hostile database exceeds."""
    pieces = 0

    def begin(statement: str) -> None:
        nonlocal pieces
        pieces = 0

    def is_too_much() -> bool:
        nonlocal pieces
        pieces += 1
        return pieces > MOST_STEPS // STEPS_AT_ONCE

    connection.set_trace_callback(begin)
    connection.set_progress_handler(is_too_much, STEPS_AT_ONCE)


def check_header(path: Path) -> None:
    """Check the header of a file (SQLite's file format, 1.3); raises as `open_database`."""
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER.size)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        advice = f"build one with: spack-cache-db build PATH -o {path}"
        raise DatabaseError(f"{path}: no such file; {advice}") from None
    except OSError as error:
        raise DatabaseError(f"{path}: {unreadable(error)}") from None
    magic, pages, version, application = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application != schema.APPLICATION_ID:
        message = "is not a spack-cache-db database; expected a file made by build"
        raise DatabaseError(f"{path}: {message}")
    if version != schema.SCHEMA_VERSION:
        message = f"has schema version {version}, expected {schema.SCHEMA_VERSION}; build it again"
        raise DatabaseError(f"{path}: {message}")
    # SQLite reads a truncated file until it needs the last page.
    size, expected = path.stat().st_size, pages * schema.PAGE_SIZE
    if size != expected:
        message = f"it has {size:,} bytes, not {expected:,}"
        raise DatabaseError(f"{path}: is damaged: {message}; build it again")


def _check_statements(connection: sqlite3.Connection) -> None:
    """Raise `sqlite3.DatabaseError` if the schema's statements differ from those of a build.

    A table of a hostile file could be a view that never ends. Tables of other names are never read.
    """
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    statements = dict(rows.fetchall())
    for name in schema.NAMES:
        if name not in statements:
            raise sqlite3.DatabaseError(f"it has no {name}")
    if schema.statements_sha256(statements.items()) != schema.STATEMENTS_SHA256:
        raise sqlite3.DatabaseError("its tables, indexes and views are not those of a build")
    for name in _SHADOWS:
        if not statements.get(name, "").startswith("CREATE TABLE "):
            raise sqlite3.DatabaseError(f"its {name} is not a table of FTS5")
