"""Connections to a database, and statements with many values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spack_cache_db.database_damage import damage_as_error
from spack_cache_db.database_file import open_database

SqlValue = str | bytes | int | float | None
"""A value that SQLite passes to a function, or reads as a parameter."""

IDS_AT_ONCE = 20_000
"""Number of ids in a JSON text below 200 kB, the longest value that the site allows."""
LAZY = ("version", "variants")
"""The columns of a configuration whose words are read at first use
(`Lookups.learn`).
"""
MANY_STEPS = """
WITH RECURSIVE steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM steps WHERE step < 70)
SELECT count(*) FROM steps
"""


@contextmanager
def connected(db: Path | sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a database; if `db` is a connection, it stays open.

    Raises DatabaseError as `open_database`, or if the file is damaged.
    """
    if isinstance(db, sqlite3.Connection):
        yield db
        return
    conn = open_database(db)
    try:
        with damage_as_error(db):
            yield conn
    finally:
        conn.close()


def select(
    conn: sqlite3.Connection, sql: str, **parameters: Any
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a statement as tuples, whatever row factory the connection
    has.
    """
    cursor = conn.cursor()
    cursor.row_factory = None
    return iter(cursor.execute(sql, parameters))


def check_time(conn: sqlite3.Connection) -> None:
    """Run a statement of more than 1,000 steps, which a progress handler can
    interrupt.
    """
    conn.execute(MANY_STEPS).fetchall()


def select_in(
    conn: sqlite3.Connection, sql: str, ids: Iterable[int], **parameters: Any
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a statement that reads ids from `json_each(:ids)`.

    The statement runs once for each piece of many ids, so it must not sort or count
    rows of different ids together.
    """
    pieces = json_pieces(ids)
    return chain.from_iterable(
        select(conn, sql, ids=piece, **parameters) for piece in pieces
    )


def select_ids(
    conn: sqlite3.Connection,
    sql: str,
    ids: Iterable[int] | None = None,
    **parameters: Any,
) -> frozenset[int]:
    """Return the first column of the rows of a statement; see `select_in` for `ids`."""
    if ids is None:
        rows = select(conn, sql, **parameters)
    else:
        rows = select_in(conn, sql, ids, **parameters)
    return frozenset(row[0] for row in rows)


def json_pieces(
    ids: Iterable[int | str | list[int]], limit: int | None = None
) -> Iterator[str]:
    """Yield ids, hashes or runs of ids as JSON arrays of up to `limit` (`IDS_AT_ONCE`)
    members.
    """
    remaining = iter(ids)
    while True:
        piece = list(islice(remaining, limit or IDS_AT_ONCE))
        if not piece:
            return
        yield json.dumps(piece, separators=(",", ":"))
