"""build: the function that people call is there at once, and what it needs only when it runs."""

from __future__ import annotations

import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

import spack_cache_db
from tests.builds import built, digest
from tests.pagetexts import SAMPLE_PAGES, SAMPLES
from tests.processes import completed

HEAVY = ("numpy", "msgspec", "sqlite_utils", "zstandard", "yaml", "multiprocessing", "tarfile")


def python(program: str, *arguments: object) -> str:
    """Run a program in a fresh interpreter and return what it prints."""
    done = completed([sys.executable, "-c", program, *map(str, arguments)])
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(program: str, *arguments: object) -> set[str]:
    """Return which of the heavy modules a program has loaded."""
    names = f"import sys; print(*({{*{HEAVY!r}}} & {{*sys.modules}}))"
    return {*python(f"{program}\n{names}", *arguments).splitlines()[-1].split()}


@pytest.mark.slow
def test_the_package_loads_nothing_heavy() -> None:
    """Whoever only reads a file waits for nothing that builds one."""
    assert loaded("import spack_cache_db") == set()


def test_the_package_knows_its_version() -> None:
    """And says as ever what it does not know."""
    assert spack_cache_db.__version__ == version("spack-cache-db")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spack_cache_db.nothing  # type: ignore[attr-defined]


@pytest.mark.slow
def test_every_public_name_is_there() -> None:
    """Also those that are loaded when they are used: listed before, and the same afterwards."""
    program = (
        "import spack_cache_db\n"
        "assert {*spack_cache_db.__all__} <= {*dir(spack_cache_db)}\n"
        "from spack_cache_db import *\n"
        "from spack_cache_db.query.coverage import cover as inner\n"
        "assert spack_cache_db.cover is cover is inner\n"
        "print(*(each for each in spack_cache_db.__all__ if each not in globals()))\n"
    )
    assert python(program) == "\n"


SCRIPT = """\
import multiprocessing, sys
multiprocessing.set_start_method("{method}", force=True)
import spack_cache_db
print("the script runs")
report = spack_cache_db.build(sys.argv[1:-1], sys.argv[-1], jobs=2)
print(report.pages)
"""


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    """Two archives: each is read in one go, so that two processes have work."""
    paths = [tmp_path / "one.tar", tmp_path / "two.tar"]
    samples = SAMPLE_PAGES
    for path, some in zip(paths, (samples[:2], samples[2:]), strict=True):
        with tarfile.open(path, "w") as tar:
            for each in some:
                tar.add(each, each.relative_to(SAMPLES))
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_script_needs_no_guard(method: str, archives: list[Path], tmp_path: Path) -> None:
    """A script that builds at once runs once, however Python starts processes."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(method=method))
    output = tmp_path / "x.db"
    done = completed([sys.executable, script, *archives, output])
    assert (done.stdout, done.stderr, done.returncode) == ("the script runs\n5\n", "", 0)
    built(tmp_path / "y.db", *archives)
    assert digest(output) == digest(tmp_path / "y.db")
