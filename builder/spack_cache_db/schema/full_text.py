"""The tables of full-text search."""

from __future__ import annotations

from typing import NamedTuple

from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS

TOKENIZER = "unicode61 categories 'L* M* N* P* S* C*'"
"""Words are separated by blanks, as in Spack: `+cuda`, `%gcc@13`, `libs=shared,static`
(SQLite FTS5 docs, 4.3.1). A quoted text without blanks is therefore one word, which an
index without positions can search (4.6).
"""


class FullText(NamedTuple):
    """A contentless FTS5 table with the column `tokens`, without the positions of
    words.

    Attributes:
        content: the indexed table; the rowid is its `id`.
        tokenizer: the tokenizer that splits a text into words.
    """

    content: str
    tokenizer: str = TOKENIZER


FULL_TEXT: dict[str, FullText] = {
    "configurations_fts": FullText("configurations"),
    "packages_fts": FullText("packages"),
    # A search for `solvers` finds `solver` (SQLite FTS5 docs, 4.3.3).
    "known_packages_fts": FullText("known_packages", f"porter {TOKENIZER}"),
}
"""The FTS5 tables by name."""

NAMES = (
    *(table.name for table in TABLES),
    *FULL_TEXT,
    *VIEWS,
    *(index.name for table in TABLES for index in table.every_index()),
)
"""The names of all tables, full-text tables, views and indexes."""
