"""Opening a built file, read-only, once it is known to be one; and asking it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spack_cache_db import schema
from spack_cache_db.errors import DatabaseError

IDS_AT_ONCE = 10_000
"""So many ids make a text of some 100 kB; where a site bounds the length of a value, that fits."""


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


@contextmanager
def connected(db: str | Path | sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a built file; one that was given stays open.

    Raises:
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, sqlite3.Connection):
        yield db
        return
    conn = open_database(Path(db))
    try:
        yield conn
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{db}: is damaged: {error}; build it anew") from None
    finally:
        conn.close()


def select(conn: sqlite3.Connection, sql: str, **parameters: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a statement as tuples, whatever the connection makes of rows."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return iter(cursor.execute(sql, parameters))


def select_in(
    conn: sqlite3.Connection, sql: str, ids: Iterable[int], **parameters: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that reads ids from `json_each(:ids)`.

    It is asked several times where there are many ids, so what it sorts or counts must not go over
    more than one of them.
    """
    listed = [*ids]
    for start in range(0, len(listed), IDS_AT_ONCE):
        some = json.dumps(listed[start : start + IDS_AT_ONCE], separators=(",", ":"))
        yield from select(conn, sql, ids=some, **parameters)
