"""Sends Datasette's statements and our own pages to worker processes.

A request without a query string runs only Datasette's own statements. They stay in Datasette's
threads, each within `sql_time_limit_ms`. If a request has a query string, all of its statements run
in worker processes within one budget: counting, searching and facets together may take
`PAGE_STATEMENTS` times as long as one statement.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted, Results

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import DATA, STREAMS, Answer, Kind
from spack_cache_db.site.catalogues import published, settings_of
from spack_cache_db.site.routes import ROUTES, route_of
from spack_cache_db.site.sandbox.statements import (
    PAGE_CELLS,
    RESULT_CELLS,
    Rows,
    SqlValue,
    run_part,
    run_statement,
)
from spack_cache_db.site.workers.pool import Budget, Pool, kind, pool_for
from spack_cache_db.site.workers.worker import NO_MEMORY, Call, run_on

PAGE_SECONDS = 2.0
"""What a page of the catalogue may take."""
PAGE_STATEMENTS = 1.5
"""What a page of Datasette may take, in times of what one statement may."""
STREAM_STATEMENTS = 60.0
# How Datasette asks for a page of a table or view. What stands in a comment is no limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)

# Parameters that Datasette fills in where a canned query names them, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")

_BARE_SHAPES = ("array", "arrayfirst", "object")
"""Shapes of JSON that are the rows alone: of SQL nothing says that there are more."""

_pools: WeakKeyDictionary[Any, Pool] = WeakKeyDictionary()
_budget: ContextVar[RequestBudget | None] = ContextVar("budget", default=None)
_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)


@dataclass
class RequestBudget(Budget):
    """The budget of a request for one of Datasette's pages, and what became of its statements.

    Attributes:
        is_page: whether what is found is shown as HTML.
        takes_all: whether what is found is given in a form that cannot say that rows are missing.
        is_stream: whether all rows are asked for, one part after the other.
        refusal: why a statement of the request was refused, in SQLite's words.
        is_cut: whether one of its results has more rows than it was given.
    """

    is_page: bool = False
    takes_all: bool = False
    is_stream: bool = False
    refusal: str = ""
    is_cut: bool = False


def pool_of(datasette: Any, database: Any) -> Pool:
    """Return the worker processes for one of Datasette's databases."""
    if database not in _pools:
        _pools[database] = pool_for(settings_of(datasette, database))
    return _pools[database]


async def ask(datasette: Any, call: Call, *arguments: Any) -> Answer:
    """Return what `call(site, *arguments)` answers in a worker, about the published database.

    Raises:
        Exception: see `Pool.run`.
    """
    pool = pool_of(datasette, published(datasette))
    answer = await pool.run(Budget(PAGE_SECONDS), PAGE_SECONDS, call, *arguments)
    assert isinstance(answer, Answer)
    return answer


@contextmanager
def budget_of(path: str, query_string: bytes, statement_seconds: float) -> Iterator[None]:
    """Let the statements of a request with a query string run in worker processes.

    Args:
        path: the path of the address.
        query_string: what stands behind its `?`.
        statement_seconds: what one statement may take.
    """
    fields = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    is_stream = "_stream" in fields
    statements = STREAM_STATEMENTS if is_stream else PAGE_STATEMENTS
    is_page = not path.endswith((".json", ".csv")) and "_format" not in fields
    takes_all = path.endswith(".csv") or fields.get("_shape", [""])[0] in _BARE_SHAPES
    seconds = statements * statement_seconds
    budget = RequestBudget(seconds, is_page, takes_all, is_stream) if query_string else None
    token, kind_token = _budget.set(budget), kind.set(kind_of(path, is_stream=is_stream))
    try:
        yield
    finally:
        _budget.reset(token)
        kind.reset(kind_token)


def kind_of(path: str, *, is_stream: bool = False) -> Kind:
    """Return the kind of a request: of one of our pages, or of rows of a table or statement."""
    number = route_of(path)
    if number is not None:
        return ROUTES[number].kind
    return STREAMS if is_stream else DATA


def refusal() -> str:
    """Return why a statement of the current request was refused; empty where none was."""
    budget = _budget.get()
    return budget.refusal if budget else ""


def is_cut() -> bool:
    """Return whether a result of the current request has more rows than it was given."""
    budget = _budget.get()
    return budget is not None and budget.is_cut


def use_workers(datasette: Any) -> None:
    """Have the statements of visitors' requests run in worker processes, for each file served."""
    for database in datasette.databases.values():
        if database.path:
            database.execute = _InWorkers(datasette, database).execute


class _InWorkers:
    """What replaces the `execute` of one of Datasette's databases."""

    def __init__(self, datasette: Any, database: Any) -> None:
        self._datasette, self._database = datasette, database
        self._inner: Callable[..., Awaitable[Any]] = database.execute

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
        """Run a statement as `Database.execute` does, in a worker where a request has a budget.

        Raises:
            QueryInterrupted, sqlite3.Error: as Datasette raises them.
            MemoryError, BusyError: see `Pool.run`.
        """
        budget = _budget.get()
        if budget is None or sql.startswith("PRAGMA "):
            given = (params, truncate, custom_time_limit, page_size, log_sql_errors)
            return await self._inner(sql, *given, **more)
        longest = self._datasette.sql_time_limit_ms
        seconds = max(min(custom_time_limit or longest, longest), 1) / 1000
        most_rows = self._most_rows(page_size) if truncate and not budget.takes_all else None
        most_cells = PAGE_CELLS if budget.is_page else RESULT_CELLS
        # A table's page looks for one row more than it shows, to know whether there is a next.
        may_cut = truncate and budget.is_page and page_size is None
        shape = (most_rows, most_cells, may_cut)
        task: tuple[Any, ...] = (run_statement, sql, plain_params(sql, params), *shape)
        paged = _PAGED.fullmatch(sql) if budget.is_stream else None
        if paged is not None:
            part = (int(paged["first"] or 0), int(paged["count"]))
            task = (run_part, paged["sql"], plain_params(sql, params), *part)
        pool = pool_of(self._datasette, self._database)
        try:
            found = await pool.run(budget, seconds, run_on, *task)
        except sqlite3.Error as error:
            if is_interrupted(error):
                raise QueryInterrupted(error, sql, params) from None
            budget.refusal = str(error)
            raise
        except MemoryError:
            budget.refusal = NO_MEMORY.message
            raise
        assert isinstance(found, Rows)
        budget.is_cut = budget.is_cut or found.is_cut
        cursor = _cursor(found.columns)
        rows = [sqlite3.Row(cursor, row) for row in found.rows]
        return Results(rows, found.is_cut, cursor.description)

    def _most_rows(self, page_size: int | None) -> int:
        # A page of as many rows as there may be asks for one more, to know whether there is a next.
        most = int(self._datasette.max_returned_rows)
        return most + 1 if most == (page_size or self._datasette.page_size) else most


def plain_params(sql: str, params: Any) -> dict[str, SqlValue] | list[SqlValue]:
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


def _cursor(columns: list[str]) -> sqlite3.Cursor:
    """Return a cursor with these columns: rows of `sqlite3` take their names from one."""
    names = (column.replace('"', '""') for column in columns)
    # The names are quoted; the connection has no data.
    cursor = _NO_DATA.execute("SELECT " + ", ".join(f'NULL AS "{name}"' for name in names))
    cursor.fetchall()
    return cursor
