"""Opening a built file, read-only, once it is known to be one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from spack_cache_db import schema
from spack_cache_db.errors import DatabaseError


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
