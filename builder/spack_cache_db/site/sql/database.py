"""Datasette's `Database.execute`, where a request carries a visitor's words.

A request without a query string asks nothing that Datasette did not write: it stays in Datasette's
threads. All statements of others go to the runners, within a budget for the whole request: a page
may count, search and facet, and all of it together takes no longer than one statement may.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasette.database import QueryInterrupted, Results

from spack_cache_db.site.sql.runners import Runners
from spack_cache_db.site.sql.statement import INTERRUPTED, Answer, Refusal, Rows, Statement, Value

PAGE_STATEMENTS = 1.5
"""A page has so many times what one statement may take (`sql_time_limit_ms`) for all of its own."""
STREAM_STATEMENTS = 60.0

# Parameters that Datasette fills in where a canned query names them, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")

Execute = Callable[..., Awaitable[Any]]


@dataclass
class Budget:
    """What a request may still take of the runners, in times that one statement may take."""

    statements: float
    refusal: str = ""
    """Why a statement of it was refused, in SQLite's words; not that its time was over."""


_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)

_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget_of(query_string: bytes) -> Iterator[None]:
    """Let the statements of a request with a query string run in runners."""
    is_stream = b"_stream" in query_string
    statements = STREAM_STATEMENTS if is_stream else PAGE_STATEMENTS
    budget = Budget(statements) if query_string else None
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def refusal() -> str:
    """Return why a statement of the current request was refused; empty where none was."""
    budget = _budget.get()
    return budget.refusal if budget else ""


def use_runners(datasette: Any) -> None:
    """Have the statements of visitors' requests run by runners, for each file that is served."""
    for database in datasette.databases.values():
        if database.path:
            database.execute = ByRunners(datasette, database).execute


class ByRunners:
    """What stands in for the `execute` of one of Datasette's databases."""

    def __init__(self, datasette: Any, database: Any) -> None:
        mode = "mode=ro" if database.is_mutable else "immutable=1"
        self.runners = Runners(f"{Path(database.path).resolve().as_uri()}?{mode}")
        self._datasette = datasette
        self._inner: Execute = database.execute

    async def execute(
        self,
        sql: str,
        params: Any = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
        page_size: int | None = None,
        log_sql_errors: bool = True,
        **more: Any,
    ) -> Any:
        """Run a statement as `Database.execute` does, where the request says.

        Raises:
            QueryInterrupted, sqlite3.Error: as Datasette raises them.
            MemoryError, BusyError: it was refused.
        """
        budget = _budget.get()
        if budget is None or sql.startswith("PRAGMA "):
            given = (params, truncate, custom_time_limit, page_size, log_sql_errors)
            return await self._inner(sql, *given, **more)
        longest = max(1, self._datasette.sql_time_limit_ms)
        left = min(custom_time_limit or longest, longest, budget.statements * longest)
        most = self._most_rows(page_size) if truncate else None
        statement = Statement(sql, plain_params(sql, params), left, most)
        if left < 1:
            raise _interrupted(statement)
        answer, seconds = await self.runners.answer(statement)
        budget.statements -= seconds * 1000 / longest
        if isinstance(answer, Refusal) and answer != INTERRUPTED:
            budget.refusal = answer.message
        return results_of(statement, answer)

    def _most_rows(self, page_size: int | None) -> int:
        # A page of as many rows as there may be asks for one more, to know whether there is a next.
        most = int(self._datasette.max_returned_rows)
        return most + 1 if most == (page_size or self._datasette.page_size) else most


def plain_params(sql: str, params: Any) -> dict[str, Value] | list[Value]:
    """Return parameters as they can be sent; canned queries have some that are asked one by one."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        return list(params)
    given = dict(params)
    for name in _MAGIC.findall(sql):
        # What a visitor's own statement names so has no value, and SQLite says that.
        with suppress(KeyError):
            given[name] = params[name]
    return given


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
