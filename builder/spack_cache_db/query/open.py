"""Opening a built file, read-only, once it is known to be one."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from spack_cache_db import schema
from spack_cache_db.errors import DatabaseError, reason

_HEADER = struct.Struct(">16s 12x I 28x I 4x I")
_NAMES = {*(table.name for table in schema.TABLES), *schema.FULL_TEXT, *schema.VIEWS}


def open_database(path: Path) -> sqlite3.Connection:
    """Open a built file read-only.

    Raises:
        DatabaseError: it is no file, no database of this builder, of another schema version, or a
            part of one.
    """
    if not path.is_file():
        raise DatabaseError(
            f"{path}: no such file; build one with: spack-cache-db build PATH -o {path}"
        )
    _check_header(path)
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if missing := _NAMES - names:
            raise sqlite3.DatabaseError(f"it has no {', '.join(sorted(missing))}")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DatabaseError(f"{path}: is damaged: {error}; build it anew") from None
    return connection


def _check_header(path: Path) -> None:
    """Check what a file says of itself in its first bytes (SQLite's file format, 1.3)."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
    except OSError as error:
        raise DatabaseError(f"{path}: cannot be read: {reason(error)}") from None
    magic, pages, version, application = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application != schema.APPLICATION_ID:
        raise DatabaseError(f"{path}: is no spack-cache-db database; expected a file made by build")
    if version != schema.SCHEMA_VERSION:
        message = f"has schema version {version}, expected {schema.SCHEMA_VERSION}; build it anew"
        raise DatabaseError(f"{path}: {message}")
    # SQLite reads a file whose last page was cut off, until it needs that page.
    size, expected = path.stat().st_size, pages * schema.PAGE_SIZE
    if size != expected:
        message = f"it has {size:,} bytes, not {expected:,}"
        raise DatabaseError(f"{path}: is damaged: {message}; build it anew")
