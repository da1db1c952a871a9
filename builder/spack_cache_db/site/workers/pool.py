"""Worker processes that run tasks for the server, and are killed if a task takes too long."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from spack_cache_db.site.answers import Answer, Kind, SiteSettings
from spack_cache_db.site.sandbox.statements import Rows
from spack_cache_db.site.workers.worker import (
    ALARMS,
    CLOCK_TIMES,
    FAILURES,
    GRACE_SECONDS,
    INTERRUPTED,
    NO_MEMORY,
    Call,
    Failure,
    Outcome,
    Result,
    decoded,
    main,
    open_site,
    run_task,
)

START_SECONDS = 30.0
"""Longest time until a new process is ready."""
LATE_SECONDS = 2.0
"""Time after which a process is killed whose own alarm did not end it."""
PATIENCE_SECONDS = 30.0
"""Longest time that a task waits for a process."""
MOST_TASKS = 1_000
"""Tasks of one process; a new one frees the memory that the old one has kept."""
MOST_BYTES = 64_000_000
"""Size of the largest outcome; real ones have less than half of it."""

CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals of a crash; other signals come from the system or its administrator."""
BROKEN = Failure("OperationalError", "the query made SQLite fail")

FULL = "The server has as many requests of this kind as it can answer. Please try again soon."
NOT_STARTED = "The server could not start a process for this. Please try again soon."
KILLED = (
    "The system ended the process that worked on this, most often because the machine ran out of"
    " memory: ask for less, or try again."
)
_PROGRAM = f"from {main.__module__} import main; main()"


class BusyError(Exception):
    """The machine is the reason why a task has no result."""

    status = 503
    title = "Busy"


class TaskError(Exception):
    """A task failed because of a bug; the message is its traceback."""


@dataclass
class Budget:
    """The seconds of processor time that a request may still use in workers."""

    seconds: float


class Worker:
    """A worker process and the connection to it. All methods block, apart from `kill`.

    Args:
        settings: the site that it serves.
        niceness: what it adds to its niceness.

    Raises:
        BusyError: it did not start; the server's log has its traceback.
    """

    def __init__(self, settings: SiteSettings, niceness: int) -> None:
        self.tasks_left = MOST_TASKS
        try:
            self._connection, theirs = Pipe()
            with theirs:
                number = theirs.fileno()
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(number)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[number],
                )
        except OSError as error:
            raise BusyError(NOT_STARTED) from error
        self.end = weakref.finalize(self, _end, self._process, self._connection)
        is_ready = False
        with suppress(OSError, EOFError):
            self._connection.send((settings, niceness))
            is_ready = self._connection.poll(START_SECONDS) and bool(self._connection.recv_bytes())
        if not is_ready:
            self.end()
            raise BusyError(NOT_STARTED)

    @property
    def is_usable(self) -> bool:
        """Whether it can take another task."""
        return self.tasks_left > 0 and self.end.alive and self._process.poll() is None

    def kill(self) -> None:
        """Kill the process, from any thread; a `run` that waits for it returns."""
        self._process.kill()

    def run(self, call: Call, arguments: tuple[Any, ...], seconds: float) -> Outcome:
        """Return the outcome of a task.

        Raises:
            BusyError: the system killed the process.
        """
        self.tasks_left -= 1
        try:
            self._connection.send((call, arguments, seconds))
            if not self._connection.poll(CLOCK_TIMES * seconds + GRACE_SECONDS + LATE_SECONDS):
                self.end()
                return Outcome(failure=INTERRUPTED, seconds=seconds)
            outcome = decoded(self._connection.recv_bytes(MOST_BYTES))
        except (OSError, EOFError):
            return Outcome(failure=self._cause_of_death(), seconds=seconds)
        if outcome.failure == NO_MEMORY:
            self.tasks_left = 0
        return outcome

    def _cause_of_death(self) -> Failure:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LATE_SECONDS)
        code = self._process.returncode or 0
        self.end()
        if -code in ALARMS:
            return INTERRUPTED
        if code < 0 and -code not in CRASHES:
            raise BusyError(KILLED)
        # Python exits with 1 if no memory is left for the exception.
        return NO_MEMORY if code == 1 else BROKEN


