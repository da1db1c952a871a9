"""Runs statements of visitors, and cuts or refuses results that are too large.

The cells and characters of a result determine what its page costs. The part of a table
that a streamed response needs next comes from `run_part`; all other results from
`run_statement`.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

from spack_cache_db.errors import first_of
from spack_cache_db.query.open.sql import SqlValue

Params = Mapping[str, SqlValue] | Sequence[SqlValue]
"""Values of named parameters (`:release`), or of those called `?`."""

RESULT_BYTES = 4_000_000
"""Size limit of a result. JSON makes a control character six times as long, and three
copies of a response are in memory at a time.
"""
RESULT_CELLS = 25_000
"""Twice as many cells as a thousand rows of the widest table."""
PAGE_ROWS = 300
PAGE_CELLS = 2_000
"""Limits of HTML pages, which take ten times as long per cell as JSON; longer results
are cut.
"""
TOO_MUCH = (
    f"the result is larger than 4 MB or {RESULT_CELLS:,} cells: ask for fewer or shorter columns,"
    " or page with LIMIT"
)

MOST_SUSPENDED = 2
"""Limit of suspended statements: each may keep sorted rows in memory."""

_TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
_COLUMN_NAMES = """
SELECT DISTINCT columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type IN ('table', 'view') AND instr(tables.name, '_fts') = 0
"""
# Views come first, because they have names where tables have ids.
_TABLES_WITH = """
SELECT tables.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
WHERE columns.name = ? COLLATE NOCASE AND instr(tables.name, '_fts') = 0
ORDER BY tables.type = 'view' DESC, tables.rowid
"""
_MOST_TABLES = 3
"""Number of tables that a message names."""
# SQLite's messages, such as "no such column: builds.hsh".
_UNKNOWN_NAME = re.compile(r"no such (table|column): (?:\w+\.)?(\w+)")
# What Datasette asks for a page of a table or view: "select … limit 51 offset 100". A
# limit inside a comment would not be a limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)


class Rows(NamedTuple):
    """The result of a statement.

    Attributes:
        description: a tuple for each column, whose first item is its name, as in
            `sqlite3.Cursor.description`.
        rows: the rows.
        is_cut: whether more rows exist.
    """

    description: Any
    rows: Sequence[Any]
    is_cut: bool


def run_statement(
    conn: sqlite3.Connection,
    sql: str,
    params: Params,
    most_rows: int | None,
    least_rows: int | None = None,
) -> Rows:
    """Return the rows of a statement.

    Args:
        conn: the connection.
        sql: the statement.
        params: the values of its parameters.
        most_rows: the rows after which the result is cut; None for all.
        least_rows: the rows of a page of a table, if the result is for HTML: then the
            result is cut after `page_rows`.

    Raises:
        sqlite3.Error: the result has more than `RESULT_BYTES` bytes or `RESULT_CELLS`
            cells, or SQLite refused the statement; for an unknown table or column, the
            text suggests similar names.
    """
    cursor = _execute(conn, sql, params)
    if least_rows is not None:
        column_count = len(cursor.description or ())
        most_rows = page_rows(column_count, least_rows)
    return _bounded(cursor, cursor, most_rows)


def page_rows(column_count: int, least_rows: int) -> int:
    """Return how many rows of a result an HTML page shows.

    They are at least those of a page of a table and one more: Datasette asks for that
    row, to know whether there is another page.
    """
    rows_of_page_cells = PAGE_CELLS // max(column_count, 1)
    return max(min(PAGE_ROWS, rows_of_page_cells), least_rows + 1)


def _execute(conn: sqlite3.Connection, sql: str, params: Params) -> sqlite3.Cursor:
    """Return a statement's cursor; an error has names close to an unknown table or
    column.
    """
    try:
        return conn.execute(sql, params)
    except sqlite3.OperationalError as error:
        message = str(error)
        unknown = _UNKNOWN_NAME.fullmatch(message)
        if unknown is None:
            raise
        kind, name = unknown.groups()
        known = _known_names(conn, kind)
        others = [other for other in known if other.lower() != name.lower()]
        close = difflib.get_close_matches(name, others, cutoff=0.5)
        if close:
            message += f"; close: {', '.join(close)}"
        if len(others) < len(known):
            # The column is one of other tables, such as `package` of `builds`.
            tables = _names(conn, _TABLES_WITH, name)
            message += f"; it is a column of {first_of(tables, _MOST_TABLES)}"
        raise sqlite3.OperationalError(message) from None


def _known_names(conn: sqlite3.Connection, kind: str) -> list[str]:
    """Return the names of all columns or tables, without those of full text."""
    statement = _COLUMN_NAMES if kind == "column" else _TABLE_NAMES
    return [name for name in _names(conn, statement) if "_fts" not in name]


def _names(conn: sqlite3.Connection, statement: str, *params: str) -> list[str]:
    """Return the names that a statement finds."""
    # A view of another program may read a table that is not allowed here.
    with suppress(sqlite3.Error):
        return [name for (name,) in conn.execute(statement, params)]
    return []


def _bounded(
    cursor: sqlite3.Cursor,
    result: Iterable[Any],
    most_rows: int | None = None,
) -> Rows:
    """Return the rows of a result within the limits.

    Args:
        cursor: the cursor of the statement, which describes the columns.
        result: the rows, which are the cursor itself or some of its rows.
        most_rows: the rows after which the result is cut; None for all.
    """
    description = cursor.description or ()
    # JSON and HTML repeat the names of columns in each row.
    size_of_names = sum(_size(name) for name, *_ in description)
    rows: list[Any] = []
    size = 0
    cell_count = 0
    for row in result:
        if len(rows) == most_rows:
            return Rows(description, rows, is_cut=True)
        size += size_of_names + sum(map(_size, row))
        cell_count += len(row)
        if size > RESULT_BYTES or cell_count > RESULT_CELLS:
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


class _Suspended(NamedTuple):
    """A statement that has been read in part.

    Attributes:
        cursor: the rows that have not been read yet.
        read_rows: the row before these, if it comes next once more; else no row.
    """

    cursor: sqlite3.Cursor
    read_rows: Sequence[Any] = ()


_suspended: OrderedDict[Hashable, _Suspended] = OrderedDict()
"""Suspended statements, the oldest first.

