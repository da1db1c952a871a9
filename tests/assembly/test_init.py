"""`import spack_cache_db` is quick, and a script needs no guard for processes."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import spack_cache_db
from tests.builds import built
from tests.pagetexts import SAMPLES
from tests.processes import completed

IMPORT = """
import sys
import spack_cache_db
heavy = {"numpy", "msgspec", "sqlite_utils", "zstandard", "yaml", "multiprocessing", "tarfile"}
assert not heavy & {*sys.modules}, heavy & {*sys.modules}
assert {*spack_cache_db.__all__} <= {*dir(spack_cache_db)}
from spack_cache_db import *
from spack_cache_db.query.answers.cover import cover as inner
assert spack_cache_db.cover is cover is inner
assert {*spack_cache_db.__all__} <= {*globals()}
"""
SCRIPT = """
import multiprocessing, sys
multiprocessing.set_start_method("{method}", force=True)
import spack_cache_db
from spack_cache_db.sources import units
units.ENTRIES_PER_UNIT = 1
print("the script runs")
report = spack_cache_db.build(sys.argv[1], sys.argv[2], jobs=2)
print(report.pages)
"""


@pytest.mark.slow
def test_the_package_loads_nothing_heavy() -> None:
    """Public names that need more are listed, and loaded when they are used."""
    completed([sys.executable, "-c", IMPORT], check=True)


def test_the_package_knows_its_version() -> None:
    """Another attribute is missing, as in any module."""
    assert spack_cache_db.__version__ == version("spack-cache-db")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spack_cache_db.nothing  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_script_needs_no_guard(method: str, tmp_path: Path) -> None:
    """A script that builds at once runs once, however Python starts processes."""
    script = tmp_path / "script.py"
    output = tmp_path / "x.db"
    script.write_text(SCRIPT.format(method=method))
    done = completed([sys.executable, script, SAMPLES, output])

    assert done.stdout == "the script runs\n5\n"
    assert done.stderr == ""
    assert done.returncode == 0
    assert output.read_bytes() == built(tmp_path / "y.db", SAMPLES)