def _end(process: subprocess.Popen[bytes], connection: Connection) -> None:
    connection.close()
    process.kill()
    process.wait()


@dataclass
class Task:
    """A task, and the worker that runs it at present."""

    kind: Kind
    seconds: float
    call: Call
    arguments: tuple[Any, ...]
    worker: Worker | None = None
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Kill the worker that runs it."""
        self.is_cancelled = True
        if self.worker:
            self.worker.kill()


class Pool:
    """The worker processes of a database; one thread waits for each of them.

    Each kind of request has its own workers, which start when they are needed.

    Args:
        settings: the site that they serve.
    """

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._threads: dict[Kind, ThreadPoolExecutor] = {}
        self._thread = threading.local()

    async def run(
        self, kind: Kind, budget: Budget, most_seconds: float, call: Call, *arguments: Any
    ) -> Result:
        """Return what `call(site, *arguments)` returns in a worker.

        If the request is cancelled or takes too long, its worker is killed.

        Args:
            kind: the kind of the request.
            budget: the time that the request has left; this task's time is subtracted.
            most_seconds: the part of it that this task may use.
            call: a function that a worker can import.
            arguments: its arguments after the site.

        Raises:
            sqlite3.Error: SQLite refused a statement; "interrupted" if the time was over.
            MemoryError: the task needed more memory than a worker has.
            BadAddress: the address has a field or value that the page does not know.
            BusyError: the machine could not run the task.
            TaskError: the function raised another exception.
        """
        seconds = min(most_seconds, budget.seconds)
        if seconds <= 0:
            raise _exception(INTERRUPTED)
        outcome = await self._outcome(Task(kind, seconds, call, arguments))
        budget.seconds -= outcome.seconds
        if outcome.failure:
            raise _exception(outcome.failure)
        return Rows(*outcome.rows) if outcome.rows else outcome.answer or Answer(b"")

    async def _outcome(self, task: Task) -> Outcome:
        kind = task.kind
        if kind not in self._threads:
            self._threads[kind] = ThreadPoolExecutor(kind.processes, kind.name)
        future = self._threads[kind].submit(self._run, task)
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait([waiting], timeout=PATIENCE_SECONDS)
            # True only if no thread has begun it.
            if future.cancel():
                raise BusyError(FULL)
            return await waiting
        finally:
            if not future.done() and not future.cancel():
                task.cancel()
            waiting.cancel()

    def _run(self, task: Task) -> Outcome:
        try:
            return self._run_once(task)
        except BusyError:
            if task.is_cancelled:
                raise
            # The system may have killed the process before the task began.
            return self._run_once(task)

    def _run_once(self, task: Task) -> Outcome:
        worker: Worker | None = getattr(self._thread, "worker", None)
        if worker is None or not worker.is_usable:
            if worker:
                worker.end()
            self._thread.worker = None
            worker = self._thread.worker = Worker(self._settings, task.kind.niceness)
        task.worker = worker
        try:
            if task.is_cancelled:
                return Outcome(failure=INTERRUPTED)
            return worker.run(task.call, task.arguments, task.seconds)
        finally:
            task.worker = None


class SingleProcess(Pool):
    """A pool without processes, for Datasette in a browser (Pyodide), which has one visitor."""

    def __init__(self, settings: SiteSettings) -> None:
        super().__init__(settings)
        self._site = open_site(settings)

    async def _outcome(self, task: Task) -> Outcome:
        return run_task(self._site, task.call, task.arguments, task.seconds)


def pool_for(settings: SiteSettings) -> Pool:
    """Return the workers of a site; in a browser, a pool without processes."""
    return SingleProcess(settings) if sys.platform == "emscripten" else Pool(settings)


def _exception(failure: Failure) -> Exception:
    if not failure.kind:
        return TaskError(failure.message)
    exception: type[Exception] = FAILURES.get(failure.kind) or getattr(sqlite3, failure.kind)
    return exception(failure.message)
