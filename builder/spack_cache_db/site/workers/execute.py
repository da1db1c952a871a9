"""Sends Datasette's statements and our own pages to worker processes.

A request without a query string runs only Datasette's own statements. They stay in Datasette's
threads, each within `sql_time_limit_ms`. If a request has a query string, all of its statements run
in worker processes within one budget.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted, Results

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import DATA, STREAMS, Answer, Kind
from spack_cache_db.site.catalogues import published, settings_of
from spack_cache_db.site.sandbox.statements import (
    SqlValue,
    page_rows,
    run_page,
    run_part,
    run_statement,
)
from spack_cache_db.site.workers.pool import Budget, Pool
from spack_cache_db.site.workers.worker import NO_MEMORY, Call, run_on

PAGE_SECONDS = 2.0
"""Longest time for one of our own pages."""
PAGE_STATEMENTS = 1.5
"""Longest time for a page of Datasette, in multiples of `sql_time_limit_ms`."""
STREAM_STATEMENTS = 60.0
"""Longest time for a stream of rows, likewise."""
PAUSE_SECONDS = 0.02
"""Time for other requests before each page of a query."""
# The statement of a page of a table or view; a limit inside a comment would not be a limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)
# Parameters of canned queries that Datasette fills in, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")
_BARE_SHAPES = ("array", "arrayfirst", "object")
"""JSON with rows alone, without a field that says whether there are more."""

_pools: WeakKeyDictionary[Any, Pool] = WeakKeyDictionary()
_locks: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()
"""Locks of pages of queries, by Datasette: one at a time waits for `PAUSE_SECONDS`."""
_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)


@dataclass
class RequestBudget(Budget):
    """The time left to a request for a page of Datasette, and the form of its answer.

    Attributes:
        is_page: whether the answer is HTML.
        takes_all: whether the form of the answer cannot say that rows are missing.
        refusal: the message of SQLite if it refused a statement of the request.
    """

    in_workers: bool = False
    is_page: bool = False
    takes_all: bool = False
    is_stream: bool = False
    refusal: str = ""


_budget: ContextVar[RequestBudget] = ContextVar("budget", default=RequestBudget(0))  # noqa: B039


def pool_of(datasette: Any, database: Any) -> Pool:
    """Return the worker processes for one of Datasette's databases."""
    if database not in _pools:
        _pools[database] = Pool(settings_of(datasette, database))
    return _pools[database]


async def ask(datasette: Any, kind: Kind, call: Call, *arguments: Any) -> Answer:
    """Return what `call(site, *arguments)` returns in a worker of the published database."""
    pool = pool_of(datasette, published(datasette))
    answer = await pool.run(kind, Budget(PAGE_SECONDS), PAGE_SECONDS, call, *arguments)
    assert isinstance(answer, Answer)
    return answer


@contextmanager
def budget_of(path: str, query_string: bytes, statement_seconds: float) -> Iterator[None]:
    """Set the budget of a request, given the longest time for one statement."""
    fields = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    is_stream = "_stream" in fields
    budget = RequestBudget(
        seconds=(STREAM_STATEMENTS if is_stream else PAGE_STATEMENTS) * statement_seconds,
        in_workers=bool(query_string),
        is_page=not path.endswith((".json", ".csv")) and "_format" not in fields,
        takes_all=path.endswith(".csv") or fields.get("_shape", [""])[0] in _BARE_SHAPES,
        is_stream=is_stream,
    )
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


async def take_turn(datasette: Any) -> None:
    """Let other requests run before Datasette renders a page of a query, at one stretch."""
    async with _locks.setdefault(datasette, asyncio.Lock()):
        await asyncio.sleep(PAUSE_SECONDS)


def refusal() -> str:
    """Return SQLite's message if it refused a statement of the request, else an empty text."""
    return _budget.get().refusal


def use_workers(datasette: Any) -> None:
    """Run the statements of visitors in worker processes, for each database that has a file."""
    for database in datasette.databases.values():
        if database.path:
            database.execute = partial(execute, datasette, database, database.execute)


async def execute(
    datasette: Any,
    database: Any,
    original: Callable[..., Awaitable[Any]],
    sql: str,
    params: Any = None,
    *,
    truncate: bool = False,
    custom_time_limit: int | None = None,
    page_size: int | None = None,
    **options: Any,
) -> Any:
    """Run a statement as `original` does, in a worker if the request has a query string."""
    budget = _budget.get()
    is_query_page = budget.is_page and truncate and page_size is None
    if not budget.in_workers or sql.startswith("PRAGMA "):
        options |= {"truncate": truncate, "page_size": page_size}
        results = await original(sql, params, custom_time_limit=custom_time_limit, **options)
        if not is_query_page:
            return results
        await take_turn(datasette)
        most_rows = page_rows(len(results.columns))
        if len(results.rows) <= most_rows:
            return results
        return Results(results.rows[:most_rows], True, results.description)
    longest = datasette.sql_time_limit_ms
    seconds = max(min(custom_time_limit or longest, longest), 1) / 1000
    values = plain_params(sql, params)
    paged = _PAGED.fullmatch(sql) if budget.is_stream else None
    task: tuple[Any, ...]
    if paged is not None:
        task = (run_part, paged["sql"], values, int(paged["first"] or 0), int(paged["count"]))
    elif is_query_page:
        task = (run_page, sql, values)
    else:
        most_rows = int(datasette.max_returned_rows)
        # A page of that size asks for one row more, to know whether there is a next page.
        most_rows += most_rows == (page_size or datasette.page_size)
        is_limited = truncate and not budget.takes_all
        task = (run_statement, sql, values, most_rows if is_limited else None)
    kind = STREAMS if budget.is_stream else DATA
    try:
        result = await pool_of(datasette, database).run(kind, budget, seconds, run_on, *task)
    except sqlite3.Error as error:
        if is_interrupted(error):
            raise QueryInterrupted(error, sql, params) from None
        budget.refusal = str(error)
        raise
    except MemoryError:
        budget.refusal = NO_MEMORY[1]
        raise
    assert not isinstance(result, Answer)
    if is_query_page:
        await take_turn(datasette)
    cursor = _cursor(result.columns)
    rows = [sqlite3.Row(cursor, row) for row in result.rows]
    return Results(rows, result.is_cut, cursor.description)


def plain_params(sql: str, params: Any) -> dict[str, SqlValue] | list[SqlValue]:
    """Return the parameters of a statement as values that can be pickled."""
    if not isinstance(params or {}, Mapping):
        return list(params)
    values = dict(params or {})
    for name in _MAGIC.findall(sql):
        # In a visitor's own statement it has no value, and SQLite reports that.
        with suppress(KeyError):
            values[name] = params[name]
    return values


def _cursor(columns: list[str]) -> sqlite3.Cursor:
    """Return a cursor with these columns, from which `sqlite3.Row` takes its names."""
    names = (column.replace('"', '""') for column in columns)
    # The names are quoted; the connection has no data.
    cursor = _NO_DATA.execute("SELECT " + ", ".join(f'NULL AS "{name}"' for name in names))
    cursor.fetchall()
    return cursor
