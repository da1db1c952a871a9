"""Our SQL functions on the site: `spec_match`, `spec_error` and `escape_fts`."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.answers.spec_functions import SpecFunctions
from spack_cache_db.site.sql.statements import escape_fts


def register(conn: sqlite3.Connection) -> None:
    """Add our functions to a connection to a published database."""
    functions = SpecFunctions(conn)
    conn.create_function("escape_fts", 1, escape_fts, deterministic=True)
    conn.create_function("spec_match", 2, functions.match, deterministic=True)
    conn.create_function("spec_error", 1, functions.error, deterministic=True)
