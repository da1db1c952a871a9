"""Creates, fills and checks the SQLite file of a database."""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from importlib import metadata
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spack_cache_db.database_damage import is_damage
from spack_cache_db.errors import OutputError
from spack_cache_db.schema import full_text as full_text_module
from spack_cache_db.schema import identity
from spack_cache_db.schema import tables as tables_module
from spack_cache_db.schema import views as views_module

_MOST_PARAMETERS = 999
"""Parameters that every SQLite version accepts in one statement ("Limits", 9)."""


def create(path: Path) -> sqlite3.Connection:
    """Create an empty database with every table of the schema, inside an open
    transaction.

    The journal is off: until it is renamed, nothing uses the file, and a crash discards
    it.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"page_size = {identity.PAGE_SIZE}",
        "journal_mode = OFF",
        "synchronous = OFF",
        "cache_size = -16384",
        "temp_store = MEMORY",
        "foreign_keys = OFF",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {identity.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {identity.SCHEMA_VERSION}")
    for statement in _table_statements():
        connection.execute(statement)
    return connection


@cache
def _table_statements() -> tuple[str, ...]:
    """Return the statements that create the tables, in the order of the schema.

    sqlite-utils looks up the tables to which foreign keys refer, so they are created
    meanwhile.
    """
    import sqlite_utils  # `serve` needs other functions of this module.

    statements = []
    with closing(sqlite_utils.Database(memory=True)) as database:
        for table in tables_module.TABLES:
            primary_key: str | tuple[str, ...] = table.primary_key[0]
            if table.without_rowid:
                primary_key = table.primary_key
            foreign_keys = []
            not_null = set()
            for column in table.columns:
                if column.references:
                    key = tables_module.table(column.references).primary_key[0]
                    foreign_keys.append((column.name, column.references, key))
                # SQLite never stores NULL in an integer primary key.
                if not column.nullable and column.name != "id":
                    not_null.add(column.name)
            sql = database.create_table_sql(
                table.name,
                {column.name: column.type for column in table.columns},
                pk=primary_key,
                foreign_keys=foreign_keys,
                not_null=not_null,
            )
            statement = sql.rstrip().rstrip(";")
            if table.without_rowid:
                # sqlite-utils cannot write such tables.
                statement += " WITHOUT ROWID"
            database.execute(statement)
            statements.append(statement)
    return tuple(statements)


def insert(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows: tuples in the order of the schema's columns.

    A statement inserts many rows, because a statement per row would be slow.
    """
    width = len(tables_module.table(table).columns)
    rows_at_once = _MOST_PARAMETERS // width
    row_sql = f"({', '.join('?' * width)})"
    remaining = iter(rows)
    while True:
        chunk = list(islice(remaining, rows_at_once))
        if not chunk:
            break
        values_sql = ", ".join([row_sql] * len(chunk))
        parameters = list(chain.from_iterable(chunk))
        db.execute(f"INSERT INTO [{table}] VALUES {values_sql}", parameters)


def index_text(db: sqlite3.Connection, words: Mapping[str, Iterable[str]]) -> None:
    """Create and fill every full-text table; ids count from 1 in the order of the
    words.

    The tables store no text (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), which saves
    a copy of the words, and `count(*)` reads only the index. The comment in the
    statement is for sqlite-utils and Datasette: they search it for `content="<table>"`
    to find the indexed table.
    """
    for table, full_text in full_text_module.FULL_TEXT.items():
        db.execute(f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{full_text.content}" */,
  detail=none,
  tokenize="{full_text.tokenizer}"
)""")
        rows = enumerate(words[full_text.content], start=1)
        db.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def finish(db: sqlite3.Connection) -> None:
    """Create indexes and views, and end the transaction.

    If this version of sqlite-utils writes other statements, readers would reject the
    database.
    """
    import sqlite_utils

    # Indexes, views, and the descriptions of columns, which need the views.
    database = sqlite_utils.Database(db)
    for table in tables_module.TABLES:
        for index in table.every_index():
            database.table(table.name).create_index(
                index.columns, index_name=index.name, unique=index.is_unique
            )
    for name, sql in views_module.VIEWS.items():
        database.create_view(name, sql)
    descriptions = enumerate(_descriptions(db), start=1)
    rows = [(row_id, *description) for row_id, description in descriptions]
    insert(db, "column_descriptions", rows)

    # Statistics.
    db.execute("ANALYZE")
    # Most queries are about a branch, which lists many more specs than the average
    # release. With the average as its estimate, SQLite would read the whole branch to
    # find one package.
    db.execute(
        "UPDATE sqlite_stat1 SET stat = (SELECT count(*) FROM listings) || ' ' || "
        "(SELECT max(spec_count) FROM releases) || ' 1' WHERE tbl = 'listings' AND idx = 'listings'"
    )
    db.execute("COMMIT")

    # Readers compare this checksum.
    statements = db.execute("SELECT name, sql FROM sqlite_master").fetchall()
    checksum = identity.statements_sha256(statements)
    if checksum != identity.STATEMENTS_SHA256:
        writer = f"sqlite-utils {metadata.version('sqlite-utils')}"
        message = f"{writer} writes another schema, with the checksum {checksum}"
        raise OutputError(f"{message}; install an older version of it")


def _descriptions(
    db: sqlite3.Connection,
) -> Iterator[tuple[str, str | None, str, int | None]]:
    """Yield the descriptions of each table, followed by those of its columns in
    order.
    """
    descriptions = _descriptions_file()
    # Columns of one name in several tables have one description.
    common = descriptions["columns"]["common"]
    for table, description in descriptions["tables"].items():
        yield table, None, description, None
        texts = common | descriptions["columns"].get(table, {})
        sql = "SELECT name FROM pragma_table_info(?)"
        for (column,) in db.execute(sql, (table,)).fetchall():
            is_derived = column in descriptions["derived"]
            yield table, column, texts[column], int(is_derived)


@cache
def _descriptions_file() -> dict[str, Any]:
    file = files("spack_cache_db.schema").joinpath("descriptions.toml")
    return tomllib.loads(file.read_text("utf-8"))


def require_intact(path: Path) -> None:
    """Raise OutputError if SQLite finds a broken foreign key or a damaged page."""
    # Each of the two checks reads the whole file, so they run at the same time.
    with ThreadPoolExecutor() as threads:
        references = threads.submit(_first_rows, path, "PRAGMA foreign_key_check")
        pages = threads.submit(_first_rows, path, "PRAGMA integrity_check(3)")
    try:
        broken = references.result()
        damage = pages.result()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        broken = []
        damage = [(str(error),)]
    if broken or damage != [("ok",)]:
        raise OutputError(
            f"the built database is damaged, nothing was replaced: {broken} {damage}"
        )


def _first_rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the first rows of a statement, for which SQLite maps the whole file."""
    with closing(connected(path)) as db:
        db.execute(f"PRAGMA mmap_size = {path.stat().st_size}")
        return db.execute(statement).fetchmany(3)


def connected(database: Path) -> sqlite3.Connection:
    """Connect to a finished database, which does not change."""
    return sqlite3.connect(
        f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True
    )
