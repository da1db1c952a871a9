"""The statements that create everything in the file, word for word.

The build runs them, and whoever opens a file compares them with its `sqlite_schema`: SQLite keeps
the text of each there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spack_cache_db.schema.tables import TABLES, Column, Table
from spack_cache_db.schema.views import VIEWS

TOKENIZER = "unicode61 tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
"""A word is what stands between blanks, as in Spack: `+cuda`, `%gcc@13`, `libs=shared,static`.

All punctuation of ASCII but the quotes is part of words (SQLite FTS5 docs, 4.3.1): a character that
is none divides what a person types as well, and `%gcc` would find what `gcc` finds.
"""

FULL_TEXT: dict[str, str] = {
    "configurations_fts": "configurations",
    "packages_fts": "packages",
}
"""Contentless FTS5 tables, each with one column `tokens`; a rowid there is an `id` here."""

_TYPES = {int: "INTEGER", str: "TEXT"}


def _table(table: Table) -> str:
    lines = [_column(each, is_key=table.primary_key == (each.name,)) for each in table.columns]
    if table.without_rowid:
        lines.append(f"PRIMARY KEY ({_quoted(table.primary_key)})")
    body = ",\n   ".join(lines)
    return f'CREATE TABLE "{table.name}" (\n   {body}\n){" WITHOUT ROWID" * table.without_rowid}'


def _column(column: Column, *, is_key: bool) -> str:
    words = [f'"{column.name}"', _TYPES[column.type]]
    if is_key:
        words.append("PRIMARY KEY")
    elif not column.nullable:
        words.append("NOT NULL")
    if column.references:
        words.append(f'REFERENCES "{column.references}"("id")')
    return " ".join(words)


def _full_text(table: str, content: str) -> str:
    """Return the statement that makes a full-text table.

    The table holds no text of its own (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), so that the
    words cost no second copy, and `count(*)` reads nothing but the index. sqlite-utils and
    Datasette look for `content="<table>"` in the text of the statement to know what a full-text
    table is the index of: the comment is for them.
    """
    return f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{content}" */,
  detail=full,
  tokenize="{TOKENIZER}"
)"""


def _indexes(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the name and the statement of each index of a table."""
    for kind, prefix, keys in (
        ("UNIQUE INDEX", "unique", table.unique),
        ("INDEX", "idx", table.indexes),
    ):
        for columns in keys:
            name = f"{prefix}_{table.name}_{'_'.join(columns)}"
            yield name, f'CREATE {kind} "{name}"\n    ON "{table.name}" ({_quoted(columns)})'
    for column in table.sparse:
        name = f"idx_{table.name}_{column}"
        where = f"WHERE [{column}] IS NOT NULL"
        yield name, f"CREATE INDEX [{name}] ON [{table.name}] ([{column}]) {where}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


CREATE_TABLES = {table.name: _table(table) for table in TABLES}
CREATE_FULL_TEXT = {table: _full_text(table, content) for table, content in FULL_TEXT.items()}
CREATE_INDEXES = {name: sql for table in TABLES for name, sql in _indexes(table)}
CREATE_VIEWS = {name: f'CREATE VIEW "{name}" AS {sql}' for name, sql in VIEWS.items()}

STATEMENTS = {**CREATE_TABLES, **CREATE_FULL_TEXT, **CREATE_INDEXES, **CREATE_VIEWS}
"""All of them, by the name of what they create."""
