"""What SQL may use: a list of functions, table functions and pragmas; all else is refused.

sqlite.org/security.html, "Untrusted SQL Inputs", advises such a list and not one of what is known
to be bad: `fts3_tokenizer` lets a statement call any address, `sqlite_stmt` shows what others ask,
and `pragma_database_list` where files lie. SQLite asks while it compiles a statement, so that a
refused one does nothing at all.
"""

from __future__ import annotations

import sqlite3

ACTIONS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE))
"""Allowed whatever they name: a SELECT, and a recursive one."""

# Core and the operators that are functions (sqlite.org/lang_corefunc.html), aggregates and windows,
# dates, JSON, mathematics; full text, Datasette's own, and ours.
_FUNCTIONS = """
abs char coalesce concat concat_ws format glob hex ifnull iif instr length like likelihood likely
lower ltrim match max min nullif octet_length printf quote random randomblob replace round rtrim
sign soundex sqlite_source_id sqlite_version substr substring trim typeof unhex unicode unistr
unlikely upper zeroblob
avg count group_concat median percentile string_agg sum total cume_dist dense_rank first_value lag
last_value lead nth_value ntile percent_rank rank row_number
current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch
-> ->> json json_array json_array_length json_error_position json_extract json_group_array
json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace
json_set json_type json_valid
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod
pi pow power radians sin sinh sqrt tan tanh trunc
bm25 highlight snippet escape_fts spec_error spec_match
dependencies_error first_row hash_error last_row near_names package_error page_error
"""
_PRAGMAS = """
foreign_key_list function_list index_info index_list index_xinfo page_count page_size schema_version
table_info table_list table_xinfo
"""

FUNCTIONS = frozenset(_FUNCTIONS.split())
TABLE_FUNCTIONS = frozenset(("json_each", "json_tree"))
PRAGMAS = frozenset(_PRAGMAS.split())
"""May be asked as tables too, as `pragma_table_info('specs')`."""

# Datasette asks for the first two; full text and sqlite-utils, in Datasette 1.0, for the others.
_ALL_PRAGMAS = PRAGMAS.union(
    ("database_list", "compile_options", "data_version", "recursive_triggers")
)
# What SQLite does to itself when it declares the columns of a virtual table.
_DECLARING = (sqlite3.SQLITE_UPDATE, "sqlite_master")


def authorize(conn: sqlite3.Connection) -> None:
    """Let a connection use what is on the list, and the tables that it has now."""
    schema = "SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')"
    tables = {row[0] for row in conn.execute(schema)}
    modules = {row[0].lower() for row in conn.execute("SELECT name FROM pragma_module_list")}
    known = tables | TABLE_FUNCTIONS | {f"pragma_{name}" for name in PRAGMAS} | {"sqlite_master"}

    def may_read(table: str, column: str) -> bool:
        name = table.lower()
        if name in known:
            return True
        # Without a column it may be the name of a common table expression, which is not asked for.
        return not column and name not in modules and not name.startswith(("pragma_", "sqlite_"))

    def may(action: int, first: str | None, second: str | None, *_: str | None) -> bool:
        if action == sqlite3.SQLITE_READ:
            return may_read(first or "", second or "")
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() in FUNCTIONS
        if action == sqlite3.SQLITE_PRAGMA:
            return (first or "").lower() in _ALL_PRAGMAS
        return action in ACTIONS or (action, first) == _DECLARING

    conn.set_authorizer(lambda *asked: sqlite3.SQLITE_OK if may(*asked) else sqlite3.SQLITE_DENY)
