"""Worker processes that run tasks for the server, and are killed when a task takes too long."""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import sqlite3
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from spack_cache_db.site.answers import PAGES, Kind, SiteSettings
from spack_cache_db.site.workers.worker import (
    ALARMS,
    CLOCK_TIMES,
    FAILURES,
    GRACE_SECONDS,
    INTERRUPTED,
    LENGTH,
    NO_MEMORY,
    Call,
    Failure,
    Result,
    decoded,
    framed,
    main,
    open_site,
    run_task,
)

START_SECONDS = 30.0
"""So long a process may take until it is ready."""
LATE_SECONDS = 2.0
"""So long after a task should have ended its process is killed; its own alarm rings before that."""
PATIENCE_SECONDS = 30.0
"""So long a task waits for a process before it is refused."""
MOST_TASKS = 1_000
"""After so many a process makes room for another: what it has kept in memory goes with it."""
MOST_BYTES = 64_000_000
"""Of one result; none of what is asked for is half as long."""
LARGE = 64 * 1024
"""Bytes of a document that is read in a thread: the event loop would wait for it."""

CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals by which a process ends itself; others come from the system, or from who runs it."""
BROKEN = Failure("OperationalError", "the query made SQLite fail")

FULL = "The server has as many requests of this kind as it can answer. Please try again soon."
NOT_STARTED = "The server could not start a process for this. Please try again soon."
KILLED = (
    "The system ended the process that worked on this, most often because the machine ran out of"
    " memory: ask for less, or try again."
)
_PROGRAM = f"from {main.__module__} import main; main()"


kind: ContextVar[Kind] = ContextVar("kind", default=PAGES)
"""The kind of the current request."""


class BusyError(Exception):
    """The machine, not the task, is why there is no result."""

    status = 503
    title = "Busy"


class TaskError(Exception):
    """A task ended in an exception that is a bug; the message is its traceback."""


@dataclass
class Budget:
    """The seconds of processor time that a request may still take of the workers."""

    seconds: float


class Worker:
    """A worker process, and the socket to it.

    Args:
        settings: the site that it serves.
        niceness: what it adds to its niceness.

    Raises:
        BusyError: it could not be started.
    """

    def __init__(self, settings: SiteSettings, niceness: int) -> None:
        try:
            self._socket, theirs = socket.socketpair()
            with theirs:
                command, end = [sys.executable, "-c", _PROGRAM], theirs.fileno()
                self._process = subprocess.Popen(command, stdin=end, stdout=end)
        except OSError as error:
            raise BusyError(NOT_STARTED) from error
        self._socket.setblocking(False)
        self._first = (settings, niceness)
        self.end = weakref.finalize(self, _end, self._process, self._socket)
        self.tasks_left = MOST_TASKS

    @property
    def is_alive(self) -> bool:
        """Whether it can take another task."""
        return self.end.alive and self._process.poll() is None

    async def start(self) -> None:
        """Wait until the process is ready.

        Raises:
            BusyError: it did not start; its traceback is in the server's log.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(self._first)
                is_ready = await self._received() is not None
        except (TimeoutError, ConnectionError):
            is_ready = False
        if not is_ready:
            raise BusyError(NOT_STARTED)

    async def run(
        self, call: Call, arguments: tuple[Any, ...], seconds: float
    ) -> tuple[Result | Failure, float]:
        """Return the result of a task and the seconds that it took."""
        self.tasks_left -= 1
        try:
            async with asyncio.timeout(CLOCK_TIMES * seconds + GRACE_SECONDS + LATE_SECONDS):
                await self._send((call, arguments, seconds))
                received = await self._received()
        except ConnectionError:
            received = None
        except TimeoutError:
            self.end()
            return INTERRUPTED, seconds
        if received is not None:
            return received
        try:
            return await self._death(), seconds
        finally:
            self.end()

    async def _send(self, message: object) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, framed(pickle.dumps(message)))

    async def _received(self) -> tuple[Result | Failure, float] | None:
        """Return the next result; None where the process ends before it is whole."""
        document = await self._read_part()
        body = None if document is None else await self._read_part()
        if document is None or body is None:
            return None
        if len(document) > LARGE:
            return await asyncio.to_thread(decoded, document, body)
        return decoded(document, body)

    async def _read_part(self) -> bytes | None:
        head = await self._read(LENGTH)
        length = int.from_bytes(head or b"", "big")
        return await self._read(length) if head and length <= MOST_BYTES else None

    async def _read(self, length: int) -> bytes | None:
        loop, found = asyncio.get_running_loop(), bytearray()
        while len(found) < length:
            chunk = await loop.sock_recv(self._socket, min(length - len(found), 1 << 20))
            if not chunk:
                return None
            found += chunk
        return bytes(found)

    async def _death(self) -> Failure:
        """Return why the process ended in the middle of a task.

        Raises:
            BusyError: the system killed it.
        """
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, LATE_SECONDS)
        code = self._process.returncode or 0
        if -code in ALARMS:
            return INTERRUPTED
        if code < 0 and -code not in CRASHES:
            raise BusyError(KILLED)
        # Python ends with 1 where it has no memory left for the exception that says so.
        return NO_MEMORY if code == 1 else BROKEN


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.kill()
    process.wait()


