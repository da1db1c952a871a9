"""What a built file says of itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from . import schema
from .errors import DatabaseError

_COUNTED = (
    "pages", "listings", "specs", "configurations", "packages", "releases", "stacks", "problems",
)  # fmt: skip


def open_database(path: Path) -> sqlite3.Connection:
    """Open a built file read-only.

    Raises:
        DatabaseError: it is no file, no database of this builder, or of another schema version.
    """
    if not path.is_file():
        raise DatabaseError(
            f"{path}: no such file; build one with: spack-cache-db build PATH -o {path}"
        )
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        application = version = None
    if application == schema.APPLICATION_ID and version == schema.SCHEMA_VERSION:
        return connection
    connection.close()
    if application == schema.APPLICATION_ID:
        raise DatabaseError(
            f"{path}: has schema version {version}, expected {schema.SCHEMA_VERSION}; build it anew"
        )
    raise DatabaseError(f"{path}: is no spack-cache-db database; expected a file made by build")


def describe(path: Path) -> dict[str, Any]:
    """Return what is in a file and where it came from, as plain values.

    Raises:
        DatabaseError: see `open_database`.
    """
    connection = open_database(path)
    try:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM [{table}]").fetchone()[0]
            for table in _COUNTED
        }
        formats = dict(
            connection.execute("SELECT format, count(*) FROM pages GROUP BY format ORDER BY format")
        )
        kinds = dict(connection.execute("SELECT kind, count(*) FROM releases GROUP BY kind"))
        first, last = connection.execute("SELECT min(date), max(date) FROM releases").fetchone()
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{path}: is damaged: {error}; build it anew") from None
    finally:
        connection.close()
    return {
        "file": str(path),
        "size": path.stat().st_size,
        "schema_version": schema.SCHEMA_VERSION,
        **counts,
        "pages_by_format": formats,
        "releases_by_kind": kinds,
        "first_snapshot": first,
        "last_snapshot": last,
    }
