"""Sends visitors' statements and our own pages to worker processes, which can be killed.

A request without a query string runs only Datasette's own statements. They stay in Datasette's
threads, each within `sql_time_limit_ms`. If a request has a query string, all of its statements run
in worker processes within one budget.
"""

from __future__ import annotations

import asyncio
import pickle
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted, Results

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import DATA, STREAMS, Answer, Kind, SiteSettings
from spack_cache_db.site.catalogues import published, settings_of
from spack_cache_db.site.sandbox import statements
from spack_cache_db.site.workers import worker as program

PAGE_SECONDS = 2.0
"""Longest time for one of our own pages."""
PAGE_STATEMENTS, STREAM_STATEMENTS = 1.5, 60.0
"""Longest time for a page of Datasette or a stream of rows, in multiples of `sql_time_limit_ms`."""
ROOM_SECONDS, CELL_SECONDS = 0.02, 3e-5
"""Time from one page of Datasette, and each of its cells, to the next; a third is rendering."""
PATIENCE_SECONDS = 30.0
"""Longest time that a task waits for its turn, and then for the start of a process."""
CLOCK_TIMES, LATE_SECONDS = 5, 2.0
"""A task ends after this multiple of its processor time by the clock, and so many seconds."""
MOST_BYTES = 64_000_000
"""Size of the largest outcome; real ones have less than half of it."""
HAS_PROCESSES = sys.platform != "emscripten"
"""False in a browser (Pyodide), where the server itself runs the tasks."""

INTERRUPTED, BROKEN = ["interrupted"], ["the query made SQLite fail"]
# Most tasks need `routes`; a new process should not import it within the time of a task.
_PROGRAM = f"""
import contextlib, os
with contextlib.suppress(OSError):  # The shipped systemd unit forbids it.
    os.nice({{}})
import spack_cache_db.site.routes
from {program.__name__} import main
main()
"""
# Parameters of canned queries that Datasette fills in, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")
_NO_DATA = sqlite3.connect(":memory:", check_same_thread=False)


class BusyError(Exception):
    """The machine is the reason why a task has no result."""

    status = 503
    title = "Busy"
    message = "The server is busy or short of memory: ask for less, or try again soon."


@dataclass
class Budget:
    """The seconds of processor time that a request may still use, and the form of its answer.

    Attributes:
        is_page: whether the answer is HTML.
        takes_all: whether the form of the answer cannot say that rows are missing.
        refusal: the message of SQLite if it refused a statement of the request.
    """

    seconds: float
    kind: Kind = DATA
    in_workers: bool = False
    is_page: bool = False
    takes_all: bool = False
    refusal: str = ""


_budget: ContextVar[Budget] = ContextVar("budget", default=Budget(0))  # noqa: B039


