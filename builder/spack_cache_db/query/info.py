"""What a built file says of itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db import schema
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open import open_database

_COUNTED = (
    "pages", "listings", "specs", "configurations", "packages", "releases", "stacks", "problems",
)  # fmt: skip


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
