"""The schema of the published file, once, as data.

Every table, column, index and view stands here and nowhere else: `build/sqlite_file.py` creates
them, `query/connection.py` compares a file with them, and tests compare `metadata.yml`. This module
opens no file and does not know where rows come from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from spack_cache_db.schema.tables import CONFIGURATION, TABLES, Column, Table, TableIndex
from spack_cache_db.schema.views import CONFIGURATION_JOINS, MARKS, TARBALL_PATH, VIEWS, word_of

__all__ = [
    "APPLICATION_ID",
    "CONFIGURATION",
    "CONFIGURATION_JOINS",
    "COUNTED",
    "FULL_TEXT",
    "LEFT_OUT",
    "MARKS",
    "NAMES",
    "PAGE_SIZE",
    "PATHS",
    "SCHEMA_VERSION",
    "STATEMENTS_SHA256",
    "STEMMER",
    "TABLES",
    "TARBALL_PATH",
    "TOKENIZER",
    "VIEWS",
    "Column",
    "FullText",
    "Table",
    "TableIndex",
    "statements_sha256",
    "table",
    "word_of",
]

APPLICATION_ID = 0x53504442
"""`PRAGMA application_id` of a published file: the bytes of "SPDB"."""

SCHEMA_VERSION = 12
"""`PRAGMA user_version`; raised by one whenever a public table, column or view changes."""

STATEMENTS_SHA256 = "39b262869b9275cbd9e6b8a7fca1c9edaa0e511e48e367620db889eba664b145"
"""What `statements_sha256` gives for a built file of this schema version. After a change of the
schema, the next build fails and names the new value."""

PATHS, LEFT_OUT = "paths", "left out"
"""The row of `origin` that a file has whose maker left out where installed specs lie."""

COUNTED = {
    "pages": "pages",
    "indexes": "mirrors",
    "records": "records",
    "listings": "listings",
    "specs": "specs WHERE release_count > 0",
    "configurations": "configurations WHERE release_count > 0",
    "dependencies": "dependencies",
    "packages": "packages WHERE release_count > 0",
    "releases": "releases",
    "stacks": "stacks",
    "problems": "problems",
    "known_packages": "known_packages",
}
"""What is counted of a file, and the rows that it is: specs that no release lists are no binaries,
so neither they nor what only they have is counted."""

PAGE_SIZE = 4096
"""Bytes in a page of the file: fixed, because the same pages must give the same bytes."""

TOKENIZER = "unicode61 tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
"""A word is what stands between blanks, as in Spack: `+cuda`, `%gcc@13`, `libs=shared,static`.

All punctuation of ASCII but the quotes is part of words (SQLite FTS5 docs, 4.3.1): a character that
is none divides what a person types as well, and `%gcc` would find what `gcc` finds.
"""

STEMMER = "porter unicode61 categories 'L* M* N* P* S* C*'"
"""A word is what stands between blanks, without its ending: `solvers` is `solver` (SQLite FTS5
docs, 4.3.1 and 4.3.3). Whatever stands between quotes in a search is one word then, which an index
without positions can look for."""


class FullText(NamedTuple):
    """A contentless FTS5 table with the column `tokens`.

    Attributes:
        content: the table whose `id` its rowid is.
        tokenizer: what a word is.
        detail: whether it has the position of each word (SQLite FTS5 docs, 4.6).
    """

    content: str
    tokenizer: str = TOKENIZER
    detail: str = "full"


FULL_TEXT: dict[str, FullText] = {
    "configurations_fts": FullText("configurations"),
    "packages_fts": FullText("packages"),
    "known_packages_fts": FullText("known_packages", STEMMER, "none"),
}
"""The FTS5 tables by name."""

NAMES = (
    *(table.name for table in TABLES),
    *FULL_TEXT,
    *VIEWS,
    *(index.name for table in TABLES for index in table.every_index()),
)
"""The names of all tables, full-text tables, views and indexes."""


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


def statements_sha256(statements: Iterable[tuple[str, str]]) -> str:
    """Return a checksum of what a file consists of.

    Args:
        statements: the columns `name` and `sql` of its `sqlite_schema`; names that are not in
            `NAMES` are passed over.
    """
    known = sorted(each for each in statements if each[0] in NAMES)
    return hashlib.sha256(repr(known).encode()).hexdigest()


_BY_NAME = {each.name: each for each in TABLES}
