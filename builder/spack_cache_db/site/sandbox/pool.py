"""The server's side of the sandbox: a few processes, and a queue of tasks for them.

A process runs one task at a time. It is killed when the task's time is over or nobody waits for its
answer any more, and never used again; another is started when it is needed.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import pickle
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import weakref
from collections import Counter, deque
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass
from operator import attrgetter
from typing import Any

from spack_cache_db.site.sandbox.process import (
    ALARMS,
    CLOCK_TIMES,
    GRACE_SECONDS,
    INTERRUPTED,
    LENGTH,
    NO_MEMORY,
    Call,
    TaskFailure,
    connect,
    framed,
    run_task,
)

COUNT = 8
"""Processes for one file; each has some 15 MB of its own until it has much to do.

More than processors: a small task need not wait for large ones, the kernel shares the time.
"""
START_SECONDS = 20.0
"""So long a process may take until it is ready."""
LATE_SECONDS = 2.0
"""So long after a task should have ended its process is killed; its own alarm rings before that."""
MOST_TASKS = 1_000
"""After so many a process makes room for another: what it has kept in memory goes with it."""
MOST_BYTES = 64_000_000
"""Of one answer; none of what is asked for is half as long."""
LARGE = 64 * 1024
"""Bytes of an answer that is read in a thread: the event loop would wait for it."""
TRIES = 3
"""So often a task is begun if the system kills its process, as it may for another one's memory."""
SHORTEST = 0.001
"""Seconds; a task that has less is not begun."""

CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals by which a process ends itself; others come from the system, or from who runs it."""

NOT_STARTED = "The server could not start a process for this. Please try again soon."
KILLED = (
    "The system ended the process that worked on this, most often because the machine ran out of"
    " memory: ask for less, or try again."
)
BROKEN = TaskFailure("OperationalError", "the query made SQLite fail")

_PROGRAM = f"import sys; from {framed.__module__} import main; main(sys.argv[1])"


@dataclass(frozen=True, slots=True)
class Quota:
    """What one kind of request may have of the processes.

    Attributes:
        name: the kind of request.
        most: how many processes may work for it at once.
        rank: its place in the line: tasks of a lower rank come first.
    """

    name: str
    most: int
    rank: int


EVERYTHING = Quota("", COUNT, 0)
quota: ContextVar[Quota] = ContextVar("quota", default=EVERYTHING)
"""What the current request may have."""


class SandboxError(Exception):
    """The machine, not the task, is why there is no answer."""

    status = 503
    title = "Busy"


class TaskError(Exception):
    """A task ended in an exception that is a bug; the message is its traceback."""


@dataclass
class Budget:
    """The seconds of processor time that a request may still take of the sandbox.

    Attributes:
        is_page: whether what is found is shown as HTML.
        takes_all: whether what is found is given in a form that cannot say that rows are missing.
        is_stream: whether all rows are asked for, one part after the other.
        refusal: why a statement of the request was refused, in SQLite's words.
        is_cut: whether one of its results has more rows than it was given.
    """

    seconds: float
    is_page: bool = False
    takes_all: bool = False
    is_stream: bool = False
    refusal: str = ""
    is_cut: bool = False


class Answers(pickle.Unpickler):
    """Reads what a process answered: plain values and this package's records, nothing that acts.

    A statement may have got the better of SQLite, and of the process with it
    (docs.python.org/3/library/pickle.html, "Restricting Globals").
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return a record's class.

        Raises:
            pickle.UnpicklingError: it is anything else.
        """
        if module.partition(".")[0] == __name__.partition(".")[0]:
            found = super().find_class(module, name)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, tuple)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no record")


class Process:
    """One process, and the socket to it; see `started`.

    Attributes:
        tasks_left: so many more tasks it may take.
    """

    def __init__(self, uri: str) -> None:
        try:
            self._socket, theirs = socket.socketpair()
            with theirs:
                command, end = [sys.executable, "-c", _PROGRAM, uri], theirs.fileno()
                self._process = subprocess.Popen(command, stdin=end, stdout=end)
        except OSError as error:
            raise SandboxError(NOT_STARTED) from error
        self._socket.setblocking(False)
        self._end = weakref.finalize(self, _end, self._process, self._socket)
        self.tasks_left = MOST_TASKS

    @classmethod
    async def started(cls, uri: str) -> Process:
        """Return a process that is ready.

        Raises:
            SandboxError: it did not start; what it wrote is in the log.
        """
        process = cls(uri)
        try:
            async with asyncio.timeout(START_SECONDS):
                is_ready = await process._received() is not None
        except TimeoutError:
            is_ready = False
        if not is_ready:
            process.kill()
            raise SandboxError(NOT_STARTED)
        return process

    @property
    def is_alive(self) -> bool:
        """Whether the process can take a task."""
        return self.tasks_left > 0 and self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self.tasks_left = 0
        self._process.kill()
        # Its memory may take the kernel a moment.
        asyncio.get_running_loop().run_in_executor(None, self._end)

    async def run(
        self, seconds: float, call: Call, arguments: tuple[Any, ...]
    ) -> tuple[Any, float]:
        """Return the answer to a task, or a `TaskFailure`, and the processor time that it took.

        The death of the process is a failure too.

        Raises:
            SandboxError: the system killed the process.
        """
        self.tasks_left -= 1
        is_well = False
        try:
            async with asyncio.timeout(CLOCK_TIMES * seconds + GRACE_SECONDS + LATE_SECONDS):
                await self._send(framed((call, arguments, seconds)))
                pickled = await self._received()
            if pickled is None:
                return await self._death(), seconds
            load = Answers(io.BytesIO(pickled)).load
            is_large = len(pickled) > LARGE
            answer, taken = await asyncio.to_thread(load) if is_large else load()
            # What it holds after an error of memory would be missing to the next visitor.
            is_well = answer != NO_MEMORY
            return answer, float(taken)
        except TimeoutError:
            return INTERRUPTED, seconds
        finally:
            if not is_well:
                self.kill()

    async def _send(self, message: bytes) -> None:
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(self._socket, message)

    async def _received(self) -> bytes | None:
        """Return a message's bytes; None where the process ends before they are whole."""
        head = await self._read(LENGTH)
        length = int.from_bytes(head or b"", "big")
        return await self._read(length) if 0 < length <= MOST_BYTES else None

    async def _read(self, length: int) -> bytes | None:
        loop, found = asyncio.get_running_loop(), bytearray()
        while len(found) < length:
            try:
                some = await loop.sock_recv(self._socket, min(length - len(found), 1 << 20))
            except ConnectionError:
                return None
            if not some:
                return None
            found += some
        return bytes(found)

    async def _death(self) -> TaskFailure:
        """Return why the process ended in the middle of a task."""
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, LATE_SECONDS)
        code = self._process.returncode or 0
        if -code in ALARMS:
            return INTERRUPTED
        if code < 0 and -code not in CRASHES:
            raise SandboxError(KILLED)
        # Python ends with 1 where it has no memory left for the exception that says so.
        return NO_MEMORY if code == 1 else BROKEN


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.kill()
    process.wait()


