"""build.workers: any number of workers of any kind give the same file, or one line of
error.
"""

import gc
import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db import BuilderError, build
from spack_cache_db.assembly import reading, workers
from spack_cache_db.assembly.options import BuildOptions
from spack_cache_db.assembly.reading import read_unit, read_units
from spack_cache_db.assembly.workers import uncollected
from spack_cache_db.sources import units
from spack_cache_db.sources.files import File
from spack_cache_db.sources.units import plan
from tests.builds import built
from tests.indexes import MIRRORS, REAL_FILE
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import MORE_SAMPLES, SAMPLES, page, write


@pytest.fixture(autouse=True)
def one_page_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each sample page be a unit."""
    monkeypatch.setattr(units, "ENTRIES_PER_UNIT", 1)


def forget() -> None:
    """Let this process be one in which the package is not installed."""
    for name in list(sys.modules):
        if name.startswith("spack_cache_db"):
            sys.modules[name] = None  # type: ignore[assignment]


def die(*_: object, **__: object) -> None:
    """End this process as the kernel does when memory is short."""
    os._exit(9)


class Changed(Executor):
    """An executor that changes something before each unit."""

    def __init__(self, *change: Any) -> None:
        self._change = change

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Change it, and let a thread do the work."""
        function, *arguments = self._change
        function(*arguments)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(fn, *args, **kwargs)


def test_threads_give_the_same_bytes(tmp_path: Path) -> None:
    """Any executor will do: the file is that of a build without one."""
    with ThreadPoolExecutor(3) as threads:
        build(SAMPLES, tmp_path / "x.db", executor=threads)
    assert (tmp_path / "x.db").read_bytes() == built(tmp_path / "y.db", SAMPLES)


@pytest.mark.slow
def test_processes_of_the_caller_give_the_same_bytes(tmp_path: Path) -> None:
    """Also if they are not forked; the caller can use them afterwards."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        build(SAMPLES, tmp_path / "x.db", executor=processes)
        assert processes.submit(abs, -1).result() == 1
    assert (tmp_path / "x.db").read_bytes() == built(tmp_path / "y.db", SAMPLES)


def test_an_executor_that_ended_is_an_error(tmp_path: Path) -> None:
    """One line names the executor, and the old file stays."""
    before = built(tmp_path / "x.db", SAMPLES)
    ended = ThreadPoolExecutor(1)
    ended.shutdown()

    with pytest.raises(
        BuilderError, match=r"^ThreadPoolExecutor could not read .* shutdown"
    ):
        build(SAMPLES, tmp_path / "x.db", executor=ended)
    assert (tmp_path / "x.db").read_bytes() == before


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of our own processes says what to do; others are replaced by their
    executor.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        processes.submit(die)
        with pytest.raises(
            BuilderError, match=r"^ProcessPoolExecutor .* BrokenProcessPool: .*"
        ):
            build(SAMPLES, tmp_path / "x.db", executor=processes)

    monkeypatch.setattr(reading, "read_unit", die)
    with pytest.raises(BuilderError, match=r"a worker process died .* fewer --jobs"):
        list(read_units([(File("a", "a"),), (File("b", "b"),)], BuildOptions(jobs=2)))


@pytest.mark.slow
def test_a_worker_without_the_package_is_an_error(tmp_path: Path) -> None:
    """The message names the version that it needs."""
    with (
        ProcessPoolExecutor(1, get_context("spawn"), forget) as processes,
        pytest.raises(
            BuilderError, match=r"; its workers need spack-cache-db \d[\d.]+$"
        ),
    ):
        build(SAMPLES, tmp_path / "x.db", executor=processes)


@pytest.mark.parametrize("program", ["archspec", "spack-cache-db"])
def test_a_worker_of_another_version_is_an_error(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the worker, what it has, and what it should have."""
    versions = workers.program_versions()
    other = lambda: versions | {program: "0.0.1"}  # noqa: E731
    changed = Changed(monkeypatch.setattr, workers, "program_versions", other)
    expected = (
        rf"^the worker on \S+ \(process \d+\) has {program} 0\.0\.1, expected \d[\d.]+$"
    )

    with pytest.raises(BuilderError, match=expected):
        build(SAMPLES, tmp_path / "x.db", executor=changed)


@pytest.mark.slow
def test_workers_leave_no_cycles_in_memory(tmp_path: Path) -> None:
    """No source leaves objects that refer to each other: workers do not look for
    such.
    """
    bad = write(tmp_path / "bad", good=page(), bad=b"bad")

    for unit in plan(
        map(str, [SAMPLES, MORE_SAMPLES, REAL_FILE, MIRRORS, PACKAGE_DATA, bad])
    ):
        # What is loaded or kept once for all units is not looked at.
        read_unit(unit, 2**20)
        # What other tests left may have finalizers, which leave garbage again.
        while gc.collect():
            pass
        with uncollected():
            read_unit(unit, 2**20)
            assert gc.collect() == 0