class Worker:
    """A worker process and the connection to it; `is_ready` while it waits for a task."""

    def __init__(self, process: subprocess.Popen[bytes], *streams: Any) -> None:
        self.process, self.is_ready = process, False
        self._reader, self._writer = streams

    @classmethod
    async def started(cls, settings: SiteSettings, niceness: int) -> Worker:
        """Return a new worker that is ready; if it fails, the server's log has its traceback."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-c", _PROGRAM.format(niceness)]
                pipe, no_pipe = theirs.fileno(), subprocess.DEVNULL
                process = subprocess.Popen(command, stdin=pipe, stdout=no_pipe)
        except OSError as error:
            raise BusyError from error
        worker = cls(process, *await asyncio.open_connection(sock=ours))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await worker._ask(settings)
            worker.is_ready = True
        except (OSError, EOFError) as error:
            raise BusyError from error
        finally:
            if not worker.is_ready:
                worker.end()
        return worker

    async def run(
        self, call: program.Call, arguments: tuple[Any, ...], seconds: float
    ) -> program.Outcome:
        """Return the outcome of a task; `BusyError` if the process ended without a fault of it."""
        self.is_ready = False
        try:
            async with asyncio.timeout(CLOCK_TIMES * seconds + LATE_SECONDS):
                outcome = await self._ask(call, arguments, seconds)
        except TimeoutError:
            return "OperationalError", INTERRUPTED, seconds
        except (OSError, EOFError):
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, LATE_SECONDS)
            code = self.process.returncode
            if code in (None, 0, 1, -signal.SIGKILL, -signal.SIGTERM):
                # It had run `MOST_TASKS`, had no memory for an exception, or the system killed it.
                raise BusyError from None
            return "OperationalError", INTERRUPTED if code == -signal.SIGPROF else BROKEN, seconds
        self.is_ready = outcome[0] != "MemoryError"
        return outcome

    def end(self) -> None:
        """Kill the process, and do not wait for its end."""
        self._writer.transport.abort()
        self.process.kill()
        threading.Thread(target=self.process.wait).start()

    async def _ask(self, *message: Any) -> program.Outcome:
        import msgspec  # Missing in Pyodide.

        self._writer.write(pickle.dumps(message))
        size = int.from_bytes(await self._reader.readexactly(program.LENGTH_BYTES))
        if size > MOST_BYTES:
            return "MemoryError", [program.NO_MEMORY], 0.0
        body = await self._reader.readexactly(size)
        return msgspec.msgpack.decode(body, type=tuple[str, list[Any], float])


class Workers:
    """The processes for one kind of request; if all are busy, one more is started for later."""

    def __init__(self, settings: SiteSettings, kind: Kind) -> None:
        self._settings, self._kind = settings, kind
        self._idle = asyncio.LifoQueue[Worker | None]()
        self._count = 0
        self._starting: asyncio.Task[None] | None = None

    async def run(self, *task: Any) -> program.Outcome:
        """Return the outcome of a task of the first process that is ready for it."""
        self._grow()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (worker := await self._idle.get()) and worker.process.poll() is not None:
                    # It had run `MOST_TASKS`, or the system has killed it.
                    self._remove(worker)
                    self._grow()
        except TimeoutError:
            raise BusyError from None
        if worker is None:
            raise BusyError
        self._grow()
        try:
            return await worker.run(*task)
        finally:
            if worker.is_ready:
                self._idle.put_nowait(worker)
            else:
                self._remove(worker)

    def _remove(self, worker: Worker) -> None:
        worker.end()
        self._count -= 1

    def _grow(self) -> None:
        """Start a process if none is idle, and none is starting."""
        is_starting = self._starting is not None and not self._starting.done()
        if self._idle.empty() and not is_starting and self._count < self._kind.processes:
            self._count += 1
            self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        """Add a process, or None for one request that waits if it does not start."""
        worker = None
        try:
            worker = await Worker.started(self._settings, self._kind.niceness)
        except BusyError:
            self._count -= 1
        self._idle.put_nowait(worker)


class Pool:
    """The worker processes for a database; each kind of request has its own."""

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._site = None if HAS_PROCESSES else program.open_site(settings)
        self._workers: dict[Kind, Workers] = {}
        self.next_page = 0.0
        """When Datasette may render the next page, as the event loop's time."""

    async def run(
        self, budget: Budget, most_seconds: float, call: program.Call, *arguments: Any
    ) -> Any:
        """Return what `call(site, *arguments)` returns in a worker, or raise its exception.

        The time of the task, at most `most_seconds`, is subtracted from the budget; if it is over,
        SQLite's error is "interrupted". The text of a `RuntimeError` is the traceback of a bug.
        """
        if (seconds := min(most_seconds, budget.seconds)) <= 0:
            raise sqlite3.OperationalError(*INTERRUPTED)
        name, values, used = await self._outcome(budget.kind, call, arguments, seconds)
        budget.seconds -= used
        result = program.RESULTS[name](*values)
        if isinstance(result, Exception):
            raise result
        return result

    async def _outcome(self, kind: Kind, *task: Any) -> program.Outcome:
        if self._site is not None:
            return program.run_task(self._site, *task)
        if kind not in self._workers:
            self._workers[kind] = Workers(self._settings, kind)
        try:
            return await self._workers[kind].run(*task)
        except BusyError:
            # The process may have ended before the task began.
            return await self._workers[kind].run(*task)