class Pool:
    """The processes for one file.

    A task takes the process that is free first: one that has done others, or a new one. Processes
    are started one after the other, as long as tasks wait for one.

    Args:
        uri: the file, as SQLite takes it.
        count: how many there are at most; each is started when it is first needed.
    """

    def __init__(self, uri: str, count: int = COUNT) -> None:
        self._uri, self._count = uri, count
        self._idle: list[Process] = []
        self._wanted: deque[asyncio.Future[Process]] = deque()
        self._starting: asyncio.Task[None] | None = None
        self._running: Counter[Quota] = Counter()
        self._waiting: list[tuple[int, int, Quota, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def run(self, budget: Budget, most_seconds: float, call: Call, *arguments: Any) -> Any:
        """Return what `call(connection, *arguments)` returns in the process that is free next.

        Args:
            budget: what is left to the request; what the task takes is taken from it.
            most_seconds: what this task may take of it.
            call: a function that a process can import.
            arguments: its arguments after the connection.

        Raises:
            sqlite3.Error: SQLite refused a statement; "interrupted" where the time was over.
            MemoryError: the task needed more memory than a process has.
            SandboxError: the machine could not run the task.
            TaskError: the function ended in any other exception.
        """
        seconds = min(most_seconds, budget.seconds)
        if seconds < SHORTEST:
            raise _exception(INTERRUPTED)
        own = quota.get()
        await self._turn(own)
        try:
            answer = await self._answer(budget, (seconds, call, arguments))
        finally:
            self._running[own] -= 1
            self._give_turns()
        if isinstance(answer, TaskFailure):
            raise _exception(answer)
        return answer

    async def _answer(self, budget: Budget, task: tuple[float, Call, tuple[Any, ...]]) -> Any:
        for left in reversed(range(TRIES)):
            try:
                answer, taken = await self._tried(task)
                break
            except SandboxError:
                if not left:
                    raise
        budget.seconds -= taken
        return answer

    async def _tried(self, task: tuple[float, Call, tuple[Any, ...]]) -> tuple[Any, float]:
        process = await self._free()
        try:
            return await process.run(*task)
        finally:
            self._give(process)

    async def _free(self) -> Process:
        while self._idle:
            # The one that has done most has kept most of what the next task needs.
            process = min(self._idle, key=attrgetter("tasks_left"))
            self._idle.remove(process)
            if process.is_alive:
                return process
        wanted: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._wanted.append(wanted)
        self._start()
        try:
            return await wanted
        except asyncio.CancelledError:
            if wanted.done() and not wanted.cancelled() and not wanted.exception():
                self._give(wanted.result())
            raise

    def _give(self, process: Process) -> None:
        """Give a process to the task that has waited for longest, or keep it for the next."""
        if process.is_alive:
            wanted = self._next_wanted()
            if wanted is None:
                self._idle.append(process)
            else:
                wanted.set_result(process)
        self._start()

    def _next_wanted(self) -> asyncio.Future[Process] | None:
        while self._wanted:
            wanted = self._wanted.popleft()
            if not wanted.done():
                return wanted
        return None

    def _start(self) -> None:
        """Begin to start a process if a task waits for one, unless one is being started."""
        if self._starting is None and any(not each.done() for each in self._wanted):
            self._starting = asyncio.create_task(self._started())

    async def _started(self) -> None:
        try:
            process = await Process.started(self._uri)
        except SandboxError as error:
            while (wanted := self._next_wanted()) is not None:
                wanted.set_exception(error)
            return
        finally:
            # Also if it is cancelled, as where a loop ends: else nobody would start one again.
            self._starting = None
        self._give(process)

    async def _turn(self, own: Quota) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((own.rank, next(self._numbers), own, turn))
        self._give_turns()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._running[own] -= 1
                self._give_turns()
            raise

    def _give_turns(self) -> None:
        """Give the processes that are free to those who wait, and forget those who have gone."""
        for entry in sorted(self._waiting):
            _, _, own, turn = entry
            is_free = self._running.total() < self._count and self._running[own] < own.most
            if is_free and not turn.done():
                self._running[own] += 1
                turn.set_result(None)
            if turn.done():
                self._waiting.remove(entry)


class SingleProcess(Pool):
    """What stands for the processes where there can be none: tasks run here, one by one.

    In a browser (Datasette Lite, Pyodide) the only visitor is the one whose machine it is.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(uri, 1)
        self._conn = connect(uri)

    async def _answer(self, budget: Budget, task: tuple[float, Call, tuple[Any, ...]]) -> Any:
        seconds, call, arguments = task
        began = time.process_time()
        answer = run_task(self._conn, call, arguments, began + seconds)
        budget.seconds -= time.process_time() - began
        return answer


def pool_for(uri: str) -> Pool:
    """Return the processes for a file, or what stands for them in a browser."""
    return SingleProcess(uri) if sys.platform == "emscripten" else Pool(uri)


def _exception(failure: TaskFailure) -> Exception:
    if failure.kind == "MemoryError":
        return MemoryError(failure.message)
    if failure.kind:
        found: Exception = getattr(sqlite3, failure.kind)(failure.message)
        return found
    return TaskError(failure.message)
