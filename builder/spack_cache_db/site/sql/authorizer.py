"""Which tables, functions and pragmas visitors' SQL may use.

SQLite asks the authorizer of a connection while it compiles a statement, so a refused
statement never runs. sqlite.org/security.html, "Untrusted SQL Inputs", recommends lists
of what is allowed, not of what is harmful. For example, the function `fts3_tokenizer`
lets a statement call any address in memory, the table `sqlite_stmt` shows other
visitors' statements, and `pragma_database_list` shows the paths of files.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cache

# Operators are functions, too (sqlite.org/lang_corefunc.html).
_CORE = """
abs char coalesce concat concat_ws format glob hex ifnull iif instr length like likelihood likely
lower ltrim match max min nullif octet_length printf quote random randomblob replace round rtrim
sign soundex sqlite_source_id sqlite_version substr substring trim typeof unhex unicode unistr
unlikely upper zeroblob
"""
_AGGREGATES = """
avg count group_concat median percentile string_agg sum total
"""
_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_DATES = """
current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch
"""
_JSON = """
-> ->> json json_array json_array_length json_error_position json_extract json_group_array
json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace
json_set json_type json_valid
"""
_MATHEMATICS = """
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod
pi pow power radians sin sinh sqrt tan tanh trunc
"""
_FULL_TEXT = "bm25 highlight snippet"
# Datasette's own function, and ours (`functions`).
_ADDED = "escape_fts spec_error spec_match"

_FUNCTIONS = f"""
{_CORE} {_AGGREGATES} {_WINDOWS} {_DATES} {_JSON} {_MATHEMATICS} {_FULL_TEXT} {_ADDED}
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""The functions that every visitor's statement may call."""

_PRAGMAS = """
foreign_key_list function_list index_info index_list index_xinfo page_count page_size schema_version
table_info table_list table_xinfo
"""
PRAGMAS = frozenset(_PRAGMAS.split())
"""The pragmas that describe a database, also allowed as tables, such as
`pragma_table_info('specs')`.
"""
# Datasette uses the first two; full text, and sqlite-utils in Datasette 1.0, use the
# others. Visitors cannot: Datasette takes no PRAGMA statement from them, and these are
# not allowed as tables.
_ALL_PRAGMAS = PRAGMAS.union(
    ("database_list", "compile_options", "data_version", "recursive_triggers")
)

TABLE_FUNCTIONS = frozenset(("json_each", "json_tree"))
"""Functions that are used as tables."""
_INTERNAL_PREFIXES = ("pragma_", "sqlite_")
"""Beginnings of the names of SQLite's own tables."""
_MODULES = """
completion csv dbstat fsdir fts1 fts2 fts3 fts3tokenize fts4 fts4aux fts5 fts5vocab
generate_series geopoly json_each json_tree rtree rtree_i32 stmt unionvtab zipfile
"""
_OLD_MODULES = frozenset(_MODULES.split())
"""The virtual tables of SQLite 3.26 to 3.29, whether compiled in or loaded."""

_SELECTING = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE))
"""Actions that are always allowed: to read tables, a second check follows."""
_DECLARING = (sqlite3.SQLITE_UPDATE, "sqlite_master")
"""SQLite's own action when it declares the columns of a virtual table."""

_TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"


def authorize(conn: sqlite3.Connection) -> None:
    """Restrict a connection to the allowed functions, pragmas and tables.

    Functions that Datasette's plugins have added to the connection are allowed.
    """
    allowed = _Allowed(
        functions=FUNCTIONS | (_function_names(conn) - _own_function_names()),
        tables=_readable_tables(conn),
        modules=module_names(conn),
    )

    # What the two texts are depends on the action. The others are the database, and the
    # view or trigger that contains the action.
    def answer(
        action: int, first: str | None, second: str | None, *_: str | None
    ) -> int:
        if allowed.has(action, first or "", second or ""):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    conn.set_authorizer(answer)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What the statements of a connection may use, in lower case.

    Attributes:
        functions: names of functions.
        tables: names of tables and views.
        modules: names of virtual tables that exist in every database; they are refused
            unless they are in `tables`.
    """

    functions: frozenset[str]
    tables: frozenset[str]
    modules: frozenset[str]

    def has(self, action: int, first: str, second: str) -> bool:
        """Return whether an action is allowed, with the texts that SQLite passes for
        it (sqlite.org/c3ref/c_alter_table.html).
        """
        if action == sqlite3.SQLITE_READ:
            return self._may_read(first.lower(), column=second)
        if action == sqlite3.SQLITE_FUNCTION:
            return second.lower() in self.functions
        if action == sqlite3.SQLITE_PRAGMA:
            return first.lower() in _ALL_PRAGMAS
        return action in _SELECTING or (action, first) == _DECLARING

    def _may_read(self, table: str, column: str) -> bool:
        if table in self.tables:
            return True
        # SQLite also asks for the name of a common table expression if the statement
        # reads none of its columns: WITH n AS (SELECT 1) SELECT count(*) FROM n.
        may_be_expression = not column
        is_internal = table in self.modules or table.startswith(_INTERNAL_PREFIXES)
        return may_be_expression and not is_internal


def _readable_tables(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the names of all tables and views that visitors may read."""
    names = {name.lower() for (name,) in conn.execute(_TABLE_NAMES)}
    names |= TABLE_FUNCTIONS
    names |= {f"pragma_{name}" for name in PRAGMAS}
    names.add("sqlite_master")
    return frozenset(names)


def module_names(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the names of virtual tables that exist in every database, in lower case.

    SQLite before 3.30 does not list them, unless it was compiled to.
    """
    try:
        rows = conn.execute("SELECT name FROM pragma_module_list")
        return frozenset(name.lower() for (name,) in rows)
    except sqlite3.OperationalError:
        return _OLD_MODULES


def _function_names(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the names of all functions; SQLite before 3.30 does not list them."""
    try:
        rows = conn.execute("SELECT name FROM pragma_function_list")
        return frozenset(name.lower() for (name,) in rows)
    except sqlite3.OperationalError:
        return frozenset()


@cache
def _own_function_names() -> frozenset[str]:
    """Return the names of all functions of SQLite itself."""
    conn = sqlite3.connect(":memory:")
    names = _function_names(conn)
    conn.close()
    return names
