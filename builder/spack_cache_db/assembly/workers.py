"""Works through the parts of an input, in processes of this machine or on the caller's
executor.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from multiprocessing import connection, parent_process
from types import ModuleType
from typing import TypeVar

from spack_cache_db.assembly.options import BuildOptions
from spack_cache_db.errors import BuilderError, reason

Part = TypeVar("Part")
T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_STARTING = threading.Lock()
"""Held while processes are started, because `__main__` is replaced meanwhile."""


def work_through(
    parts: Sequence[Part], work: Callable[[Part], T], options: BuildOptions
) -> Iterator[T]:
    """Yield the result of `work` for each part of the input, in their order.

    Raises:
        BuilderError: a worker died, or has another version of this package or of
            archspec.
    """
    jobs = min(options.jobs, len(parts))
    if options.executor is not None:
        yield from _on_executor(options.executor, parts, work, options.jobs)
    elif jobs < 2:
        yield from map(work, parts)
    else:
        yield from _in_processes(parts, work, jobs)


def _in_order(
    submit: Callable[[Part], Future[T]], parts: Sequence[Part], jobs: int
) -> Iterator[T]:
    """Yield results in order; few parts are submitted at once, so that results cannot
    pile up.
    """
    waiting: deque[Future[T]] = deque()
    try:
        for part in parts:
            waiting.append(submit(part))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _on_executor(
    executor: Executor, parts: Sequence[Part], work: Callable[[Part], T], jobs: int
) -> Iterator[T]:
    versions = program_versions()

    def submit(part: Part) -> Future[T]:
        # As one argument: Dask would search a tuple for futures.
        return executor.submit(partial(_checked_work, versions, work, part))

    try:
        yield from _in_order(submit, parts, jobs)
    except BuilderError:
        raise
    except Exception as error:
        # Executors differ in the errors that they raise for dead workers.
        message = f"could not read the input: {type(error).__name__}: {reason(error)}"
        needed = f"its workers need spack-cache-db {versions['spack-cache-db']}"
        raise BuilderError(f"{type(executor).__name__} {message}; {needed}") from error


def _checked_work(versions: dict[str, str], work: Callable[[Part], T], part: Part) -> T:
    for program, version in program_versions().items():
        if version != versions[program]:
            worker = f"the worker on {socket.gethostname()} (process {os.getpid()})"
            raise BuilderError(
                f"{worker} has {program} {version}, expected {versions[program]}"
            )
    return work(part)


def program_versions() -> dict[str, str]:
    """Return the versions of the programs that determine a database's content."""
    return {
        program: metadata.version(program) for program in ("archspec", "spack-cache-db")
    }


def _in_processes(
    parts: Sequence[Part], work: Callable[[Part], T], jobs: int
) -> Iterator[T]:
    with ProcessPoolExecutor(jobs, initializer=_prepare_worker) as pool:

        def submit(part: Part) -> Future[T]:
            with _starting_processes():
                return pool.submit(work, part)

        try:
            yield from _in_order(submit, parts, jobs)
        except BrokenProcessPool:
            message = (
                "a worker process died (out of memory?); try again with fewer --jobs"
            )
            raise BuilderError(message) from None
        except BaseException:
            # Otherwise leaving `with` would wait for parts whose results are not
            # needed.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Hide the script and block signals while processes are started.

    A worker that is not forked runs its parent's `__main__` first, so a script that
    does not check `__name__` would build again in each worker. A worker also inherits
    the handling of signals.
    """
    with _STARTING:
        script = sys.modules["__main__"]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _prepare_worker() -> None:
    """Make this worker ignore Ctrl-C, which its parent reports, and end with its
    parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    gc.disable()
    if (parent := parent_process()) is not None:
        threading.Thread(target=_end_with, args=[parent.sentinel], daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector: reading creates no reference cycles, and it is
    slow.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
