"""Threads for SQL: one pool for each queue, and SQL that ends when nobody waits for it.

Datasette runs all SQL in one `concurrent.futures` executor, so one visitor's slow statements keep
the catalogue's pages waiting, and a statement runs to its end after its visitor has gone. This
executor takes its place: the queue that a request stands in chooses the pool, and cancelling what
was submitted interrupts the statement (`sqlite3_interrupt`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

T = TypeVar("T")

pool_name: ContextVar[str | None] = ContextVar("pool_name", default=None)
"""Which pool runs the SQL of the current request; None stands for the first one."""

INTERRUPT_AGAIN_SECONDS = 0.1

_thread = threading.local()


class Connection(Protocol):
    """What is asked of a connection here; Datasette may bring a `sqlite3` module of its own."""

    def interrupt(self) -> None:
        """End the statement that runs on this connection, if one does."""


def note_connection(conn: Connection) -> None:
    """Remember that the current thread has opened `conn`; other threads than ours do not matter."""
    opened: list[Connection] | None = getattr(_thread, "connections", None)
    if opened is not None:
        opened.append(conn)


class SqlThreads(Executor):
    """An executor with a named pool of threads for each queue.

    Args:
        sizes: the number of threads of each pool.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._first = next(iter(sizes))
        self._pools = {
            name: ThreadPoolExecutor(size, f"sql-{name}", _begin_thread)
            for name, size in sizes.items()
        }
        self._submitted: WeakSet[_Work[Any]] = WeakSet()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `fn` in a thread of the current request's pool; cancelling interrupts its SQL."""
        work: _Work[T] = _Work()
        self._submitted.add(work)
        pool = self._pools[pool_name.get() or self._first]
        pool.submit(work.run, partial(fn, *args, **kwargs))
        return work

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads; with `cancel_futures`, cancel and interrupt what was submitted."""
        if cancel_futures:
            # What waits goes first, or it would take the place of what is interrupted.
            for work in sorted(self._submitted, key=Future.running):
                work.cancel()
        for pool in self._pools.values():
            pool.shutdown(wait)


class _Work(Future[T]):
    """What a thread is to do. Cancelling it while it runs interrupts the thread's connections."""

    def __init__(self) -> None:
        super().__init__()
        self._leaving = threading.Lock()
        self._connections: Iterable[Connection] = ()

    def run(self, call: Callable[[], T]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        self._connections = _thread.connections
        try:
            result = call()
        except BaseException as error:
            self._leave_thread()
            self.set_exception(error)
        else:
            self._leave_thread()
            self.set_result(result)

    def _leave_thread(self) -> None:
        # From here on an interruption would hit the next one's statement.
        with self._leaving:
            self._connections = ()

    def cancel(self) -> bool:
        if super().cancel():
            return True
        self._interrupt()
        return False

    def _interrupt(self) -> None:
        with self._leaving:
            for conn in self._connections:
                # A connection that was closed meanwhile has nothing left to end.
                with suppress(Exception):
                    conn.interrupt()
        if self.running():
            # Between two statements there is nothing to interrupt: the next one has to be.
            again = threading.Timer(INTERRUPT_AGAIN_SECONDS, self._interrupt)
            again.daemon = True
            again.start()


def _begin_thread() -> None:
    _thread.connections = []
