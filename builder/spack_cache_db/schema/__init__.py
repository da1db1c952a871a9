"""The schema of the published file, once, as data.

Every table, column, index and view stands here and nowhere else: `build/database.py` runs the
statements, `query/connection.py` compares a file with them, and tests compare `metadata.yml`.
This module opens no file and does not know where rows come from.
"""

from __future__ import annotations

from spack_cache_db.schema.statements import (
    CREATE_FULL_TEXT,
    CREATE_INDEXES,
    CREATE_TABLES,
    CREATE_VIEWS,
    FULL_TEXT,
    STATEMENTS,
    TOKENIZER,
)
from spack_cache_db.schema.tables import CONFIGURATION, TABLES, Column, Table
from spack_cache_db.schema.views import CONFIGURATION_JOINS, TARBALL_PATH, VIEWS, word_of

__all__ = [
    "APPLICATION_ID",
    "CONFIGURATION",
    "CONFIGURATION_JOINS",
    "CREATE_FULL_TEXT",
    "CREATE_INDEXES",
    "CREATE_TABLES",
    "CREATE_VIEWS",
    "FULL_TEXT",
    "PAGE_SIZE",
    "SCHEMA_VERSION",
    "STATEMENTS",
    "TABLES",
    "TARBALL_PATH",
    "TOKENIZER",
    "VIEWS",
    "Column",
    "Table",
    "table",
    "word_of",
]

APPLICATION_ID = 0x53504442
"""`PRAGMA application_id` of a published file: the bytes of "SPDB"."""

SCHEMA_VERSION = 3
"""`PRAGMA user_version`; raised by one whenever a public table, column or view changes."""

PAGE_SIZE = 4096
"""Bytes in a page of the file: fixed, because the same pages must give the same bytes."""


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


_BY_NAME = {each.name: each for each in TABLES}
