"""Datasette's `Database.execute`, where a request carries a visitor's words.

A request without a query string asks nothing that Datasette did not write: it stays in Datasette's
threads. All statements of others go to the runners, within a budget for the whole request: a page
may count, search and facet, and all of it together takes no longer than one statement may.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasette.database import QueryInterrupted, Results

from spack_cache_db.site.sql.runners import Runners
from spack_cache_db.site.sql.statement import Answer, Rows, Statement, Value

PAGE_SECONDS = 1.5
STREAM_SECONDS = 60.0

# Parameters that Datasette fills in where a canned query names them, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")

Execute = Callable[..., Awaitable[Any]]


@dataclass
class Budget:
    """What a request may still take of the runners."""

    seconds: float


_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)

_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget_of(query_string: bytes) -> Iterator[None]:
    """Let the statements of a request with a query string run in runners."""
    is_stream = b"_stream" in query_string
    budget = Budget(STREAM_SECONDS if is_stream else PAGE_SECONDS) if query_string else None
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def use_runners(datasette: Any) -> None:
    """Have the statements of visitors' requests run by runners, for each file that is served."""
    for database in datasette.databases.values():
        if database.path:
            database.execute = executed_by_runners(datasette, database, database.execute)


def executed_by_runners(datasette: Any, database: Any, inner: Execute) -> Execute:
    """Return what stands in for `database.execute`, which is `inner`."""
    mode = "mode=ro" if database.is_mutable else "immutable=1"
    runners = Runners(f"{Path(database.path).resolve().as_uri()}?{mode}")

    async def execute(
        sql: str,
        params: Any = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
        page_size: int | None = None,
        log_sql_errors: bool = True,
        **more: Any,
    ) -> Any:
        budget = _budget.get()
        if budget is None or sql.startswith("PRAGMA "):
            given = (params, truncate, custom_time_limit, page_size, log_sql_errors)
            return await inner(sql, *given, **more)
        limit = min(custom_time_limit or datasette.sql_time_limit_ms, datasette.sql_time_limit_ms)
        most = _most_rows(datasette, page_size) if truncate else None
        left = min(limit, budget.seconds * 1000)
        statement = Statement(sql, plain_params(sql, params), left, most)
        if left < 1:
            raise _interrupted(statement)
        answer, seconds = await runners.answer(statement)
        budget.seconds -= seconds
        return results_of(statement, answer)

    return execute


def _most_rows(datasette: Any, page_size: int | None) -> int:
    # A page of as many rows as there may be asks for one more, to know whether there is a next.
    most = int(datasette.max_returned_rows)
    return most + 1 if most == (page_size or datasette.page_size) else most


def plain_params(sql: str, params: Any) -> dict[str, Value] | list[Value]:
    """Return parameters as they can be sent; canned queries have some that are asked one by one."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        return list(params)
    magic = {name: params[name] for name in _MAGIC.findall(sql) if name not in params}
    return {**params, **magic}


def results_of(statement: Statement, answer: Answer) -> Any:
    """Return rows as Datasette knows them, or raise what it would have met.

    Raises:
        QueryInterrupted: the time was over.
        sqlite3.Error, MemoryError: the statement was refused.
    """
    if isinstance(answer, Rows):
        cursor = _cursor(answer.columns)
        rows = [sqlite3.Row(cursor, row) for row in answer.rows]
        return Results(rows, answer.is_cut, cursor.description)
    if answer.message == "interrupted":
        raise _interrupted(statement)
    if answer.kind == "MemoryError":
        raise MemoryError(answer.message)
    raise getattr(sqlite3, answer.kind)(answer.message)


def _interrupted(statement: Statement) -> Exception:
    error = sqlite3.OperationalError("interrupted")
    found: Exception = QueryInterrupted(error, statement.sql, statement.params)
    return found


def _cursor(columns: list[str]) -> sqlite3.Cursor:
    """Return a cursor with these columns: rows of `sqlite3` take their names from one."""
    names = (column.replace('"', '""') for column in columns)
    # The names are quoted; the connection has no data.
    cursor = _NO_DATA.execute("SELECT " + ", ".join(f'NULL AS "{name}"' for name in names))
    cursor.fetchall()
    return cursor
