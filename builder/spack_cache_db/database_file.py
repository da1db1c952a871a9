"""Opens a database read-only, after checking its header and its statements."""

from __future__ import annotations

import shlex
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spack_cache_db.bounded_files import HEAD, open_regular, unreadable
from spack_cache_db.database_damage import damaged, read_error
from spack_cache_db.errors import DatabaseError, reason
from spack_cache_db.schema import full_text, identity, older
from spack_cache_db.sqlite_connection import connect, limit_steps

_HEADER = struct.Struct(">16s 12x I 12x I 12x I 4x I")
"""The magic string, the pages, the format of the schema, and our version and
application (SQLite docs, "The Database Header").
"""
_SCHEMA_FORMAT = 4
"""The newest format of statements; SQLite reads 1 to 4."""
_MAGIC = b"SQLite format 3\0"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SHADOWS = tuple(
    f"{table}_{kind}"
    for table in full_text.FULL_TEXT
    for kind in ("config", "data", "docsize", "idx")
)
"""The tables in which FTS5 keeps an index (SQLite FTS5 docs, 4.4 and Appendix A)."""


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
    with closing(connect(path)) as connection:
        limit_steps(connection)
        rows = connection.execute("SELECT name FROM releases ORDER BY id").fetchall()
    return [str(name) for (name,) in rows]


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database read-only.

    Raises:
        DatabaseError: it is missing, not a spack-cache-db database, of another schema
            version, or damaged.
    """
    check_header(path)
    connection = connect(path)
    with _closed_on_error(path, connection):
        _check_statements(path, connection)
    limit_steps(connection)
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
    connection = connect(path)
    with _closed_on_error(path, connection):
        views = _older_views(path, connection, version)
        _hide_tables(connection, views)
    limit_steps(connection)
    return connection


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
            read_error(path, error)
            if isinstance(error, sqlite3.DatabaseError)
            else None
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
