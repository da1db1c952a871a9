"""Sends Datasette's statements and the catalogue's pages to the sandbox.

A request without a query string runs only Datasette's own statements. They stay in Datasette's
threads, each within `sql_time_limit_ms`. If a request has a query string, all of its statements run
in the sandbox within one budget: counting, searching and facets together may take
`PAGE_STATEMENTS` times as long as one statement.

Pages of the catalogue read everything in the sandbox. Pages that depend on nothing but a name are
kept, because the file does not change while it is served.
"""

from __future__ import annotations

import pickle
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted, Results

from spack_cache_db.query.connection import Lookups, is_interrupted
from spack_cache_db.site.catalogues import published
from spack_cache_db.site.datasettes import Recent
from spack_cache_db.site.sandbox.pool import Budget, Pool, pool_for
from spack_cache_db.site.sandbox.process import NO_MEMORY, with_lookups
from spack_cache_db.site.sandbox.statements import (
    PAGE_CELLS,
    RESULT_CELLS,
    Rows,
    SqlValue,
    run_part,
    run_statement,
)

P = ParamSpec("P")
T = TypeVar("T")
Load = Callable[Concatenate[Lookups, P], T]

PAGE_SECONDS = 2.0
"""What a page of the catalogue may take."""
PAGE_STATEMENTS = 1.5
"""What a page of Datasette may take, in times of what one statement may."""
STREAM_STATEMENTS = 60.0
MOST_KEPT_BYTES = 8_000_000
"""Of pages of one kind that are kept, pickled: of all those that were asked for last."""
KEPT_BYTES = 2_000
"""That one page takes in memory beside what is pickled."""

# How Datasette asks for a page of a table or view. What stands in a comment is no limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)

# Parameters that Datasette fills in where a canned query names them, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")

_BARE_SHAPES = ("array", "arrayfirst", "object")
"""Shapes of JSON that are the rows alone: of SQL nothing says that there are more."""

_pools: WeakKeyDictionary[Any, Pool] = WeakKeyDictionary()
_recent: WeakKeyDictionary[Any, dict[Any, Recent]] = WeakKeyDictionary()
_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)
_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)


def pool_of(database: Any) -> Pool:
    """Return the processes for one of Datasette's databases."""
    if database not in _pools:
        mode = "mode=ro" if database.is_mutable else "immutable=1"
        _pools[database] = pool_for(f"{Path(database.path).resolve().as_uri()}?{mode}")
    return _pools[database]


async def read(datasette: Any, load: Load[P, T], *args: P.args, **_: P.kwargs) -> T:
    """Return `load(lookups, *args)`, called in the sandbox.

    Raises:
        Exception: see `Pool.run`.
    """
    pool = pool_of(published(datasette))
    found: T = await pool.run(Budget(PAGE_SECONDS), PAGE_SECONDS, with_lookups, load, *args)
    return found


async def read_once(datasette: Any, load: Load[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Read like `read`, and keep what is found.

    None, for what does not exist, and a page that only has an error are not kept.
    """
    database = published(datasette)
    reading = partial(read, datasette, load, *args, **named)
    if database.is_mutable:
        return await reading()
    recent = _recent.setdefault(database, {}).setdefault(load, Recent(MOST_KEPT_BYTES, _size))
    return await recent.once(args, reading, _is_found)


def _size(kept: object) -> int:
    return KEPT_BYTES + len(pickle.dumps(kept))


def _is_found(page: object) -> bool:
    return page is not None and getattr(page, "error", None) is None


@contextmanager
def budget_of(path: str, query_string: bytes, statement_seconds: float) -> Iterator[None]:
    """Let the statements of a request with a query string run in the sandbox.

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
    budget = Budget(seconds, is_page, takes_all, is_stream) if query_string else None
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def refusal() -> str:
    """Return why a statement of the current request was refused; empty where none was."""
    budget = _budget.get()
    return budget.refusal if budget else ""


def is_cut() -> bool:
    """Return whether a result of the current request has more rows than it was given."""
    budget = _budget.get()
    return budget is not None and budget.is_cut


def use_sandbox(datasette: Any) -> None:
    """Have the statements of visitors' requests run in the sandbox, for each file served."""
    for database in datasette.databases.values():
        if database.path:
            database.execute = _Sandboxed(datasette, database).execute


class _Sandboxed:
    """What replaces the `execute` of one of Datasette's databases."""

    def __init__(self, datasette: Any, database: Any) -> None:
        self._datasette, self._pool = datasette, pool_of(database)
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
        """Run a statement as `Database.execute` does, in the sandbox where a request has a budget.

        Raises:
            QueryInterrupted, sqlite3.Error: as Datasette raises them.
            MemoryError, SandboxError: see `Pool.run`.
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
        try:
            found: Rows = await self._pool.run(budget, seconds, *task)
        except sqlite3.Error as error:
            if is_interrupted(error):
                raise QueryInterrupted(error, sql, params) from None
            budget.refusal = str(error)
            raise
        except MemoryError:
            budget.refusal = NO_MEMORY.message
            raise
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
