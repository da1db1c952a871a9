"""Work on any `concurrent.futures.Executor`, whose workers may be other machines."""

from __future__ import annotations

import os
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from importlib import metadata
from typing import NamedTuple, TypeVar
from uuid import uuid4

from spack_cache_db.errors import BuilderError, reason
from spack_cache_db.sources.units import Unit

Given = TypeVar("Given")
T = TypeVar("T")


def program_versions() -> dict[str, str]:
    """Return the versions of the programs that decide what a file holds."""
    return {program: metadata.version(program) for program in ("archspec", "spack-cache-db")}


def in_order(
    executor: Executor, units: Iterable[Given], work: Callable[[Given], T], jobs: int
) -> Iterator[T]:
    """Yield what `work` makes of each unit, in the order of the units.

    Only a few are under way at once, so that finished ones cannot pile up.
    """
    waiting: deque[Future[T]] = deque()
    try:
        for unit in units:
            waiting.append(executor.submit(work, unit))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def on_executor(
    executor: Executor,
    units: Sequence[Unit],
    work: Callable[[Unit], T],
    jobs: int,
    paths: Sequence[str],
) -> Iterator[T]:
    """Yield what the workers of a caller's executor make of each unit of the input at `paths`.

    Raises:
        BuilderError: a worker died, or differs in what it has to have in common with this process.
    """
    here, build = _Surroundings.seen(paths), uuid4().hex
    tasks = (pickle.dumps(_Task(unit, work, here, build)) for unit in units)
    try:
        yield from in_order(executor, tasks, pickle.loads, jobs)
    except BuilderError:
        raise
    except Exception as error:
        # Each executor has errors of its own for workers that died.
        said = f"{type(executor).__name__} could not read the input"
        said += f": {type(error).__name__}: {reason(error)}"
        if isinstance(error, ImportError | AttributeError):
            said += f"; each worker needs spack-cache-db {here.versions['spack-cache-db']}"
        raise BuilderError(said) from error


class _Surroundings(NamedTuple):
    """What a worker has to have in common with the process that builds."""

    versions: dict[str, str]
    changed: dict[str, int | None]
    """When each path of the input was changed, in seconds; None for one that is not there."""

    @classmethod
    def seen(cls, paths: Sequence[str]) -> _Surroundings:
        """Return what this process has."""
        return cls(program_versions(), {path: _changed(path) for path in paths})


def _changed(path: str) -> int | None:
    try:
        return int(os.stat(path).st_mtime)  # noqa: PTH116 - Path.stat raises for a long name
    except OSError:
        return None


class _Task(NamedTuple):
    """A unit and what is done with it, which is done where this is unpickled.

    So a worker that lacks this package fails in its task. One of Dask ends where a function that
    it is sent cannot be loaded, and the build would wait for the next one.
    """

    unit: Unit
    work: Callable[[Unit], object]
    here: _Surroundings
    build: str
    """Tells the task from one of another build: Dask takes equal tasks for one."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _worked, tuple(self)


def _worked(unit: Unit, work: Callable[[Unit], T], here: _Surroundings, build: str) -> T:
    """Return what `work` makes of a unit, in a worker; `BuilderError` if the worker differs."""
    there = _Surroundings.seen([*here.changed])
    worker = f"the worker on {socket.gethostname()} (process {os.getpid()})"
    for program, version in here.versions.items():
        if there.versions[program] != version:
            message = f"{worker} has {program} {there.versions[program]}, expected {version}"
            raise BuilderError(message)
    for path, changed in here.changed.items():
        if there.changed[path] != changed:
            sees = "does not see" if there.changed[path] is None else "sees another file or folder"
            message = f"{worker} {sees} {path}; the input has to be where all workers see it"
            raise BuilderError(f"{message}, named by its whole path")
    return work(unit)
