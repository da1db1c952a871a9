"""The inspect file beside a database: counts that Datasette need not compute again.

It is JSON for `datasette --inspect-file`, in which a build also records its input.
`assembly.inspection` writes it.

```
{"spack-cache": {
  "hash": "3a238b93…", "tables": {"specs": {"count": 413}, …},
  "build": {"looked": "2026-11-29T08:42:10+00:00", …}}}
```
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import read_file

NAME = "spack-cache"
"""The database's name in URLs, and the only key of the inspect file."""

RECORD = "build"
"""The key below it under which a build records its input."""

LOOKED = "looked"
"""The key of such a record with the time at which a build last looked at its
sources.
"""

MAX_INSPECTION = 2**20
"""Largest inspect file that is read, in bytes; a usual file has a few thousand."""

NOT_OURS = (OSError, ValueError, KeyError, TypeError, RecursionError)
"""What reading and using an inspect file raises if it is missing, or if another program
wrote it.
"""


def inspect_path(database: Path) -> Path:
    """Return the path of a database's inspect file: `x.inspect.json` for `x.db`."""
    return database.with_suffix(".inspect.json")


def read_inspection(database: Path) -> Any:
    """Return the content of a database's inspect file; raises one of `NOT_OURS` if it
    is missing or is not JSON.
    """
    return json.loads(read_file(inspect_path(database), MAX_INSPECTION))


def looked_at(database: Path) -> str | None:
    """Return when `build` last looked at the sources of a database, in UTC (ISO 8601).

    A build whose sources have nothing new leaves the database, and writes the time into
    its inspect file. None if there is no such file, or it has no time.
    """
    try:
        looked = read_inspection(database)[NAME][RECORD][LOOKED]
        # Another program may have written any text.
        datetime.fromisoformat(looked)
    except NOT_OURS:
        return None
    return str(looked)
