"""Runs SQL of visitors with a list of allowed functions, and limits of size.

sqlite.org/security.html, "Untrusted SQL Inputs", recommends lists of what is allowed,
not of what is harmful: `fts3_tokenizer` lets a statement call any address,
`sqlite_stmt` shows other visitors' statements, and `pragma_database_list` the paths of
files. SQLite calls the authorizer while it compiles a statement, so a refused statement
never runs.

The limits bound the memory of a single step, and the cells and characters of a result,
which determine the cost of its page.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

from spack_cache_db.query.open.sql import SqlValue

Params = Mapping[str, SqlValue] | Sequence[SqlValue]

STEPS = 1_000
"""Instructions of SQLite's virtual machine between two checks of the time, as in
Datasette.
"""
CLOCK_TIMES = 2
"""Longest time by the clock, in multiples of the processor time."""
MOST_BEGUN = 2
"""Limit of suspended statements: each may keep sorted rows in memory."""

ACTIONS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE))
"""Actions that are always allowed."""

# Core functions and operators (sqlite.org/lang_corefunc.html), aggregates and windows,
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

# Datasette uses the first two; full text and sqlite-utils, in Datasette 1.0, the
# others.
_ALL_PRAGMAS = PRAGMAS | {
    "database_list",
    "compile_options",
    "data_version",
    "recursive_triggers",
}
_INTERNAL = ("pragma_", "sqlite_")
_MODULES = """
completion csv dbstat fsdir fts1 fts2 fts3 fts3tokenize fts4 fts4aux fts5 fts5vocab
generate_series geopoly json_each json_tree rtree rtree_i32 stmt unionvtab zipfile
"""
_OLD_MODULES = frozenset(_MODULES.split())
"""The virtual tables of SQLite 3.26 to 3.29, whether compiled in or loaded."""
# SQLite's own action when it declares the columns of a virtual table.
_DECLARING = (sqlite3.SQLITE_UPDATE, "sqlite_master")

HEAP_BYTES = 96_000_000
RESULT_BYTES = 4_000_000
"""As JSON, control characters are six times as long; three copies are in memory at a
time.
"""
RESULT_CELLS = 25_000
"""Twice as many cells as a thousand rows of the widest table."""
PAGE_ROWS = 300
PAGE_CELLS = 2_000
"""Limits of HTML pages, which take ten times as long per cell as JSON; longer results
are cut.
"""

LIMITS = {
    # Ids are sent in texts within this length (`query.database.IDS_AT_ONCE`).
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 6_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    # Datasette reads the labels of a page's foreign keys with one parameter each.
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 5_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
SETTINGS = (
    "query_only = 1",
    # Views may use only functions that SQLite marks as harmless.
    "trusted_schema = 0",
    "cell_size_check = 1",
)
# Settings of Python 3.12 and later.
DEFENSIVE = {
    "SQLITE_DBCONFIG_DEFENSIVE": True,
    "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False,
}

TOO_MUCH = (
    f"the result is larger than 4 MB or {RESULT_CELLS:,} cells: ask for fewer or shorter columns,"
    " or page with LIMIT"
)

TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
COLUMN_NAMES = """
SELECT DISTINCT columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type IN ('table', 'view') AND instr(tables.name, '_fts') = 0
"""
_UNKNOWN = re.compile(r"no such (table|column): (?:\w+\.)?(\w+)")
# The statement of a page of a table or view; a limit inside a comment would not be a
# limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)
_QUOTED = re.compile(r'\s+|(".*?")')


class Rows(NamedTuple):
    """The result of a statement; `is_cut` is set if more rows exist."""

    description: Any
    rows: Sequence[Any]
    is_cut: bool


def bound_heap() -> None:
    """Limit SQLite's memory in this process, permanently and for all connections."""
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


