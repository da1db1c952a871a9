"""`build --dask`: a real scheduler and real workers, which may die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.server import free_port
from spack_cache_db import BuilderError, build
from spack_cache_db.cli.build import dask_workers
from spack_cache_db.sources import readers
from tests.builds import built
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.paths import ROOT
from tests.processes import completed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with Dask, which Datasette would load in every process if it were beside it."""
    folder = tmp_path_factory.mktemp("dask")
    lock = ROOT / "requirements" / "dask.lock"
    options = ["--require-hashes", "--target", folder, "-r", lock]
    completed(
        [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", sys.executable, *options],
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        sys.path.append(str(folder))
        yield folder
        sys.path.remove(str(folder))


class Cluster:
    """A Dask scheduler and two workers: processes that are not started again."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.scheduler = self._started("scheduler", "--host", self.address)
        worker = ("worker", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", self.address)
        self.workers = [self._started(*worker) for _ in range(2)]

    def end(self) -> None:
        """End all processes."""
        for each in (self.scheduler, *self.workers):
            each.kill()
            each.wait()

    def _started(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{kind}"
        with (self._logs / f"{kind}.log").open("ab") as log:
            command = [sys.executable, "-m", module, "--no-dashboard", *options]
            return subprocess.Popen(command, stdout=log, stderr=log)


@pytest.fixture
def cluster(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster on this machine, for which each sample page is a unit."""
    monkeypatch.setattr(readers, "ENTRIES_PER_UNIT", 1)
    started = Cluster(tmp_path)
    try:
        from distributed import Client

        with Client(started.address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        yield started
    finally:
        started.end()


def test_a_death_costs_time_or_is_told(cluster: Cluster, tmp_path: Path) -> None:
    """A worker that is killed costs only time; a scheduler that is killed, one clear line."""
    with dask_workers(cluster.address, 1) as reading:

        def kill_worker(done: float, total: int) -> None:
            if done == 1:
                cluster.workers[0].kill()

        build(SAMPLES, tmp_path / "x.db", progress=kill_worker, **reading)
        assert (tmp_path / "x.db").read_bytes() == built(tmp_path / "y.db", SAMPLES)

        def kill_scheduler(done: float, total: int) -> None:
            if done == 1:
                cluster.scheduler.kill()

        with pytest.raises(BuilderError, match=r"^Client could not read the input: .+$"):
            build(SAMPLES, tmp_path / "x.db", progress=kill_scheduler, **reading)


def test_a_cluster_of_this_machine_gives_the_same_bytes(installed: Path, tmp_path: Path) -> None:
    """`--dask local` starts one and ends it."""
    command = [sys.executable, "-m", "spack_cache_db", "build", SAMPLES, "-o", tmp_path / "x.db"]
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
