"""Opens a database read-only, after checking its header and its statements."""

from __future__ import annotations

import json
import shlex
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import HEAD, open_regular, read_file, unreadable
from spack_cache_db.errors import BuilderError, DatabaseError, reason
from spack_cache_db.schema import full_text, identity, older
from spack_cache_db.schema.stored_types import type_checks

_HEADER = struct.Struct(">16s 12x I 12x I 12x I 4x I")
"""The magic string, the pages, the format of the schema, and our version and
application (SQLite docs, "The Database Header").
"""
_SCHEMA_FORMAT = 4
"""The newest format of statements; SQLite reads 1 to 4."""
_SYSTEM_ERRORS = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
)
"""Primary codes of errors of the system, which say nothing about a database."""
_MAGIC = b"SQLite format 3\0"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SHADOWS = tuple(
    f"{table}_{kind}"
    for table in full_text.FULL_TEXT
    for kind in ("config", "data", "docsize", "idx")
)
"""The tables in which FTS5 keeps an index (SQLite FTS5 docs, 4.4 and Appendix A)."""

NAME = "spack-cache"
"""The database's name in URLs, and the key of an inspect file."""

RECORD = "build"
"""The key of an inspect file under which a build records its input."""

LOOKED = "looked"
"""The key of such a record with the time at which a build last looked at its
sources.
"""

MAX_INSPECTION = 2**20
"""Largest inspect file that is read, in bytes; a usual file has a few thousand."""

MOST_STEPS = 2_000_000_000
"""Maximum of steps of SQLite's virtual machine for one statement: half a minute. The
longest statement over 1.3 million listings takes a tenth of that.
"""

STEPS_AT_ONCE = 1_000_000

MOST_LENGTH = 16_000_000
"""Maximum size of a value or a row in bytes; SQLite takes several times its memory."""


OLDEST_SQLITE = (3, 26, 0)
"""The SQLite of RHEL 8. Datasette's `PRAGMA table_xinfo` is as old (SQLite docs,
"Release History").
"""


def require_sqlite() -> None:
    """Check the SQLite that Python uses.

    Raises:
        DatabaseError: it is older than `OLDEST_SQLITE`, or lacks JSON or full-text
            search.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE[:2]))
        found = (
            f"{sys.executable} uses SQLite {sqlite3.sqlite_version}, which is too old"
        )
        raise DatabaseError(f"{found}; use a Python with SQLite {oldest} or newer")
    if missing := _missing_part():
        found = (
            f"{sys.executable} uses a SQLite {sqlite3.sqlite_version} without {missing}"
        )
        raise DatabaseError(
            f"{found}; use another Python, such as that of your distribution"
        )


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


def is_own(head: bytes) -> bool:
    """Return whether a file is a spack-cache-db database or its inspect file.

    `head` is the first `HEAD` bytes of the file (SQLite docs, "Database File Format").
    """
    is_ours = head[68:72] == identity.APPLICATION_ID.to_bytes(4, "big")
    inspection = b'{\n "spack-cache": {\n'
    return (head.startswith(_MAGIC) and is_ours) or head.startswith(inspection)


def is_database(path: Path) -> bool:
    """Return whether a file is a spack-cache-db database; False if it cannot be
    read.
    """
    try:
        with open_regular(path) as stream:
            return is_own(stream.read(HEAD))
    except OSError:
        return False


def inspect_path(database: Path) -> Path:
    """Return the path of a database's inspect file."""
    return database.with_suffix(".inspect.json")


def looked_at(database: Path) -> str | None:
    """Return when `build` last looked at the sources of a database, in UTC (ISO 8601).

    A build whose sources have nothing new leaves the database, and writes the time into
    its inspect file. None if there is no such file, or it has no time.
    """
    try:
        inspected = json.loads(read_file(inspect_path(database), MAX_INSPECTION))
        looked = inspected[NAME][RECORD][LOOKED]
        datetime.fromisoformat(looked)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return str(looked)


def looks_like_database(path: Path) -> bool:
    """Return whether a file is meant to be a database, even if it is damaged or
    empty.
    """
    if path.suffix in _SUFFIXES:
        return True
    try:
        with open_regular(path) as stream:
            return stream.read(HEAD).startswith(_MAGIC)
    except (OSError, ValueError):
        return False


