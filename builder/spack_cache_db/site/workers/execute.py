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
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted, Results

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import DATA, STREAMS, Answer, Kind, SiteSettings
from spack_cache_db.site.catalogues import published, settings_of
from spack_cache_db.site.sandbox.statements import (
    Rows,
    page_rows,
    run_page,
    run_part,
    run_statement,
)
from spack_cache_db.site.workers import worker as program

PAGE_SECONDS = 2.0
"""Longest time for one of our own pages."""
PAGE_STATEMENTS, STREAM_STATEMENTS = 1.5, 60.0
"""Longest time for a page of Datasette or a stream of rows, in multiples of `sql_time_limit_ms`."""
PAUSE_SECONDS = 0.02
"""Time for other requests before each page of a query, which is rendered at one stretch."""
PATIENCE_SECONDS = 30.0
"""Longest time that a task waits for its turn, and then for the start of a process."""
LATE_SECONDS = 2.0
"""Time after which a process is killed whose own alarm did not end it."""
MOST_BYTES = 64_000_000
"""Size of the largest outcome; real ones have less than half of it."""
HAS_PROCESSES = sys.platform != "emscripten"
"""Whether tasks run in worker processes; in a browser (Pyodide), they run in this one."""

INTERRUPTED, BROKEN = ["interrupted"], ["the query made SQLite fail"]
# Most tasks need the first module; a new process should not import it within the time of a task.
_PROGRAM = f"import spack_cache_db.site.routes; from {program.__name__} import main; main()"
# The statement of a page of a table or view; a limit inside a comment would not be a limit.
_PAGED = re.compile(
    r"(?P<sql>(?!.*(?:--|/\*)).*) limit (?P<count>[0-9]{1,9})(?: offset (?P<first>[0-9]{1,9}))?"
)
# Parameters of canned queries that Datasette fills in, such as :_now_epoch.
_MAGIC = re.compile(r"(?<!:):(_\w+)")
_BARE_SHAPES = ("array", "arrayfirst", "object")
"""JSON with rows alone, without a field that says whether there are more."""
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


Call = Callable[..., Any]
_budget: ContextVar[Budget] = ContextVar("budget", default=Budget(0))  # noqa: B039


class Worker:
    """A process for tasks, which starts with the first and again after it had to end."""

    def __init__(self, settings: SiteSettings, niceness: int) -> None:
        self._settings = (settings, niceness)
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self, call: Call, arguments: tuple[Any, ...], seconds: float) -> program.Outcome:
        """Return the outcome of a task; `BusyError` if no process was left to finish it."""
        is_ready = False
        try:
            process = self._process or await self._start()
            async with asyncio.timeout(program.CLOCK_TIMES * seconds + LATE_SECONDS):
                outcome = await self._ask(call, arguments, seconds)
            is_ready = outcome[0] != "MemoryError"
            return outcome
        except TimeoutError:
            return "OperationalError", INTERRUPTED, seconds
        except (OSError, EOFError):
            code = await asyncio.to_thread(process.wait, LATE_SECONDS)
            if code in (0, 1, -signal.SIGKILL, -signal.SIGTERM):
                # It had run `MOST_TASKS`, had no memory for an exception, or the system killed it.
                raise BusyError from None
            return "OperationalError", INTERRUPTED if -code in program.ALARMS else BROKEN, seconds
        finally:
            if not is_ready:
                self._end()

    async def _start(self) -> subprocess.Popen[bytes]:
        """Start the process; if it fails, the server's log has its traceback."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                command, pipe = [sys.executable, "-c", _PROGRAM], theirs.fileno()
                process = subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL)
            self._reader, self._writer = await asyncio.open_connection(sock=ours)
            self._process = process
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._ask(*self._settings)
        except (OSError, EOFError) as error:
            raise BusyError from error
        return process

    async def _ask(self, *message: Any) -> program.Outcome:
        import msgspec  # Missing in Pyodide.

        self._writer.write(pickle.dumps(message))
        size = int.from_bytes(await self._reader.readexactly(program.LENGTH_BYTES))
        if size > MOST_BYTES:
            return "MemoryError", [program.NO_MEMORY], 0.0
        body = await self._reader.readexactly(size)
        return msgspec.msgpack.decode(body, type=tuple[str, list[Any], float])

    def _end(self) -> None:
        """Kill the process, and do not wait for its end."""
        if self._process is not None:
            self._writer.transport.abort()
            self._process.kill()
            threading.Thread(target=self._process.wait).start()
            self._process = None


class Pool:
    """The worker processes for a database; each kind of request has its own."""

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._site = None if HAS_PROCESSES else program.open_site(settings)
        self._idle: defaultdict[Kind, list[Worker]] = defaultdict(list)
        self._turns: dict[Kind, asyncio.Semaphore] = {}
        self.rendering = asyncio.Lock()

    async def run(self, budget: Budget, most_seconds: float, call: Call, *arguments: Any) -> Any:
        """Return what `call(site, *arguments)` returns in a worker, which ends with the request.

        The time of the task, at most `most_seconds`, is subtracted from the budget.

        Raises:
            sqlite3.Error: SQLite refused a statement; "interrupted" if the time was over.
            MemoryError: the task needed more memory than a worker has.
            BadAddress: the address has a field or value that the page does not know.
            BusyError: the machine could not run the task.
            RuntimeError: the function raised another exception; the text is its traceback.
        """
        outcome: program.Outcome = ("OperationalError", INTERRUPTED, 0.0)
        if (seconds := min(most_seconds, budget.seconds)) > 0:
            outcome = await self._outcome(budget.kind, call, arguments, seconds)
        name, values, used = outcome
        budget.seconds -= used
        result = program.RESULTS[name](*values)
        if isinstance(result, Exception):
            raise result
        return result

    async def _outcome(self, kind: Kind, *task: Any) -> program.Outcome:
        if self._site is not None:
            return program.run_task(self._site, *task)
        turn = self._turns.setdefault(kind, asyncio.Semaphore(kind.processes))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise BusyError from None
        idle = self._idle[kind]
        worker = idle.pop() if idle else Worker(self._settings, kind.niceness)
        try:
            return await worker.run(*task)
        except BusyError:
            # The process may have ended before the task began.
            return await worker.run(*task)
        finally:
            idle.append(worker)
            turn.release()


_pools: WeakKeyDictionary[Any, Pool] = WeakKeyDictionary()


def pool_of(datasette: Any, database: Any) -> Pool:
    """Return the worker processes for one of Datasette's databases."""
    if database not in _pools:
        _pools[database] = Pool(settings_of(datasette, database))
    return _pools[database]


