"""The processes that answer visitors' statements: a few, with a queue that has an end.

Each has a thread here that waits for it. A process that ended, by its alarm or by a fault of
SQLite's, is replaced when it is next needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, cast

import msgspec

from spack_cache_db.site.queues import FULL
from spack_cache_db.site.sql.statement import (
    BROKEN,
    INTERRUPTED,
    OUT_OF_MEMORY,
    Answer,
    Statement,
    receive,
    send,
)

COUNT = 2
MOST_WAITING = 12
_DECODER = msgspec.msgpack.Decoder(Answer)


class BusyError(Exception):
    """Too many statements wait already."""

    status = 503
    title = "Busy"

    def __init__(self) -> None:
        super().__init__(FULL)


class NoRunnerError(Exception):
    """A process for statements did not start; what it wrote stands in the log."""


class Runner:
    """One process, and the pipes to it.

    Raises:
        NoRunnerError: it did not start.
    """

    def __init__(self, uri: str) -> None:
        command = [sys.executable, "-m", "spack_cache_db.site.sql.runner", uri]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._end = weakref.finalize(self, _end, self._process)
        if receive(cast("BinaryIO", self._process.stdout)) is None:
            raise NoRunnerError

    @property
    def is_alive(self) -> bool:
        """Whether the process still answers."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self._process.kill()

    def answer(self, statement: Statement) -> Answer:
        """Run a statement; what ends the process is a refusal too."""
        try:
            send(cast("BinaryIO", self._process.stdin), statement)
            encoded = receive(cast("BinaryIO", self._process.stdout))
        except BrokenPipeError:
            encoded = None
        if encoded is not None:
            answer: Answer = _DECODER.decode(encoded)
            return answer
        self._end()
        if self._process.returncode == -signal.SIGALRM:
            return INTERRUPTED
        # An exception that Python could not even tell of, or the kernel.
        return OUT_OF_MEMORY if self._process.returncode in (1, -signal.SIGKILL) else BROKEN


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            # What was not written any more has nobody to read it.
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Work:
    """A statement that somebody waits for; when nobody does any more, its process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        self._is_cancelled = False

    def begin(self, runner: Runner) -> bool:
        """Say who runs the statement; False if nobody waits for it."""
        with self._lock:
            self._runner = None if self._is_cancelled else runner
            return not self._is_cancelled

    def end(self) -> None:
        """Say that it has been answered: from here on the process works for others."""
        with self._lock:
            self._runner = None

    def cancel(self) -> None:
        """End the process, if it has begun."""
        with self._lock:
            self._is_cancelled = True
            if self._runner is not None:
                self._runner.kill()


class Runners:
    """The processes for one file, started when they are first needed."""

    def __init__(self, uri: str, count: int = COUNT, most_waiting: int = MOST_WAITING) -> None:
        self._uri = uri
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="visitors-sql")
        self._own = threading.local()
        self._most = count + most_waiting
        self._taken = 0

    async def answer(self, statement: Statement) -> tuple[Answer, float]:
        """Run a statement in the process that is free next, and say how many seconds it took.

        Raises:
            BusyError: so many wait that this one would wait too long.
        """
        if self._taken >= self._most:
            raise BusyError
        self._taken += 1
        work = _Work()
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, statement, work)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            self._taken -= 1

    def _answer(self, statement: Statement, work: _Work) -> tuple[Answer, float]:
        runner: Runner | None = getattr(self._own, "runner", None)
        if runner is None or not runner.is_alive:
            runner = self._own.runner = Runner(self._uri)
        start = time.monotonic()
        if not work.begin(runner):
            return INTERRUPTED, 0.0
        try:
            return runner.answer(statement), time.monotonic() - start
        finally:
            work.end()
