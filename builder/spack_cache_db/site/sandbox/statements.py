"""What a visitor's SQL may use, how large it may be, and one statement run within these limits.

sqlite.org/security.html, "Untrusted SQL Inputs", advises to list what is allowed, not what is known
to be bad: `fts3_tokenizer` lets a statement call any address, `sqlite_stmt` shows the statements of
others, and `pragma_database_list` the paths of files. SQLite asks the authorizer while it compiles
a statement, so a refused statement does nothing at all.

The limits bound what one step costs in memory, and what is left for the page that shows a result:
its cost grows with cells and characters. The bound of time is in `process`.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

SqlValue = str | bytes | int | float | None
"""What SQLite stores."""
Params = Mapping[str, SqlValue] | Sequence[SqlValue]

MOST_BEGUN = 2
"""So many statements are kept that can go on: each may hold what it has sorted."""

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
"""
_PRAGMAS = """
foreign_key_list function_list index_info index_list index_xinfo page_count page_size schema_version
table_info table_list table_xinfo
"""

FUNCTIONS = frozenset(_FUNCTIONS.split())
TABLE_FUNCTIONS = frozenset(("json_each", "json_tree"))
PRAGMAS = frozenset(_PRAGMAS.split())
"""Also allowed as tables, as `pragma_table_info('specs')`."""

# Datasette asks for the first two; full text and sqlite-utils, in Datasette 1.0, for the others.
_ALL_PRAGMAS = PRAGMAS.union(
    ("database_list", "compile_options", "data_version", "recursive_triggers")
)
# What SQLite does to itself when it declares the columns of a virtual table.
_DECLARING = (sqlite3.SQLITE_UPDATE, "sqlite_master")

MEGABYTE = 1_000_000
HEAP_BYTES = 96 * MEGABYTE
RESULT_BYTES = 4 * MEGABYTE
"""A control character takes six times its size as JSON, and all of it is in memory three times."""
RESULT_CELLS = 25_000
"""Twice as many as a thousand rows of the widest table have."""
PAGE_CELLS = 10_000
"""What a page shows: a cell takes ten times as long as HTML than as JSON."""