def release_names(path: Path) -> list[str]:
    """Return the releases of a spack-cache-db database of any schema version, in its
    order.

    Only this table is read, because all versions have it; the statements are not
    checked.

    Raises:
        sqlite3.Error: the file is damaged, or the statement does not end.
    """
    with closing(_connected(path)) as connection:
        _limit_steps(connection)
        rows = connection.execute("SELECT name FROM releases ORDER BY id").fetchall()
    return [str(name) for (name,) in rows]


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database read-only.

    Raises:
        DatabaseError: it is missing, not a spack-cache-db database, of another schema
            version, or damaged.
    """
    check_header(path)
    connection = _connected(path)
    with _closed_on_error(path, connection):
        _check_statements(path, connection)
    _limit_steps(connection)
    return connection


def open_source(path: Path) -> sqlite3.Connection:
    """Open a database of this or an older schema version, with the tables of this
    version.

    Only the tables in `schema.older.READ` are those of this version.

    Raises:
        DatabaseError: as `open_database`, except for older versions in
            `schema.older.FORMS`.
    """
    version = _read_version(path)
    if version not in older.FORMS:
        return open_database(path)
    connection = _connected(path)
    with _closed_on_error(path, connection):
        views = _older_views(path, connection, version)
        _hide_tables(connection, views)
    _limit_steps(connection)
    return connection


def damaged(path: Path, why: str) -> DatabaseError:
    """Return the error of a database that is damaged."""
    advice = "restore a copy of it, or build it again"
    return DatabaseError(f"{path}: is damaged: {why}; {advice}")


class StoredValueError(ValueError):
    """A database has a value that no build writes."""


def stored_json(text: str) -> Any:
    """Return the value of a JSON text of a database; raises `StoredValueError`."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoredValueError(f"a text that is not JSON ({reason(error)})") from None


@contextmanager
def damage_as_error(path: Path) -> Iterator[None]:
    """Turn exceptions of a database that cannot be read into `DatabaseError`.

    What SQLite itself calls damage is damage (SQLite docs, "Result and Error Codes").
    Any other exception is a bug and is raised as it is, unless the database has a value
    that no build writes.
    """
    try:
        yield
    except BuilderError:
        raise
    except (sqlite3.DatabaseError, StoredValueError) as error:
        known = _error_of(path, error) or _error_of_values(path)
        if known is None:
            raise
        raise known from None
    except _OF_VALUES:
        known = _error_of_values(path)
        if known is None:
            raise
        raise known from None