The key is the connection, the statement without its limit, the values of parameters,
and the number of the row that comes next.
"""


def run_part(conn: sqlite3.Connection, sql: str, params: Params, *limits: Any) -> Rows:
    """Return the rows of a statement of a stream, as `run_statement` does.

    A stream reads one part of a table after the other, such as `limit 4`, then `limit 4
    offset 3`. The last row of each part is read twice, because that row shows that more
    follow. SQLite would compute all earlier rows of each part again, so the last few
    statements are suspended instead.
    """
    paged = _PAGED.fullmatch(sql)
    if paged is None:
        return run_statement(conn, sql, params, *limits)
    unlimited_sql = paged["sql"]
    count = int(paged["count"])
    first = int(paged["first"] or 0)

    # Go on with the suspended statement, or begin one at the first row.
    values = params.items() if isinstance(params, Mapping) else params
    key = (conn, unlimited_sql, *values)
    suspended = _suspended.pop((*key, first), None)
    if suspended is None:
        # SQLite reads LIMIT -1 as no limit; OFFSET needs a LIMIT.
        cursor = _execute(conn, f"{unlimited_sql} LIMIT -1 OFFSET {first}", params)
        suspended = _Suspended(cursor)
    rows = chain(suspended.read_rows, suspended.cursor)
    result = _bounded(suspended.cursor, islice(rows, count))

    # A full part may have more rows behind it; the next part begins with its last row.
    if len(result.rows) == count > 0:
        last = first + count - 1
        last_row = result.rows[-1:]
        _suspended[(*key, last)] = _Suspended(suspended.cursor, last_row)
        if len(_suspended) > MOST_SUSPENDED:
            _suspended.popitem(last=False)
    return result
