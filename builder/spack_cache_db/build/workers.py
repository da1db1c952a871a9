"""Units → columns, in as many processes as there are cores to use."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection, parent_process

from spack_cache_db.errors import BuilderError
from spack_cache_db.sources.columns import Columns
from spack_cache_db.sources.files import read
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.readers import read_files
from spack_cache_db.sources.units import Unit


def read_units(
    units: Sequence[Unit], jobs: int, max_page_size: int, place: Place
) -> Iterator[Columns]:
    """Yield the columns of each unit, in the order of the units, whatever the number of jobs.

    Raises:
        BuilderError: a worker process died.
    """
    jobs = min(jobs, len(units))
    work = partial(read_unit, max_page_size=max_page_size, place=place)
    if jobs < 2:
        yield from map(work, units)
        return
    with ProcessPoolExecutor(jobs, initializer=_prepare_worker) as pool:
        # Only a few units are under way at once, so that finished ones cannot pile up.
        waiting: list[Future[Columns]] = []
        ahead = iter(units)
        try:
            for unit in ahead:
                waiting.append(pool.submit(work, unit))
                if len(waiting) > 2 * jobs:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()
        except BrokenProcessPool:
            message = "a worker process died (out of memory?); try again with fewer --jobs"
            raise BuilderError(message) from None


def read_unit(unit: Unit, max_page_size: int, place: Place) -> Columns:
    """Read one unit in this process."""
    return read_files(read(unit, max_page_size), place)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for reference cycles: pages make none, and it takes its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _prepare_worker() -> None:
    """End this worker when the build is killed: it would wait for work for ever."""
    gc.disable()
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            connection.wait([sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
