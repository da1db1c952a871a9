"""build.workers: the same columns in the same order, however many processes there are."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from spack_cache_db import sources
from spack_cache_db.build import Input, workers
from spack_cache_db.build.workers import read_unit, read_units, uncollected
from spack_cache_db.errors import BuilderError
from spack_cache_db.sources import File, plan
from tests.indexes import MIRRORS, REAL_FILE
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import MORE_SAMPLES, SAMPLE_PAGES, SAMPLES, page, write


def test_a_unit_knows_how_much_was_read(tmp_path: Path) -> None:
    """Bytes of pages, good or bad; what was refused unread does not count."""
    write(tmp_path, a=page(), b=b"bad", c=b"x" * 5000)
    (unit,) = plan([str(tmp_path)])
    columns = read_unit(unit, 2000)
    assert columns.bytes_read == len(page()) + 3
    assert [entry.path for entry in columns.documents] == ["a.md"]
    assert len(columns.faults) == 2


@pytest.mark.slow
def test_what_was_read_is_freed(tmp_path: Path) -> None:
    """No source leaves objects that refer to each other: workers do not look for such."""
    bad = write(tmp_path / "bad", good=page(), bad=b"bad")
    paths = [SAMPLES, MORE_SAMPLES, REAL_FILE, MIRRORS, PACKAGE_DATA, bad]
    for unit in plan(map(str, paths)):
        read_unit(unit, 2**20)  # What is loaded or kept once for all units is not looked at.
        gc.collect()
        with uncollected():
            read_unit(unit, 2**20)
            assert gc.collect() == 0


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 4])
def test_processes_give_what_one_gives(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the units."""
    monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", 1)
    planned = plan([str(SAMPLES)])
    assert len(planned) == 5
    alone = list(read_units(planned, Input([])))
    together = list(read_units(planned, Input([], jobs)))
    assert together == alone
    assert sum(columns.bytes_read for columns in alone) == sum(
        path.stat().st_size for path in SAMPLE_PAGES
    )


def die(unit: object, max_page_size: int, place: object) -> None:
    """End this process as the kernel does when memory is short."""
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, no hanging, and what to do."""
    monkeypatch.setattr(workers, "read_unit", die)
    with pytest.raises(BuilderError, match=r"a worker process died .* fewer --jobs"):
        list(read_units([(File("a", "a"),), (File("b", "b"),)], Input([], 2)))


def test_no_units_are_no_work() -> None:
    """Nothing is started for nothing."""
    assert list(read_units([], Input([], 4))) == []
