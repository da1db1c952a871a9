"""Rows → one SQLite file: created, filled in one transaction, indexed and checked.

What is created stands in the schema; sqlite-utils writes the statements.
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
    for table in schema.TABLES:
        _create_table(sqlite_utils.Database(connection), table)
    return connection


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    One statement inserts many rows, because running it costs more than its work for a row.
    """
    rest = iter(rows)
    width = len(schema.table(table).columns)
    while chunk := [*islice(rest, _MOST_PARAMETERS // width)]:
        values = ", ".join([f"({', '.join('?' * width)})"] * len(chunk))
        db.execute(f"INSERT INTO [{table}] VALUES {values}", [*chain.from_iterable(chunk)])


def index_text(db: sqlite3.Connection, words: Mapping[str, Iterable[str]]) -> None:
    """Make and fill every full-text table; ids count from 1 in the order of the words.

    Args:
        db: the database.
        words: the words of each row, by the table that is indexed.
    """
    for table, each in schema.FULL_TEXT.items():
        db.execute(_full_text_statement(table, each))
        rows = enumerate(words[each.content], start=1)
        db.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def finish(db: sqlite3.Connection) -> None:
    """Create indexes and views, and end the transaction.

    Raises:
        OutputError: this version of sqlite-utils writes other statements than those by which
            readers know the file.
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
    # People ask for a branch, which lists many times as much as the average release: by the average
    # SQLite would read all that the branch lists to find one package in it.
    db.execute(
        "UPDATE sqlite_stat1 SET stat = (SELECT count(*) FROM listings) || ' ' || "
        "(SELECT max(spec_count) FROM releases) || ' 1' WHERE tbl = 'listings' AND idx = 'listings'"
    )
    db.execute("COMMIT")
    statements = db.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    found = schema.statements_sha256(statements)
    if found != schema.STATEMENTS_SHA256:
        writer = f"sqlite-utils {metadata.version('sqlite-utils')}"
        message = f"{writer} writes another schema, with the checksum {found}"
        raise OutputError(f"{message}; install an older version of it")


def require_intact(path: Path) -> None:
    """Have SQLite check a finished database.

    Raises:
        OutputError: SQLite finds a broken foreign key or a damaged page.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as db:
        db.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
        try:
            broken = db.execute("PRAGMA foreign_key_check").fetchmany(3)
            found = db.execute("PRAGMA integrity_check(3)").fetchall()
        except sqlite3.DatabaseError as error:
            broken, found = [], [(str(error),)]
    if broken or found != [("ok",)]:
        raise OutputError(f"the built database is damaged, nothing was replaced: {broken} {found}")


def _descriptions(db: sqlite3.Connection) -> Iterator[tuple[int, str, str | None, str, int | None]]:
    """Yield the rows of `column_descriptions`: each table, and behind it its columns in order."""
    text = files("spack_cache_db.schema").joinpath("descriptions.toml").read_text("utf-8")
    described = tomllib.loads(text)
    number = count(1)
    for table, description in described["tables"].items():
        yield next(number), table, None, description, None
        own = described["columns"]["common"] | described["columns"].get(table, {})
        for (column,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall():
            yield next(number), table, column, own[column], int(column in described["derived"])


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


def _full_text_statement(table: str, each: schema.FullText) -> str:
    """Return the statement that makes a full-text table.

    The table holds no text of its own (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), so that the
    words cost no second copy, and `count(*)` reads nothing but the index. sqlite-utils and
    Datasette look for `content="<table>"` in the text of the statement to know what a full-text
    table is the index of: the comment is for them.
    """
    return f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{each.content}" */,
  detail=none,
  tokenize="{each.tokenizer}"
)"""
