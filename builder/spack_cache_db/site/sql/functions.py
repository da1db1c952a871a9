"""Our SQL functions on the site: `spec_match`, `spec_error` and `escape_fts`."""

from __future__ import annotations

import re
import sqlite3

from spack_cache_db.query.answers.spec_functions import SpecFunctions

# Blanks are left out, and phrases in quotation marks are kept.
_BETWEEN_WORDS = re.compile(r'\s+|(".*?")')


def register(conn: sqlite3.Connection) -> None:
    """Add our functions to a connection to a published database."""
    functions = SpecFunctions(conn)
    conn.create_function("escape_fts", 1, escape_fts, deterministic=True)
    conn.create_function("spec_match", 2, functions.match, deterministic=True)
    conn.create_function("spec_error", 1, functions.error, deterministic=True)


def escape_fts(query: str) -> str:
    """Return a search with all words quoted, like Datasette's SQL function of this
    name.

    For a search without words, Datasette's returns an empty text, which is an error in
    a search.

    >>> escape_fts('hdf5 "c compiler')
    '"hdf5" "c compiler"'
    """
    # The last quotation mark may have no partner.
    if query.count('"') % 2:
        query += '"'
    words = []
    for word in _BETWEEN_WORDS.split(query):
        if word and word != '""':
            words.append(word if word.startswith('"') else f'"{word}"')
    # The empty phrase matches no row.
    return " ".join(words) or '""'
