"""Recognizes databases, and opens them read-only after checks.

A file may be damaged, changed, or made by somebody else. So its header and its size are
checked, and the statements of its tables, indexes and views, which must be those of a
build: a hostile file could have a view that never ends in place of a table.
"""

from __future__ import annotations

import shlex
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import HEAD, open_regular, unreadable
from spack_cache_db.database_damage import damaged, read_error
from spack_cache_db.errors import DatabaseError, reason
from spack_cache_db.schema import full_text, identity, older
from spack_cache_db.sqlite_connection import connect, limit_steps

_MAGIC = b"SQLite format 3\0"
"""The first bytes of a database of SQLite."""

_INSPECTION = b'{\n "spack-cache": {\n'
"""The first bytes of an inspect file, as builds write it."""

_HEADER = struct.Struct(">16s 12x I 12x I 12x I 4x I")
"""The fields of `_Header` at the bytes 0, 28, 44, 60 and 68 of a file."""

_SCHEMA_FORMAT = 4
"""The newest format of statements; SQLite reads 1 to 4."""

_SUFFIXES = (".db", ".sqlite", ".sqlite3")

_STATEMENTS = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
"""Indexes that SQLite makes by itself have no statement."""


class _Header(NamedTuple):
    """The header of a database (SQLite docs, "The Database Header").

    Attributes:
        magic: `_MAGIC`.
        page_count: the number of pages of the file.
        schema_format: the format of statements.
        version: the schema version, which a build sets (`PRAGMA user_version`).
        application: `identity.APPLICATION_ID` in a database of a build.
    """

    magic: bytes
    page_count: int
    schema_format: int
    version: int
    application: int


def is_own(head: bytes) -> bool:
    """Return whether a file is a spack-cache-db database or its inspect file.

    `head` is the first `HEAD` bytes of the file, or all of a shorter one.
    """
    if head.startswith(_INSPECTION):
        return True
    # Nearly all files of an input end here.
    if not head.startswith(_MAGIC):
        return False
    header = _header(head)
    return header.application == identity.APPLICATION_ID


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
    """Open a database of this or an older schema version for a build that reads it.

    The tables of an older version are hidden by views with the columns of this version,
    as far as a build reads them (`schema.older.READ`).

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


def release_names(path: Path) -> list[str]:
    """Return the releases of a spack-cache-db database of any schema version, in its
    order.

    All versions have this table, so the statements are not checked.

    Raises:
        sqlite3.Error: the file is damaged, or the statement does not end.
    """
    with closing(connect(path)) as connection:
        limit_steps(connection)
        rows = connection.execute("SELECT name FROM releases ORDER BY id").fetchall()
    return [str(name) for (name,) in rows]


def check_header(path: Path) -> None:
    """Check the header and the size of a file; raises as `open_database`."""
    version = _read_version(path)
    if version != identity.SCHEMA_VERSION:
        raise DatabaseError(f"{path}: {_other_version(path, version)}")


def _read_version(path: Path) -> int:
    """Return the schema version of a database.

    Raises:
        DatabaseError: it is missing, not a spack-cache-db database, or damaged.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        advice = f"build one with: spack-cache-db build PATH -o {path}"
        raise DatabaseError(f"{path}: no such file; {advice}") from None
    except OSError as error:
        raise DatabaseError(f"{path}: {unreadable(error)}") from None

    header = _header(head)
    if header.magic != _MAGIC or header.application != identity.APPLICATION_ID:
        message = "is not a spack-cache-db database; expected a file made by build"
        raise DatabaseError(f"{path}: {message}")
    if header.schema_format > _SCHEMA_FORMAT:
        message = f"its schema has the unknown format {header.schema_format}"
        raise damaged(path, message)
    # Databases that are too old to be read may have pages of another size.
    if header.version == identity.SCHEMA_VERSION or header.version in older.FORMS:
        _check_size(path, header.page_count)
    return header.version


def _header(head: bytes) -> _Header:
    """Return the header at the beginning of a file; a short file has zeros."""
    size = _HEADER.size
    fields = _HEADER.unpack(head[:size].ljust(size, b"\0"))
    return _Header(*fields)


def _check_size(path: Path, page_count: int) -> None:
    """Check that a file has all of its pages.

    SQLite reads a truncated file without an error until it needs a missing page.
    """
    size = path.stat().st_size
    expected = page_count * identity.PAGE_SIZE
    if size != expected:
        message = f"it has {size:,} bytes, not {expected:,}"
        raise damaged(path, message)


def _other_version(path: Path, version: int) -> str:
    """Return a message with what to do with a database of another schema version."""
    if version > identity.SCHEMA_VERSION:
        advice = "a newer version of spack-cache-db made it; install that"
    elif version in older.FORMS:
        command = f"spack-cache-db build {shlex.quote(str(path))} -o NEW.db"
        advice = f"`{command}` brings it up to date"
    else:
        oldest = min(older.FORMS)
        advice = f"versions before {oldest} have to be built again from their sources"
    reads = f"this program reads {identity.SCHEMA_VERSION}"
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
    except DatabaseError:
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        known = read_error(path, error)
        if known is None:
            raise
        raise known from None


def _check_statements(path: Path, connection: sqlite3.Connection) -> None:
    """Raise an error if the statements of the schema differ from those of a build.

    Tables of other names are never read, so a database may have some.
    """
    statements = dict(connection.execute(_STATEMENTS).fetchall())
    for name in full_text.NAMES:
        if name not in statements:
            raise damaged(path, f"it has no {name}")
    if identity.statements_sha256(statements.items()) != identity.STATEMENTS_SHA256:
        raise _other_statements(path, identity.SCHEMA_VERSION)
    # FTS5 makes these by itself, so their statements are not those of a build.
    for name in _full_text_tables():
        if not statements.get(name, "").startswith("CREATE TABLE "):
            raise damaged(path, f"its {name} is not a table of FTS5")


def _full_text_tables() -> Iterator[str]:
    """Yield the tables in which FTS5 keeps an index (SQLite FTS5 docs, 4.4 and
    Appendix A).
    """
    for index in full_text.FULL_TEXT:
        for kind in ("config", "data", "docsize", "idx"):
            yield f"{index}_{kind}"


def _other_statements(path: Path, version: int) -> DatabaseError:
    """Return the error of a database with tables that no build of its version makes."""
    found = f"its tables, indexes or views are not those of schema version {version}"
    why = "it was changed, or built by a development version"
    return DatabaseError(f"{path}: {found}: {why}; build it again from its sources")


def _older_views(
    path: Path, connection: sqlite3.Connection, version: int
) -> older.Views:
    """Return the views that give an older database the tables of this version.

    Raises:
        DatabaseError: the statements of its tables are not those of any build.
    """
    statements = connection.execute(_STATEMENTS)
    views = older.FORMS[version].get(older.tables_sha256(statements))
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
