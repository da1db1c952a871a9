"""build.workers: the same columns in the same order, however many processes there are."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from spack_cache_db.build import Input, workers
from spack_cache_db.build.workers import read_unit, read_units, uncollected
from spack_cache_db.errors import BuilderError
from spack_cache_db.sources import File
from spack_cache_db.sources.readers import plan
from tests.indexes import MIRRORS, REAL_FILE
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import MORE_SAMPLES, SAMPLES, page, write


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


def die(unit: object, max_page_size: int, place: object) -> None:
    """End this process as the kernel does when memory is short."""
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, no hanging, and what to do."""
    monkeypatch.setattr(workers, "read_unit", die)
    with pytest.raises(BuilderError, match=r"a worker process died .* fewer --jobs"):
        list(read_units([(File("a", "a"),), (File("b", "b"),)], Input([], 2)))
