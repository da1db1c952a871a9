"""What helps a visitor whose query took too long.

For a canned query, that is the `advice` of its metadata. For other SQL and for pages of
tables, it is the largest table that the statement reads whole, and a condition that
leaves out most of its rows.
"""

from __future__ import annotations

import sqlite3
from typing import Any
from urllib.parse import urlencode

from datasette.database import QueryInterrupted
from datasette.utils import tilde_decode

from spack_cache_db.site.catalogue import name_of
from spack_cache_db.site.metadata import metadata_of
from spack_cache_db.site.sql.example_conditions import Condition, condition_on
from spack_cache_db.site.sql.execution import slow_statement
from spack_cache_db.site.sql.limits import time_limit
from spack_cache_db.site.sql.whole_tables import WholeTable, largest_whole_table

# For a statement about which nothing is known.
GENERAL_ADVICE = (
    "Name a package or a release in WHERE, or count with the view release_counts or the columns"
    " that end in _count."
)
_PLAN_SECONDS = 0.1
"""Longest processor time to find out which table a statement reads."""


def is_slow_query(exception: BaseException) -> bool:
    """Return whether a request failed because a statement took too long.

    Datasette raises another exception for some pages, with this title.
    """
    is_titled_so = getattr(exception, "title", None) == "SQL Interrupted"
    return is_titled_so or isinstance(exception, QueryInterrupted)


async def advice_on(datasette: Any, request: Any) -> str:
    """Return what a visitor can do whose query took too long, in one or two sentences.

    Args:
        datasette: the Datasette.
        request: Datasette's request, to a canned query, a table or an address with SQL.
    """
    canned = canned_query(datasette, request)
    if canned is not None and "advice" in canned:
        return str(canned["advice"])

    # Only the tables of the published database are known.
    slow = slow_statement()
    database = _database_of(datasette, request)
    is_published = database is not None and database.name == name_of(datasette)
    if slow is None or not is_published:
        return GENERAL_ADVICE

    # SQL takes a condition as SQL, the page of a table in its address.
    is_table_page = "sql" not in request.args and canned is None
    path = request.path if is_table_page else None

    def read_advice(conn: sqlite3.Connection) -> str:
        with time_limit(conn, _PLAN_SECONDS):
            table = largest_whole_table(conn, slow.sql, slow.params)
            if table is None:
                return GENERAL_ADVICE
            return _sentence(table, condition_on(conn, table), path)

    try:
        advice: str = await database.execute_fn(read_advice)
    except sqlite3.Error:
        return GENERAL_ADVICE
    return advice


def canned_query(datasette: Any, request: Any) -> dict[str, Any] | None:
    """Return the metadata of the canned query that a request is for; None if it is for
    something else.
    """
    # Datasette's address of a canned query is like that of a table.
    database = _database_of(datasette, request)
    name = tilde_decode(request.url_vars.get("table") or "")
    if database is None:
        return None
    queries = metadata_of(datasette, database.name).get("queries") or {}
    query = queries.get(name)
    # The owner's queries may be plain texts.
    return {"sql": query} if isinstance(query, str) else query


def _database_of(datasette: Any, request: Any) -> Any:
    """Return the database in the address of a request; None if it has none."""
    route = request.url_vars.get("database")
    try:
        return datasette.get_database(route=tilde_decode(route)) if route else None
    except KeyError:
        return None


def _sentence(table: WholeTable, condition: Condition | None, path: str | None) -> str:
    """Return how much a statement reads, and a condition that leaves out most of it.

    Args:
        table: the table that it reads whole.
        condition: the condition; None if there is no simple one.
        path: the path of the page of a table, which takes conditions in its address;
            None for SQL.
    """
    verb = "reads" if table.is_certain else "may read"
    text = f"It {verb} all {table.row_count:,} rows of {table.name}"
    if table.source != table.name:
        text += f" (for the view {table.source})"
    if condition is None:
        return f"{text}: add a condition that leaves out most of them."
    example = condition.sql
    if path is not None:
        fields = urlencode({condition.column: condition.value})
        example = f"{path}?{fields}"
    return f"{text}: name a {condition.noun}, for instance {example}."