_pools: WeakKeyDictionary[Any, Pool] = WeakKeyDictionary()


def pool_of(datasette: Any, database: Any) -> Pool:
    """Return the worker processes for one of Datasette's databases."""
    if database not in _pools:
        _pools[database] = Pool(settings_of(datasette, database))
    return _pools[database]


async def ask(datasette: Any, kind: Kind, call: program.Call, *arguments: Any) -> Answer:
    """Return what `call(site, *arguments)` returns in a worker of the published database."""
    pool = pool_of(datasette, published(datasette))
    answer: Answer = await pool.run(Budget(PAGE_SECONDS, kind), PAGE_SECONDS, call, *arguments)
    return answer


def set_budget(query: bytes, seconds: float, *, is_page: bool, takes_all: bool) -> None:
    """Set the budget of this request, given the longest time for one statement in seconds."""
    is_stream = b"&_stream=" in b"&" + query
    kind, factor = (STREAMS, STREAM_STATEMENTS) if is_stream else (DATA, PAGE_STATEMENTS)
    _budget.set(Budget(factor * seconds, kind, bool(query), is_page, takes_all))


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
    **options: Any,
) -> Any:
    """Run a statement as `original` does, in a worker if the request has a query string."""
    budget, pool = _budget.get(), pool_of(datasette, database)
    page_size, is_limited = options.get("page_size"), options.get("truncate", False)
    is_shown = budget.is_page and is_limited
    # Datasette gives the same options for a query and for a table without `_size` in its address.
    least_rows = datasette.page_size if is_shown and page_size is None else None
    if not budget.in_workers or sql.startswith("PRAGMA "):
        results = await original(sql, params, **options)
    else:
        most_rows = int(datasette.max_returned_rows)
        # A page of that size asks for one row more, to know whether there is a next page.
        most_rows += most_rows == (page_size or datasette.page_size)
        is_stream, is_cut = budget.kind is STREAMS, is_limited and not budget.takes_all
        call = statements.run_part if is_stream else statements.run_statement
        task = (call, sql, plain_params(sql, params), most_rows if is_cut else None, least_rows)
        longest = datasette.sql_time_limit_ms
        seconds = min(options.get("custom_time_limit") or longest, longest) / 1000
        try:
            result = await pool.run(budget, seconds, program.run_on, *task)
        except (sqlite3.Error, MemoryError) as error:
            if is_interrupted(error):
                raise QueryInterrupted(error, sql, params) from None
            budget.refusal = str(error)
            raise
        results = results_of(result)
    if not is_shown:
        return results
    rows, column_count = results.rows, len(results.columns)
    if least_rows is not None:
        rows = rows[: statements.page_rows(column_count, least_rows)]
    now = asyncio.get_running_loop().time()
    start = max(now, pool.next_page)
    pool.next_page = start + ROOM_SECONDS + CELL_SECONDS * len(rows) * column_count
    await asyncio.sleep(start - now)
    is_cut = results.truncated or len(rows) < len(results.rows)
    return Results(rows, is_cut, results.description)


def plain_params(sql: str, params: Any) -> Any:
    """Return the parameters of a statement as values that can be pickled."""
    if isinstance(params, list | tuple):
        return params
    values = dict(params or {})
    # In a visitor's own statement they have no value, and SQLite reports that.
    with suppress(KeyError):
        values |= {name: params[name] for name in _MAGIC.findall(sql)}
    return values


def results_of(result: statements.Rows) -> Any:
    """Return the rows of a worker as those of Datasette, which have names."""
    names = ('"{}"'.format(column.replace('"', '""')) for column in result.columns)
    # `sqlite3.Row` takes its names from a cursor; they are quoted, and there are no data.
    cursor = _NO_DATA.execute(f"SELECT NULL AS {', NULL AS '.join(names)} LIMIT 0")
    rows = [sqlite3.Row(cursor, tuple(row)) for row in result.rows]
    return Results(rows, result.is_cut, cursor.description)
