"""`build --dask`, with a real scheduler and real workers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builds import built
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.paths import ROOT
from tests.processes import completed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with Dask, which Datasette would load in every process if it were beside
    it.
    """
    folder = tmp_path_factory.mktemp("dask")
    lock = ROOT / "requirements" / "dask.lock"
    options = ["--require-hashes", "--target", folder, "-r", lock]
    completed(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "-q",
            "--python",
            sys.executable,
            *options,
        ],
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        sys.path.append(str(folder))
        yield folder
        sys.path.remove(str(folder))


def test_a_cluster_of_this_machine_gives_the_same_bytes(
    installed: Path, tmp_path: Path
) -> None:
    """`--dask local` starts one and ends it."""
    command = [
        sys.executable,
        "-m",
        "spack_cache_db",
        "build",
        SAMPLES,
        "-o",
        tmp_path / "x.db",
    ]
    completed([*command, "--dask", "local", "--jobs", "2"], check=True)

    assert (tmp_path / "x.db").read_bytes() == built(tmp_path / "y.db", SAMPLES)


@pytest.mark.parametrize("address", ["nonsense", "what://x"])
def test_a_scheduler_that_is_not_there_is_told(
    address: str, installed: Path, tmp_path: Path
) -> None:
    """One line says what an address looks like."""
    told = run("build", SAMPLES, "-o", tmp_path / "x.db", "--dask", address)
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert told.stderr.startswith(f"Error: no Dask scheduler responds at {address}: ")
    assert told.stderr.endswith("; --dask takes an address such as tcp://host:8786\n")
