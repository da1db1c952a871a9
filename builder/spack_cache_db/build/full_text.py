"""The full-text tables that the schema names: made, filled with search words, and merged.

They hold no text of their own (SQLite FTS5 docs, 4.4.1 "Contentless Tables"), so that the words
cost no second copy, and `count(*)` reads nothing but the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlite_utils

from spack_cache_db import schema
from spack_cache_db.build.ids import Numbered
from spack_cache_db.build.search_words import configuration_tokens, package_tokens


def words_of(numbered: Numbered) -> dict[str, Iterable[str]]:
    """Return the search words of each table that has a full-text index, in the order of its ids."""
    return {
        "configurations": map(configuration_tokens, numbered.configurations),
        "packages": map(package_tokens, numbered.names.packages),
    }


def index_text(db: sqlite_utils.Database, words: Mapping[str, Iterable[str]]) -> None:
    """Make and fill every full-text table; ids count from 1 in the order of the words."""
    for table, content in schema.FULL_TEXT.items():
        db.execute(_create_statement(table, content))
        rows = enumerate(words[content], start=1)
        db.conn.executemany(f"INSERT INTO [{table}](rowid, tokens) VALUES (?, ?)", rows)
        db.execute(f"INSERT INTO [{table}]([{table}]) VALUES ('optimize')")


def _create_statement(table: str, content: str) -> str:
    """Return the statement that makes a full-text table.

    The comment is for sqlite-utils and Datasette, which look for `content="<table>"` in the text of
    the statement to know what a full-text table is the index of.
    """
    return f"""\
CREATE VIRTUAL TABLE [{table}] USING fts5(
  tokens,
  content='' /* content="{content}" */,
  detail=full,
  tokenize="{schema.TOKENIZER}"
)"""
