"""Rows → one SQLite file: created, filled in one transaction, indexed and checked.

What is created, and by which statements, stands in the schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spack_cache_db import schema
from spack_cache_db.errors import OutputError

_MOST_PARAMETERS = 999
"""As many as any SQLite takes in one statement ("Limits", 9)."""


def create(path: Path) -> sqlite3.Connection:
    """Create an empty database with every table of the schema, inside an open transaction.

    The journal is off: until it is renamed, the file is nobody's, and a crash throws it away.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"page_size = {schema.PAGE_SIZE}",
        "journal_mode = OFF",
        "synchronous = OFF",
        "cache_size = -65536",
        "temp_store = MEMORY",
        "foreign_keys = OFF",
        f"application_id = {schema.APPLICATION_ID}",
        f"user_version = {schema.SCHEMA_VERSION}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    for statement in schema.CREATE_TABLES.values():
        connection.execute(statement)
    return connection


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    Many go in by one statement: to run it costs more than all that it does for a row.
    """
    rows, at_once = iter(rows), _MOST_PARAMETERS // len(schema.table(table).columns)
    while chunk := [*islice(rows, at_once)]:
        db.execute(_insert_statement(table, len(chunk)), [*chain.from_iterable(chunk)])


@lru_cache
def _insert_statement(table: str, rows: int) -> str:
    marks = f"({', '.join('?' * len(schema.table(table).columns))})"
    return f"INSERT INTO [{table}] VALUES {', '.join([marks] * rows)}"


def index_text(db: sqlite3.Connection, words: Mapping[str, Iterable[str]]) -> None:
    """Make and fill every full-text table; ids count from 1 in the order of the words."""
    for table, statement in schema.CREATE_FULL_TEXT.items():
        db.execute(statement)
        rows = enumerate(words[schema.FULL_TEXT[table]], start=1)
        db.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def finish(db: sqlite3.Connection) -> None:
    """Create indexes and views, and end the transaction."""
    for statement in (*schema.CREATE_INDEXES.values(), *schema.CREATE_VIEWS.values()):
        db.execute(statement)
    db.execute("ANALYZE")
    db.execute("COMMIT")


def require_intact(path: Path) -> None:
    """Have SQLite check a finished file, both checks at once: each reads all of it.

    Raises:
        OutputError: SQLite finds a broken foreign key or a damaged page.
    """

    def ask(pragma: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
        try:
            connection.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
            return connection.execute(f"PRAGMA {pragma}").fetchmany(3)
        except sqlite3.DatabaseError as error:
            return [(str(error),)]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        broken, found = pool.map(ask, ("foreign_key_check", "integrity_check(3)"))
    if broken or found != [("ok",)]:
        raise OutputError(f"the built database is damaged, nothing was replaced: {broken} {found}")
