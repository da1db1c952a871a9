"""Rows → one SQLite file, whole or not at all.

A database is built beside its final place, checked, forced to disk, and only then renamed over it.
sqlite-utils writes the statements that create tables; this module adds what it has no words for
(WITHOUT ROWID) and fills them in one transaction.
"""

from __future__ import annotations

import glob
import os
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import sqlite_utils

from spack_cache_db import schema
from spack_cache_db.build.output import cannot_write
from spack_cache_db.build.output import temporary as temporary_path
from spack_cache_db.errors import OutputError, reason

_MOST_PARAMETERS = 999
"""As many as any SQLite takes in one statement ("Limits", 9)."""


def create(path: Path) -> sqlite_utils.Database:
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
    db = sqlite_utils.Database(connection)
    connection.execute("BEGIN")
    for table in schema.TABLES:
        _create_table(db, table)
    return db


def insert(db: sqlite_utils.Database, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    Many go in by one statement: to run it costs more than all that it does for a row.
    """
    rows, at_once = iter(rows), _MOST_PARAMETERS // len(schema.table(table).columns)
    while chunk := [*islice(rows, at_once)]:
        db.conn.execute(_insert_statement(table, len(chunk)), [*chain.from_iterable(chunk)])


@lru_cache
def _insert_statement(table: str, rows: int) -> str:
    marks = f"({', '.join('?' * len(schema.table(table).columns))})"
    return f"INSERT INTO [{table}] VALUES {', '.join([marks] * rows)}"


def finish(db: sqlite_utils.Database) -> None:
    """Create indexes and views, and end the transaction."""
    for table in schema.TABLES:
        for columns in table.unique:
            name = f"unique_{table.name}_{'_'.join(columns)}"
            db.table(table.name).create_index(columns, index_name=name, unique=True)
        for columns in table.indexes:
            name = f"idx_{table.name}_{'_'.join(columns)}"
            db.table(table.name).create_index(columns, index_name=name)
    for name, sql in schema.VIEWS.items():
        db.create_view(name, sql)
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


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that takes the output's place if all goes well.

    Files that an earlier, killed build left are removed.

    Raises:
        OutputError: the folder cannot be written, or the disk is full.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for left_over in output.parent.glob(f".{glob.escape(output.name)}.*.tmp"):
            if not _is_running(left_over):
                left_over.unlink(missing_ok=True)
        temporary = temporary_path(output)
        temporary.unlink(missing_ok=True)
        temporary.touch()
    except OSError as error:
        raise _cannot_write(output, error) from None
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(output)
        _sync(output.parent)
    except (OSError, sqlite3.OperationalError) as error:
        raise _cannot_write(output, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _create_table(db: sqlite_utils.Database, table: schema.Table) -> None:
    key = table.primary_key
    sql = db.create_table_sql(
        table.name,
        {column.name: column.type for column in table.columns},
        pk=key if table.without_rowid else key[0],
        foreign_keys=[
            (column.name, column.references, schema.table(column.references).primary_key[0])
            for column in table.columns
            if column.references
        ],
        not_null={column.name for column in table.columns if not column.nullable} - {"id"},
    )
    without_rowid = " WITHOUT ROWID" if table.without_rowid else ""
    db.execute(sql.rstrip().rstrip(";") + without_rowid)


def _is_running(left_over: Path) -> bool:
    """Return whether the build that a temporary file is named for still runs."""
    pid = left_over.name.split(".")[-2]
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return int(pid) != os.getpid()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(output: Path, error: Exception) -> OutputError:
    is_file = isinstance(error, FileExistsError)
    return cannot_write(output, f"{output.parent} is no folder" if is_file else reason(error))
