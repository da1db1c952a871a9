"""Writes rows to a SQLite file: creates it, fills it in one transaction, indexes and checks it.

The schema defines the tables; sqlite-utils writes the statements.
"""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from importlib import metadata
from importlib.resources import files
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import sqlite_utils

from spack_cache_db import schema
from spack_cache_db.errors import OutputError

_MOST_PARAMETERS = 999
"""Parameters that every SQLite version accepts in one statement ("Limits", 9)."""


def create(path: Path) -> sqlite3.Connection:
    """Create an empty database with every table of the schema, inside an open transaction.

    The journal is off: until it is renamed, nothing uses the file, and a crash discards it.
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
    for table in schema.TABLES:
        _create_table(sqlite_utils.Database(connection), table)
    return connection


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    A statement inserts many rows, because a statement per row would be slow.
    """
    remaining = iter(rows)
    width = len(schema.table(table).columns)
    while chunk := [*islice(remaining, _MOST_PARAMETERS // width)]:
        values = ", ".join([f"({', '.join('?' * width)})"] * len(chunk))
        db.execute(f"INSERT INTO [{table}] VALUES {values}", [*chain.from_iterable(chunk)])


def index_text(db: sqlite3.Connection, words: Mapping[str, Iterable[str]]) -> None:
    """Create and fill every full-text table; ids count from 1 in the order of the words.

    Args:
        db: the database.
        words: the words of each row, by the name of the indexed table.
    """
    for table, full_text in schema.FULL_TEXT.items():
        db.execute(_full_text_statement(table, full_text))
        rows = enumerate(words[full_text.content], start=1)
        db.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def finish(db: sqlite3.Connection) -> None:
    """Create indexes and views, and end the transaction.

    Raises:
        OutputError: this version of sqlite-utils writes statements with another checksum, which
            readers would reject.
    """
    for table in schema.TABLES:
        for index in table.every_index():
            sqlite_utils.Database(db).table(table.name).create_index(
                index.columns, index_name=index.name, unique=index.is_unique
            )
    for name, sql in schema.VIEWS.items():
        sqlite_utils.Database(db).create_view(name, sql)
    insert(db, "column_descriptions", _descriptions(db))
    db.execute("ANALYZE")
    # Most queries are about a branch, which lists many more specs than the average release. With
    # the average as its estimate, SQLite would read the whole branch to find one package.
    db.execute(
        "UPDATE sqlite_stat1 SET stat = (SELECT count(*) FROM listings) || ' ' || "
        "(SELECT max(spec_count) FROM releases) || ' 1' WHERE tbl = 'listings' AND idx = 'listings'"
    )
    db.execute("COMMIT")
    statements = db.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    checksum = schema.statements_sha256(statements)
    if checksum != schema.STATEMENTS_SHA256:
        writer = f"sqlite-utils {metadata.version('sqlite-utils')}"
        message = f"{writer} writes another schema, with the checksum {checksum}"
        raise OutputError(f"{message}; install an older version of it")


def require_intact(path: Path) -> None:
    """Check a finished database with SQLite's own checks.

    Raises:
        OutputError: SQLite finds a broken foreign key or a damaged page.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as db:
        db.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
        try:
            broken = db.execute("PRAGMA foreign_key_check").fetchmany(3)
            damage = db.execute("PRAGMA integrity_check(3)").fetchall()
        except sqlite3.DatabaseError as error:
            broken, damage = [], [(str(error),)]
    if broken or damage != [("ok",)]:
        raise OutputError(f"the built database is damaged, nothing was replaced: {broken} {damage}")


def _descriptions(db: sqlite3.Connection) -> Iterator[tuple[int, str, str | None, str, int | None]]:
    """Yield the rows of `column_descriptions`: each table, followed by its columns in order."""
    text = files("spack_cache_db.schema").joinpath("descriptions.toml").read_text("utf-8")
    described = tomllib.loads(text)
    number = count(1)
    for table, description in described["tables"].items():
        yield next(number), table, None, description, None
        texts = described["columns"]["common"] | described["columns"].get(table, {})
        for (column,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall():
            yield next(number), table, column, texts[column], int(column in described["derived"])


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


def _full_text_statement(table: str, full_text: schema.FullText) -> str:
    """Return the statement that creates a full-text table.

    The table stores no text (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), which saves a copy of
    the words, and `count(*)` reads only the index. The comment is for sqlite-utils and Datasette:
    they search the statement for `content="<table>"` to find the indexed table.
    """
    return f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{full_text.content}" */,
  detail=none,
  tokenize="{full_text.tokenizer}"
)"""
