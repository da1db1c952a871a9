"""What a built file says of itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db import schema
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open import open_database

# Specs that no release lists are no binaries: neither they nor what only they have is counted.
_COUNTED = {
    "pages": "pages",
    "indexes": "mirrors",
    "records": "records",
    "listings": "listings",
    "specs": "specs WHERE release_count > 0",
    "configurations": "configurations WHERE release_count > 0",
    "dependencies": "dependencies",
    "packages": "packages WHERE release_count > 0",
    "releases": "releases",
    "stacks": "stacks",
    "problems": "problems",
}
"""What is counted, and the rows that it is."""


def describe(path: Path) -> dict[str, Any]:
    """Return what is in a file and where it came from, as plain values.

    Raises:
        DatabaseError: see `open_database`.
    """
    connection = open_database(path)
    try:
        counts = {
            name: connection.execute(f"SELECT count(*) FROM {counted}").fetchone()[0]
            for name, counted in _COUNTED.items()
        }
        formats = {
            f"{name}_by_format": dict(
                connection.execute(
                    f"SELECT format, count(*) FROM {_COUNTED[name]} GROUP BY format ORDER BY format"
                )
            )
            for name in ("pages", "indexes")
        }
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
        **formats,
        "releases_by_kind": kinds,
        "first_snapshot": first,
        "last_snapshot": last,
    }
