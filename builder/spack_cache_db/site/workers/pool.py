"""Worker processes that run tasks for the server, and are killed if a task takes too long."""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spack_cache_db.site.answers import Answer, Kind, SiteSettings
from spack_cache_db.site.sandbox.statements import Rows
from spack_cache_db.site.workers.worker import (
    ALARMS,
    CLOCK_TIMES,
    ERRORS,
    GRACE_SECONDS,
    INTERRUPTED,
    LENGTH_BYTES,
    NO_MEMORY,
    Call,
    Outcome,
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
READ_BYTES = 1 << 20
"""Amount of an outcome that is read at once."""

CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals of a crash; other signals come from the system or its administrator."""
BROKEN = ("OperationalError", "the query made SQLite fail")

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
    """A worker process and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], *streams: Any) -> None:
        self.tasks_left = MOST_TASKS
        self._process = process
        self._reader, self._writer = streams

    @classmethod
    async def started(cls, settings: SiteSettings, niceness: int) -> Worker:
        """Return a new worker that is ready; if it fails, the server's log has its traceback."""
        ours, theirs = socket.socketpair()
        streams = await asyncio.open_connection(sock=ours, limit=READ_BYTES)
        command = [sys.executable, "-c", _PROGRAM]
        try:
            with theirs:
                pipe, no_pipe = theirs.fileno(), subprocess.DEVNULL
                process = subprocess.Popen(command, stdin=pipe, stdout=no_pipe)
        except OSError as error:
            streams[1].close()
            raise BusyError(NOT_STARTED) from error
        worker, is_ready = cls(process, *streams), False
        try:
            async with asyncio.timeout(START_SECONDS):
                await worker._ask((settings, niceness))
            is_ready = True
        except (OSError, EOFError) as error:
            raise BusyError(NOT_STARTED) from error
        finally:
            if not is_ready:
                worker.end()
        return worker

    async def run(self, call: Call, arguments: tuple[Any, ...], seconds: float) -> Outcome:
        """Return the outcome of a task; `BusyError` if the system killed the process."""
        tasks_left, self.tasks_left = self.tasks_left - 1, 0
        try:
            async with asyncio.timeout(CLOCK_TIMES * seconds + GRACE_SECONDS + LATE_SECONDS):
                outcome = await self._ask((call, arguments, seconds))
        except TimeoutError:
            return *INTERRUPTED, seconds
        except (OSError, EOFError):
            return *await self._cause_of_death(), seconds
        self.tasks_left = 0 if outcome[:2] == NO_MEMORY else tasks_left
        return outcome

    async def _ask(self, message: object) -> Outcome:
        import msgspec  # Missing in Pyodide.

        self._writer.write(pickle.dumps(message))
        size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES))
        if size > MOST_BYTES:
            self._process.send_signal(signal.SIGABRT)
            raise EOFError
        body = await self._reader.readexactly(size)
        return msgspec.msgpack.decode(body, type=tuple[str, Any, float])

    async def _cause_of_death(self) -> tuple[str, str]:
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, LATE_SECONDS)
        code = self._process.returncode or 0
        if -code in ALARMS:
            return INTERRUPTED
        if code < 0 and -code not in CRASHES:
            raise BusyError(KILLED)
        # Python exits with 1 if no memory is left for the exception.
        return NO_MEMORY if code == 1 else BROKEN

    def is_alive(self) -> bool:
        """Return whether the process runs; the system may have killed it between two tasks."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process, and do not wait for its end."""
        self._writer.transport.abort()
        self._process.kill()
        threading.Thread(target=self._process.wait).start()


class Pool:
    """The worker processes of a site, which start when they are needed.

    Each kind of request has its own. In a browser (Pyodide), tasks run in this process.
    """

    def __init__(
        self, settings: SiteSettings, *, has_processes: bool = sys.platform != "emscripten"
    ) -> None:
        self._settings = settings
        self._site = None if has_processes else open_site(settings)
        self._idle: defaultdict[Kind, list[Worker]] = defaultdict(list)
        self._turns: dict[Kind, asyncio.Semaphore] = {}

    async def run(
        self, kind: Kind, budget: Budget, most_seconds: float, call: Call, *arguments: Any
    ) -> Answer | Rows:
        """Return what `call(site, *arguments)` returns in a worker, which ends with the request.

        The time of the task, at most `most_seconds`, is subtracted from the budget.

        Raises:
            sqlite3.Error: SQLite refused a statement; "interrupted" if the time was over.
            MemoryError: the task needed more memory than a worker has.
            BadAddress: the address has a field or value that the page does not know.
            BusyError: the machine could not run the task.
            TaskError: the function raised another exception.
        """
        name: str
        content: Any
        name, content = INTERRUPTED
        if (seconds := min(most_seconds, budget.seconds)) > 0:
            name, content, used = await self._outcome(kind, call, arguments, seconds)
            budget.seconds -= used
        if name == "Rows":
            columns, rows, is_cut = content
            return Rows(columns, [*map(tuple, rows)], is_cut)
        if name == "Answer":
            return Answer(*content)
        raise ERRORS.get(name, TaskError)(content)

    async def _outcome(self, kind: Kind, *task: Any) -> Outcome:
        if self._site is not None:
            return run_task(self._site, *task)
        turn = self._turns.setdefault(kind, asyncio.Semaphore(kind.processes))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise BusyError(FULL) from None
        try:
            return await self._run(kind, *task)
        except BusyError:
            # The system may have killed the process before the task began.
            return await self._run(kind, *task)
        finally:
            turn.release()

    async def _run(self, kind: Kind, *task: Any) -> Outcome:
        idle = self._idle[kind]
        idle[:] = filter(Worker.is_alive, idle)
        worker = idle.pop() if idle else await Worker.started(self._settings, kind.niceness)
        try:
            return await worker.run(*task)
        finally:
            if worker.tasks_left > 0:
                idle.append(worker)
            else:
                worker.end()
