"""The inspect file beside a database: what Datasette and builds read of it at once."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from spack_cache_db.bounded_files import read_file

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