LIMITS = {
    # Ids are asked for in texts that are not longer (`query.database.IDS_AT_ONCE`).
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 6_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    # Datasette asks for the labels of a page of foreign keys with one parameter for each.
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 5_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
SETTINGS = (
    "query_only = 1",
    # Views may use functions that are known to be harmless, and no others.
    "trusted_schema = 0",
    "cell_size_check = 1",
)
# Python has these from 3.12 on.
DEFENSIVE = {"SQLITE_DBCONFIG_DEFENSIVE": True, "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False}

TOO_MUCH = (
    "the result is larger than 4 MB or {cells:,} cells: ask for fewer or shorter columns, or page"
    " with LIMIT"
)

TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
COLUMN_NAMES = "SELECT name FROM pragma_table_info(:table)"
_UNKNOWN = re.compile(r"no such (table|column): (?:\w+\.)?(\w+)")
_QUOTED = re.compile(r'\s+|(".*?")')


class Rows(NamedTuple):
    """The result of a statement; `is_cut` says that there are more rows than were asked for."""

    columns: list[str]
    rows: Sequence[tuple[SqlValue, ...]]
    is_cut: bool


class TooLarge(sqlite3.OperationalError):
    """A result is larger than a page may be."""


def bound_heap() -> None:
    """Bound the memory that SQLite takes in this process, for all connections and for good."""
    conn = sqlite3.connect(":memory:")
    conn.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
    conn.close()


def restrict(conn: sqlite3.Connection, *, may_attach: bool = False) -> None:
    """Bound what any statement on this connection can take, and let it only read.

    The measures are those of sqlite.org/security.html, as far as this Python has them.

    Args:
        conn: the connection.
        may_attach: whether other files may be attached to it.
    """
    for limit, value in LIMITS.items():
        if limit != sqlite3.SQLITE_LIMIT_ATTACHED or not may_attach:
            conn.setlimit(limit, value)
    for setting in SETTINGS:
        conn.execute(f"PRAGMA {setting}")
    for name, value in DEFENSIVE.items():
        if hasattr(sqlite3, name):
            conn.setconfig(getattr(sqlite3, name), value)  # type: ignore[attr-defined,unused-ignore]


def authorize(conn: sqlite3.Connection, more: frozenset[str] = frozenset()) -> None:
    """Let a connection use the functions, pragmas and tables of the lists, and nothing else.

    Args:
        conn: the connection.
        more: functions of other plugins that it may use as well, in lower case.
    """
    functions = FUNCTIONS | more
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
            return (second or "").lower() in functions
        if action == sqlite3.SQLITE_PRAGMA:
            return (first or "").lower() in _ALL_PRAGMAS
        return action in ACTIONS or (action, first) == _DECLARING

    conn.set_authorizer(lambda *asked: sqlite3.SQLITE_OK if may(*asked) else sqlite3.SQLITE_DENY)


def escape_fts(query: str) -> str:
    """Quote each word of a search, as Datasette's SQL function of this name does.

    Datasette's own would load all of Datasette into every process of the sandbox.
    """
    balanced = query + '"' if query.count('"') % 2 else query
    words = [word for word in _QUOTED.split(balanced) if word and word != '""']
    # Without a word, the empty phrase: nothing has it, while no phrase at all is an error.
    return " ".join(word if word.startswith('"') else f'"{word}"' for word in words) or '""'


def run_statement(
    conn: sqlite3.Connection,
    sql: str,
    params: Params,
    most_rows: int | None,
    most_cells: int = RESULT_CELLS,
    may_cut: bool = False,
) -> Rows:
    """Run a statement.

    Args:
        conn: the connection.
        sql: the statement.
        params: its parameters.
        most_rows: the rows after which it is cut; None for all.
        most_cells: the cells that the result may have.
        may_cut: whether a result with more cells is cut as well, and not refused.

    Raises:
        TooLarge: the result has more than `RESULT_BYTES` bytes or `most_cells` cells.
        sqlite3.Error: SQLite refused the statement; the text names those that are close to a table
            or column that is not there.
    """
    cursor = _executed(conn, sql, params)
    return _bounded(_columns_of(cursor), cursor, most_rows, most_cells, may_cut=may_cut)


def run_part(conn: sqlite3.Connection, sql: str, params: Params, first: int, count: int) -> Rows:
    """Run a part of a statement without a limit: `count` rows from that with the number `first`.

    A stream asks for one part after the other, and the last row of each again: that is how it knows
    whether there are more. SQLite finds the first row of a part by making all that come before. So
    the last few statements are kept where they stand, and go on.

    Raises:
        TooLarge, sqlite3.Error: as `run_statement` does.
    """
    key = (conn, sql, *(params.items() if isinstance(params, Mapping) else params))
    begun = _begun.pop(key, None)
    if begun is None or begun.first != first:
        begun = _Begun(first, (), _executed(conn, f"{sql} LIMIT -1 OFFSET {first}", params))
    rows = islice(chain(begun.again, begun.cursor), count)
    found = _bounded(_columns_of(begun.cursor), rows, None, RESULT_CELLS)
    if len(found.rows) == count > 0:
        _begun[key] = _Begun(first + count - 1, (found.rows[-1],), begun.cursor)
        if len(_begun) > MOST_BEGUN:
            _begun.popitem(last=False)
    return found


class _Begun(NamedTuple):
    """A statement that can go on: the number of its next row, which may have been read before."""

    first: int
    again: tuple[tuple[SqlValue, ...], ...]
    cursor: sqlite3.Cursor


_begun: OrderedDict[Hashable, _Begun] = OrderedDict()


def _executed(conn: sqlite3.Connection, sql: str, params: Params) -> sqlite3.Cursor:
    try:
        return conn.execute(sql, params)
    except sqlite3.OperationalError as error:
        raise _with_close_names(conn, error) from None


def _columns_of(cursor: sqlite3.Cursor) -> list[str]:
    return [described[0] for described in cursor.description or ()]


def _bounded(
    columns: list[str],
    found: Iterable[tuple[SqlValue, ...]],
    most_rows: int | None,
    most_cells: int,
    *,
    may_cut: bool = False,
) -> Rows:
    rows: list[tuple[SqlValue, ...]] = []
    size = cells = 0
    # JSON and HTML repeat the names in each row.
    names = sum(map(_size, columns))
    for row in found:
        if most_rows is not None and len(rows) == most_rows:
            return Rows(columns, rows, is_cut=True)
        size += names + sum(map(_size, row))
        cells += len(row)
        if cells > most_cells and may_cut:
            return Rows(columns, rows, is_cut=True)
        if size > RESULT_BYTES or cells > most_cells:
            raise TooLarge(TOO_MUCH.format(cells=most_cells))
        rows.append(row)
    return Rows(columns, rows, is_cut=False)


def _with_close_names(
    conn: sqlite3.Connection, error: sqlite3.OperationalError
) -> sqlite3.OperationalError:
    """Return an error that names what is close to the table or column that it says is missing."""
    found = _UNKNOWN.fullmatch(str(error))
    if found is None:
        return error
    tables = [row[0] for row in conn.execute(TABLE_NAMES) if "_fts" not in row[0]]
    known = tables if found[1] == "table" else _columns(conn, tables)
    close = difflib.get_close_matches(found[2], known, cutoff=0.5)
    return sqlite3.OperationalError(f"{error}; close: {', '.join(close)}") if close else error


def _columns(conn: sqlite3.Connection, tables: Iterable[str]) -> list[str]:
    """Return the names of all columns, but for those of views that this connection may not read."""
    found: dict[str, None] = {}
    for table in tables:
        with suppress(sqlite3.Error):
            found |= {row[0]: None for row in conn.execute(COLUMN_NAMES, {"table": table})}
    return [*found]


def _size(value: SqlValue) -> int:
    if isinstance(value, str):
        # JSON escapes what is not ASCII.
        return len(value) if value.isascii() else 3 * len(value)
    return len(value) if isinstance(value, bytes) else 0
