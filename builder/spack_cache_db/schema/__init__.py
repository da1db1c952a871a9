"""The schema of the published file, once, as data.

Every table, column, index and view stands here and nowhere else: `build/database.py` creates what
it reads here, and the tests compare `metadata.yml` with it. This module opens no file and does not
know where rows come from.
"""

from __future__ import annotations

from spack_cache_db.schema.tables import CONFIGURATION, TABLES, Column, Table
from spack_cache_db.schema.views import CONFIGURATION_JOINS, TARBALL_PATH, VIEWS, word_of

__all__ = [
    "APPLICATION_ID",
    "CONFIGURATION",
    "CONFIGURATION_JOINS",
    "FULL_TEXT",
    "PAGE_SIZE",
    "SCHEMA_VERSION",
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


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


_BY_NAME = {each.name: each for each in TABLES}