async def ask(datasette: Any, kind: Kind, call: Call, *arguments: Any) -> Answer:
    """Return what `call(site, *arguments)` returns in a worker of the published database."""
    pool = pool_of(datasette, published(datasette))
    answer: Answer = await pool.run(Budget(PAGE_SECONDS, kind), PAGE_SECONDS, call, *arguments)
    return answer


def set_budget(path: str, query_string: bytes, statement_seconds: float) -> None:
    """Set the budget of this request, given the longest time for one statement."""
    fields = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    is_stream = "_stream" in fields
    budget = Budget(
        seconds=(STREAM_STATEMENTS if is_stream else PAGE_STATEMENTS) * statement_seconds,
        kind=STREAMS if is_stream else DATA,
        in_workers=bool(query_string),
        is_page=not path.endswith((".json", ".csv")),
        takes_all=path.endswith(".csv") or fields.get("_shape", [""])[0] in _BARE_SHAPES,
    )
    _budget.set(budget)


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
    is_query_page = budget.is_page and is_limited and page_size is None
    task: tuple[Any, ...]
    if not budget.in_workers or sql.startswith("PRAGMA "):
        results = await original(sql, params, **options)
    else:
        values = plain_params(sql, params)
        if paged := budget.kind is STREAMS and _PAGED.fullmatch(sql):
            task = (run_part, paged["sql"], values, int(paged["first"] or 0), int(paged["count"]))
        elif is_query_page:
            task = (run_page, sql, values)
        else:
            most_rows = int(datasette.max_returned_rows)
            # A page of that size asks for one row more, to know whether there is a next page.
            most_rows += most_rows == (page_size or datasette.page_size)
            is_limited = is_limited and not budget.takes_all
            task = (run_statement, sql, values, most_rows if is_limited else None)
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
    if not is_query_page:
        return results
    async with pool.rendering:
        await asyncio.sleep(PAUSE_SECONDS)
    most_rows = page_rows(len(results.columns))
    is_cut = results.truncated or len(results.rows) > most_rows
    return Results(results.rows[:most_rows], is_cut, results.description)


def plain_params(sql: str, params: Any) -> Any:
    """Return the parameters of a statement as values that can be pickled."""
    if not isinstance(params or {}, Mapping):
        return list(params)
    values = dict(params or {})
    # In a visitor's own statement they have no value, and SQLite reports that.
    with suppress(KeyError):
        values |= {name: params[name] for name in _MAGIC.findall(sql)}
    return values


def results_of(result: Rows) -> Any:
    """Return the rows of a worker as those of Datasette, which have names."""
    names = ('"{}"'.format(column.replace('"', '""')) for column in result.columns)
    # `sqlite3.Row` takes its names from a cursor; they are quoted, and there are no data.
    cursor = _NO_DATA.execute(f"SELECT NULL AS {', NULL AS '.join(names)} LIMIT 0")
    rows = [sqlite3.Row(cursor, tuple(row)) for row in result.rows]
    return Results(rows, result.is_cut, cursor.description)