class Pool:
    """The worker processes of a database, by kinds of requests; each is started when it is needed.

    Args:
        settings: the site that they serve.
    """

    def __init__(self, settings: SiteSettings) -> None:
        self._settings = settings
        self._idle: dict[Kind, list[Worker]] = {}
        # A semaphore belongs to one event loop.
        self._slots: weakref.WeakKeyDictionary[Any, dict[Kind, asyncio.Semaphore]]
        self._slots = weakref.WeakKeyDictionary()

    async def run(self, budget: Budget, most_seconds: float, call: Call, *arguments: Any) -> Result:
        """Return what `call(site, *arguments)` returns in a worker for the current kind of request.

        A task that is cancelled, or takes too long, is killed with its process.

        Args:
            budget: what is left to the request; what the task takes is taken from it.
            most_seconds: what this task may take of it.
            call: a function that a process can import.
            arguments: its arguments after the site.

        Raises:
            sqlite3.Error: SQLite refused a statement; "interrupted" where the time was over.
            MemoryError: the task needed more memory than a process has.
            BadAddress: a page does not know what it is asked.
            BusyError: the machine could not run the task.
            TaskError: the function ended in any other exception.
        """
        seconds = min(most_seconds, budget.seconds)
        if seconds <= 0:
            raise _exception(INTERRUPTED)
        slots = self._slot(kind.get())
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await slots.acquire()
        except TimeoutError:
            raise BusyError(FULL) from None
        try:
            try:
                result, taken = await self._run(call, arguments, seconds)
            except BusyError:
                # The system may have killed a process while nobody needed it.
                result, taken = await self._run(call, arguments, seconds)
        finally:
            slots.release()
        budget.seconds -= taken
        if isinstance(result, Failure):
            raise _exception(result)
        return result

    def _slot(self, asked: Kind) -> asyncio.Semaphore:
        slots = self._slots.setdefault(asyncio.get_running_loop(), {})
        return slots.setdefault(asked, asyncio.Semaphore(asked.processes))

    @staticmethod
    def _living(idle: list[Worker]) -> Iterator[Worker]:
        while idle:
            worker = idle.pop()
            if worker.is_alive:
                yield worker
            else:
                worker.end()

    async def _run(
        self, call: Call, arguments: tuple[Any, ...], seconds: float
    ) -> tuple[Result | Failure, float]:
        asked = kind.get()
        idle = self._idle.setdefault(asked, [])
        worker = next(self._living(idle), None) or Worker(self._settings, asked.niceness)
        is_done = False
        try:
            if worker.tasks_left == MOST_TASKS:
                await worker.start()
            result = await worker.run(call, arguments, seconds)
            is_done = worker.tasks_left > 0 and worker.is_alive and result[0] != NO_MEMORY
        finally:
            if is_done:
                idle.append(worker)
            else:
                worker.end()
        return result


class SingleProcess(Pool):
    """A pool without processes: tasks run in the server, one by one.

    In a browser (Datasette Lite, Pyodide) the only visitor is the one whose machine it is.
    """

    def __init__(self, settings: SiteSettings) -> None:
        super().__init__(settings)
        self._site = open_site(settings)

    async def _run(
        self, call: Call, arguments: tuple[Any, ...], seconds: float
    ) -> tuple[Result | Failure, float]:
        return run_task(self._site, call, arguments, seconds), 0.0


def pool_for(settings: SiteSettings) -> Pool:
    """Return the worker processes for a site, or a pool without processes in a browser."""
    return SingleProcess(settings) if sys.platform == "emscripten" else Pool(settings)


def _exception(failure: Failure) -> Exception:
    if failure.kind in FAILURES:
        return FAILURES[failure.kind](failure.message)
    if failure.kind:
        found: Exception = getattr(sqlite3, failure.kind)(failure.message)
        return found
    return TaskError(failure.message)