def authorize(conn: sqlite3.Connection) -> None:
    """Restrict a connection to the allowed functions, pragmas and tables.

    Functions that Datasette's plugins have added to the connection are allowed.
    """
    functions = FUNCTIONS | (_function_names(conn) - _own_function_names())
    modules = module_names(conn)
    readable = {name.lower() for (name,) in conn.execute(TABLE_NAMES)}
    readable |= TABLE_FUNCTIONS
    readable |= {f"pragma_{name}" for name in PRAGMAS}
    readable.add("sqlite_master")

    def may_read(table: str, column: str) -> bool:
        name = table.lower()
        if name in readable:
            return True
        # Without a column, it may be the name of a common table expression.
        return not column and name not in modules and not name.startswith(_INTERNAL)

    def may(action: int, first: str | None, second: str | None, *_: str | None) -> bool:
        if action == sqlite3.SQLITE_READ:
            return may_read(first or "", second or "")
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() in functions
        if action == sqlite3.SQLITE_PRAGMA:
            return (first or "").lower() in _ALL_PRAGMAS
        return action in ACTIONS or (action, first) == _DECLARING

    conn.set_authorizer(
        lambda *action: sqlite3.SQLITE_OK if may(*action) else sqlite3.SQLITE_DENY
    )


def module_names(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the names of virtual tables that exist in every database, in lower case.

    SQLite before 3.30 does not list them, unless it was compiled to.
    """
    try:
        rows = conn.execute("SELECT name FROM pragma_module_list")
        return frozenset(name.lower() for (name,) in rows)
    except sqlite3.OperationalError:
        return _OLD_MODULES


def _function_names(conn: sqlite3.Connection) -> set[str]:
    """Return the names of all functions; SQLite before 3.30 does not list them."""
    try:
        rows = conn.execute("SELECT name FROM pragma_function_list")
        return {name.lower() for (name,) in rows}
    except sqlite3.OperationalError:
        return set()


@cache
def _own_function_names() -> frozenset[str]:
    """Return the names of all functions of SQLite itself."""
    conn = sqlite3.connect(":memory:")
    names = frozenset(_function_names(conn))
    conn.close()
    return names


def escape_fts(query: str) -> str:
    """Return a search with all words quoted, like Datasette's SQL function of this
    name.

    For a search without words, Datasette's returns an empty text, which is an error in
    a search.
    """
    if query.count('"') % 2:
        query += '"'
    words = []
    for word in _QUOTED.split(query):
        if word and word != '""':
            words.append(word if word.startswith('"') else f'"{word}"')
    # The empty phrase matches no row.
    return " ".join(words) or '""'


@contextmanager
def time_limit(conn: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt statements after so many seconds of this thread's processor time.

    On a busy machine, that takes longer by the clock; `CLOCK_TIMES` is the limit of
    that.
    """
    end_of_work = time.thread_time() + seconds
    end_by_clock = time.monotonic() + CLOCK_TIMES * seconds

    def is_over() -> bool:
        return time.thread_time() > end_of_work or time.monotonic() > end_by_clock

    conn.set_progress_handler(is_over, STEPS)
    try:
        yield
    finally:
        conn.set_progress_handler(None, STEPS)


def run_statement(
    conn: sqlite3.Connection,
    sql: str,
    params: Params,
    most_rows: int | None,
    least_rows: int | None = None,
) -> Rows:
    """Return the rows of a statement.

    Args:
        most_rows: the rows after which the result is cut; None for all.
        least_rows: the rows of a page of a table, if the result is for HTML
            (`page_rows`).

    Raises:
        sqlite3.Error: the result has more than `RESULT_BYTES` bytes or `RESULT_CELLS`
            cells, or SQLite refused the statement; for an unknown table or column, the
            text suggests similar names.
    """
    cursor = _executed(conn, sql, params)
    if least_rows is not None:
        most_rows = page_rows(len(cursor.description or ()), least_rows)
    return _bounded(cursor, cursor, most_rows)


def page_rows(column_count: int, least_rows: int) -> int:
    """Return how many rows an HTML page shows: at least those of a table, and the next
    one.

    Datasette asks for a row more than a page of a table has, to know whether there is
    another page.
    """
    return max(min(PAGE_ROWS, PAGE_CELLS // max(column_count, 1)), least_rows + 1)


def run_part(conn: sqlite3.Connection, sql: str, params: Params, *limits: Any) -> Rows:
    """Return the rows of a statement of a stream, as `run_statement` does.

    A stream reads one part of a table after the other, and the last row of each part
    twice, because that row shows that more follow. SQLite would compute all earlier
    rows of each part again, so the last few statements are suspended instead.
    """
    paged = _PAGED.fullmatch(sql)
    if paged is None:
        return run_statement(conn, sql, params, *limits)
    unlimited = paged["sql"]
    count = int(paged["count"])
    first = int(paged["first"] or 0)

    # Go on with the suspended statement, or begin one at the first row.
    values = params.items() if isinstance(params, Mapping) else params
    key = (conn, unlimited, *values)
    suspended = _suspended.pop((*key, first), None)
    if suspended is None:
        cursor = _executed(conn, f"{unlimited} LIMIT -1 OFFSET {first}", params)
        suspended = _Suspended(cursor)
    rows = chain(suspended.read_rows, suspended.cursor)
    result = _bounded(suspended.cursor, islice(rows, count))

    # A full part has more rows behind it; the next part begins with its last row.
    if len(result.rows) == count > 0:
        last = first + count - 1
        _suspended[(*key, last)] = _Suspended(suspended.cursor, result.rows[-1:])
        if len(_suspended) > MOST_BEGUN:
            _suspended.popitem(last=False)
    return result


class _Suspended(NamedTuple):
    """A statement that has been read in part.

    `read_rows` is the next row, if it was read already.
    """

    cursor: sqlite3.Cursor
    read_rows: Sequence[Any] = ()


_suspended: OrderedDict[Hashable, _Suspended] = OrderedDict()
"""Suspended statements, by their connection, text, values and next row."""


def _executed(conn: sqlite3.Connection, sql: str, params: Params) -> sqlite3.Cursor:
    """Return a statement's cursor; an error has names close to an unknown table or
    column.
    """
    try:
        return conn.execute(sql, params)
    except sqlite3.OperationalError as error:
        unknown = _UNKNOWN.fullmatch(str(error))
        if unknown is None:
            raise
        kind, name = unknown.groups()
        message = str(error)
        close = difflib.get_close_matches(name, _known_names(conn, kind), cutoff=0.5)
        if close:
            message += f"; close: {', '.join(close)}"
        raise sqlite3.OperationalError(message) from None


def _known_names(conn: sqlite3.Connection, kind: str) -> list[str]:
    """Return the names of all columns or tables, without those of full text."""
    statement = COLUMN_NAMES if kind == "column" else TABLE_NAMES
    # This connection may not read some view of another program.
    with suppress(sqlite3.Error):
        return [name for (name,) in conn.execute(statement) if "_fts" not in name]
    return []


def _bounded(
    cursor: sqlite3.Cursor,
    result: Iterable[Any],
    most_rows: int | None = None,
) -> Rows:
    """Return the rows of a result within the limits."""
    description = cursor.description or ()
    # JSON and HTML repeat the names of columns in each row.
    size_of_names = sum(_size(name) for name, *_ in description)
    rows: list[Any] = []
    size = 0
    cells = 0
    for row in result:
        size += size_of_names + sum(map(_size, row))
        cells += len(row)
        if len(rows) == most_rows:
            return Rows(description, rows, is_cut=True)
        if size > RESULT_BYTES or cells > RESULT_CELLS:
            raise sqlite3.OperationalError(TOO_MUCH)
        rows.append(row)
    return Rows(description, rows, is_cut=False)


def _size(value: SqlValue) -> int:
    """Return about how many bytes a value adds to a page; numbers are small."""
    if isinstance(value, str):
        # JSON escapes characters that are not ASCII.
        return len(value) if value.isascii() else 3 * len(value)
    if isinstance(value, bytes):
        return len(value)
    return 0
