"""Runs the statements of Datasette's pages within the limits of `limits` and `running`.

Datasette cuts a result after `max_returned_rows`. HTML and JSON objects say so. Other
forms get all rows, or an error if there are too many.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from datasette.database import QueryInterrupted, Results

from spack_cache_db.site.sql import limits, running
from spack_cache_db.site.sql.overtime import ended_after
from spack_cache_db.sqlite_connection import is_interrupted

SHARE_OF_ADDITIONS = 0.5
"""The part of the time limit for statements that only add to the rows of a page, such
as their count. Datasette leaves out what takes longer.
"""


class SlowStatement(NamedTuple):
    """A statement that took too long, and the values of its parameters."""

    sql: str
    params: running.Params


@dataclass
class Reading:
    """How the response to a request uses the rows of its statements.

    Attributes:
        is_page: whether the response is HTML.
        takes_all: whether the form of the response cannot say that rows are missing.
        is_stream: whether the statements read one part of a table after the other.
        refusal: the message of SQLite if it refused a statement of the request.
        slow: the last statement of the request that took too long; None if none did.
    """

    is_page: bool = False
    takes_all: bool = False
    is_stream: bool = False
    refusal: str = ""
    slow: SlowStatement | None = None


_reading: ContextVar[Reading] = ContextVar("reading", default=Reading())  # noqa: B039
"""The `Reading` of the request that this task answers."""


def begin_reading(reading: Reading) -> None:
    """Set how this request uses rows; its statements are those of the same task."""
    _reading.set(reading)


def refusal() -> str:
    """Return SQLite's message if it refused a statement of the request, else an empty
    text.
    """
    return _reading.get().refusal


def slow_statement() -> SlowStatement | None:
    """Return the last statement of the request that took too long; None if none did."""
    return _reading.get().slow


def limit_statements(datasette: Any) -> None:
    """Run all statements of Datasette with `execute`, for each database that has a
    file.
    """
    for database in datasette.databases.values():
        if database.path:
            database.execute = partial(execute, datasette, database)


async def execute(
    datasette: Any,
    database: Any,
    sql: str,
    params: Any = None,
    truncate: bool = False,
    custom_time_limit: int | None = None,
    page_size: int | None = None,
    log_sql_errors: bool = True,
) -> Any:
    """Run a statement as `Database.execute` of Datasette does, within our limits.

    Args:
        datasette: the Datasette.
        database: the database.
        sql: the statement.
        params: the values of its parameters.
        truncate: whether the statement has the rows of a page, which may be cut, and is
            not an addition to them.
        custom_time_limit: a shorter time limit in milliseconds.
        page_size: the rows of a page, if the address has a number for them.
        log_sql_errors: ignored; the response has the error.

    Raises:
        QueryInterrupted: the statement took too long.
        sqlite3.Error: SQLite refused the statement, or its result is too large.
        MemoryError: the statement needs more memory than SQLite may use.
    """
    reading = _reading.get()
    milliseconds = datasette.sql_time_limit_ms
    if not truncate:
        milliseconds *= SHARE_OF_ADDITIONS
    site_seconds = milliseconds / 1000
    if custom_time_limit:
        # It comes from the address, and may be too large for a division.
        milliseconds = min(milliseconds, custom_time_limit)
    seconds = milliseconds / 1000

    # The rows after which the result is cut; None for all rows.
    most_rows = None
    if truncate and not reading.takes_all:
        most_rows = int(datasette.max_returned_rows)
        # A page of that size asks for one row more, to know whether there is a next
        # page.
        if most_rows == (page_size or datasette.page_size):
            most_rows += 1

    # The rows of a page of a table, if the result is for HTML. Datasette gives the same
    # options for a query and for a table without `_size` in its address.
    least_rows = None
    if reading.is_page and truncate and page_size is None:
        least_rows = datasette.page_size

    # Run the statement on a connection, in a thread of Datasette's.
    values: Any = {} if params is None else params
    run = running.run_part if reading.is_stream else running.run_statement

    def run_in_time(conn: sqlite3.Connection) -> running.Rows:
        # No visitor ends a process with a shorter time of their own.
        with limits.time_limit(conn, seconds), ended_after(site_seconds):
            return run(conn, sql, values, most_rows, least_rows)

    try:
        result = await database.execute_fn(run_in_time)
    except (sqlite3.Error, MemoryError) as error:
        if is_interrupted(error):
            # Datasette shows the values, and copies them.
            shown_values = dict(values) if isinstance(values, Mapping) else values
            reading.slow = SlowStatement(sql, shown_values)
            raise QueryInterrupted(error, sql, shown_values) from None
        reading.refusal = str(error)
        raise
    return Results(result.rows, result.is_cut, result.description)