_OF_VALUES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""The exceptions of code that meets a value of another type than it expects, or a
missing row.
"""


def damage_of(path: Path, error: Exception) -> DatabaseError | None:
    """Return the error of a database that is damaged, given an exception; None for a
    bug.
    """
    if isinstance(error, sqlite3.DatabaseError) and is_damage(error):
        return damaged(path, reason(error))
    # A value that is not JSON makes a statement fail that is right otherwise.
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, _OF_VALUES) or code == sqlite3.SQLITE_ERROR:
        return _error_of_values(path)
    return None


def _error_of_values(path: Path) -> DatabaseError | None:
    """Return the error of a database with a value that no build writes; None without
    one.
    """
    try:
        with closing(_connected(path)) as connection:
            _limit_steps(connection)
            fault = wrong_value(connection)
    except sqlite3.DatabaseError as error:
        return _error_of(path, error)
    return None if fault is None else damaged(path, fault)


def wrong_value(connection: sqlite3.Connection) -> str | None:
    """Return the first value in a database that no build writes, in words; None without
    one.

    A database of 150,000 binaries takes about a second.
    """
    for check in type_checks():
        row = connection.execute(check.sql).fetchone()
        if row is not None:
            return (
                f"a value of {check.table}.{check.column} {check.fault}: {row[0]!r:.40}"
            )
    return None


def _error_of(
    path: Path, error: sqlite3.DatabaseError | StoredValueError
) -> DatabaseError | None:
    """Return the error that says why a database was not read; None for a wrong
    statement.
    """
    if isinstance(error, StoredValueError):
        return damaged(path, f"it has {error}")
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python itself raises this error, for a text that is not UTF-8.
        is_text = isinstance(error, sqlite3.OperationalError)
        return damaged(path, reason(error)) if is_text else None
    if is_damage(error):
        return damaged(path, reason(error))
    # The lowest byte of an extended code is its primary code.
    code &= 0xFF
    if code == sqlite3.SQLITE_TOOBIG:
        value = f"a value of more than {MOST_LENGTH:,} bytes"
        return DatabaseError(
            f"{path}: has {value}, which no build writes; build it again"
        )
    if code == sqlite3.SQLITE_INTERRUPT:
        steps = f"a statement takes more than {MOST_STEPS:,} steps of SQLite"
        return DatabaseError(
            f"{path}: {steps}, which no database of a build needs; build it again"
        )
    if code == sqlite3.SQLITE_FULL:
        advice = "free space there, or set TMPDIR to another folder"
        return DatabaseError(
            f"{path}: no space left for temporary files of SQLite; {advice}"
        )
    if is_of_system(error):
        why = f"{reason(error)} ({error.sqlite_errorname})"
        return DatabaseError(f"{path}: cannot be read: {why}")
    return None


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite found a file to be damaged, or not to be a database."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )


def is_of_system(error: sqlite3.Error) -> bool:
    """Return whether the system failed, such as a full disk, and not a statement or a
    file.
    """
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _SYSTEM_ERRORS


def is_interrupted(error: Exception) -> bool:
    """Return whether a statement was interrupted (SQLite docs, "SQLITE_INTERRUPT")."""
    return isinstance(error, sqlite3.OperationalError) and error.args == (
        "interrupted",
    )


def _limit_steps(connection: sqlite3.Connection) -> None:
    """Interrupt each statement after `MOST_STEPS`, which only a hostile database
    exceeds.
    """
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
    """Check the header of a file (SQLite's file format, 1.3); raises as
    `open_database`.
    """
    version = _read_version(path)
    if version != identity.SCHEMA_VERSION:
        raise DatabaseError(f"{path}: {_other_version(path, version)}")


def _read_version(path: Path) -> int:
    """Return the schema version of a database; raises as `open_database`, but for the
    version.
    """
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER.size)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        advice = f"build one with: spack-cache-db build PATH -o {path}"
        raise DatabaseError(f"{path}: no such file; {advice}") from None
    except OSError as error:
        raise DatabaseError(f"{path}: {unreadable(error)}") from None
    fields = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    magic, pages, schema_format, version, application = fields
    if magic != _MAGIC or application != identity.APPLICATION_ID:
        message = "is not a spack-cache-db database; expected a file made by build"
        raise DatabaseError(f"{path}: {message}")
    if schema_format > _SCHEMA_FORMAT:
        raise damaged(path, f"its schema has the unknown format {schema_format}")
    # The size is part of this version and of the older ones that can be read.
    if version == identity.SCHEMA_VERSION or version in older.FORMS:
        _check_size(path, pages)
    return int(version)


def _check_size(path: Path, pages: int) -> None:
    """Check that a file has all of its pages: SQLite reads a truncated one until it
    needs them.
    """
    size = path.stat().st_size
    expected = pages * identity.PAGE_SIZE
    if size != expected:
        message = f"it has {size:,} bytes, not {expected:,}"
        raise damaged(path, message)


def _other_version(path: Path, version: int) -> str:
    """Return what to do with a database of another schema version."""
    reads = f"this program reads {identity.SCHEMA_VERSION}"
    if version > identity.SCHEMA_VERSION:
        advice = "a newer version of spack-cache-db made it; install that"
    elif version in older.FORMS:
        command = f"spack-cache-db build {shlex.quote(str(path))} -o NEW.db"
        advice = f"`{command}` brings it up to date"
    else:
        advice = f"versions before {min(older.FORMS)} have to be built again from their sources"
    return f"has schema version {version}, {reads}; {advice}"


def _connected(path: Path) -> sqlite3.Connection:
    require_sqlite()
    # `OpenFile` passes the connection between threads, one at a time.
    uri = f"{path.resolve().as_uri()}?immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)
    return connection


@contextmanager
def _closed_on_error(path: Path, connection: sqlite3.Connection) -> Iterator[None]:
    """Close a connection if checks of its database fail; damage becomes
    `DatabaseError`.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        connection.close()
        raise damaged(path, reason(error)) from None
    except (sqlite3.DatabaseError, DatabaseError) as error:
        connection.close()
        known = (
            _error_of(path, error) if isinstance(error, sqlite3.DatabaseError) else None
        )
        if known is None:
            raise
        raise known from None


def _other_statements(path: Path, version: int) -> DatabaseError:
    """Return the error of a database with tables that no build of its version makes."""
    what = f"its tables, indexes or views are not those of schema version {version}"
    why = "it was changed, or built by a development version"
    return DatabaseError(f"{path}: {what}: {why}; build it again from its sources")


def _older_views(
    path: Path, connection: sqlite3.Connection, version: int
) -> older.Views:
    """Return the views of a database's form; `DatabaseError` if no build made it.

    As in `_check_statements`, a hostile table could be a view that never ends.
    """
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    )
    views = older.FORMS[version].get(older.tables_sha256(rows))
    if views is None:
        raise _other_statements(path, version)
    return views


def _hide_tables(connection: sqlite3.Connection, views: older.Views) -> None:
    """Create TEMP views, which SQLite finds before the tables of the same names."""
    for name, function in older.FUNCTIONS.items():
        connection.create_function(name, 1, function, deterministic=True)
    connection.execute("PRAGMA temp_store = MEMORY")
    for table, select in views.items():
        connection.execute(f"CREATE TEMP VIEW {table} AS {select}")


def _check_statements(path: Path, connection: sqlite3.Connection) -> None:
    """Raise an error if the statements of the schema differ from those of a build.

    A table of a hostile file could be a view that never ends. Tables of other names are
    never read.
    """
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    )
    statements = dict(rows.fetchall())
    for name in full_text.NAMES:
        if name not in statements:
            raise damaged(path, f"it has no {name}")
    if identity.statements_sha256(statements.items()) != identity.STATEMENTS_SHA256:
        raise _other_statements(path, identity.SCHEMA_VERSION)
    for name in _SHADOWS:
        if not statements.get(name, "").startswith("CREATE TABLE "):
            raise damaged(path, f"its {name} is not a table of FTS5")
