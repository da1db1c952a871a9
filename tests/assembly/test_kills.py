"""A build, killed at any moment, it leaves a whole file and no process."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.processes import children, is_running
from tests.builds import built, is_whole, many_pages, signalled_after
from tests.pagetexts import write
from tests.processes import completed


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file that is built of the pages, whole."""
    folder = tmp_path_factory.mktemp("new")
    for name, data in many_pages().items():
        write(folder / "pages" / name, specs=data)
    return built(folder / "x.db", folder / "pages")


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment",
    [
        "spack_cache_db.assembly.file.create",
        "spack_cache_db.assembly.file.insert",
        "spack_cache_db.assembly.file.index_text",
        "spack_cache_db.assembly.file.finish",
        "spack_cache_db.assembly.replacement.inspect",
        "spack_cache_db.assembly.replacement.publish",
    ],
)
def test_a_kill_at_each_stage_leaves_a_whole_file(
    moment: str, old: Path, new: bytes, folder: Path, tmp_path: Path
) -> None:
    """SIGKILL just after each step of writing."""
    output = tmp_path / "out" / "x.db"
    shutil.copytree(old, output.parent)
    program = signalled_after(moment, "SIGKILL")
    command = [sys.executable, "-c", program, "build", str(folder), "-o", str(output)]

    assert completed(command).returncode == -signal.SIGKILL
    assert output.read_bytes() == (
        new if moment.endswith(".publish") else (old / "x.db").read_bytes()
    )
    assert is_whole(output)
    assert built(output, folder) == new
    assert {path.name for path in output.parent.iterdir()} == {"x.db", "x.inspect.json"}


@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """When the build is killed, no worker waits for ever."""
    program = (
        "import time\n"
        "from spack_cache_db.assembly import workers\n"
        "from spack_cache_db.assembly.options import BuildOptions\n"
        "print('ready', flush=True)\n"
        "options = BuildOptions(jobs=2)\n"
        "list(workers.work_through([600, 600], time.sleep, options))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        deadline = time.monotonic() + 30
        workers: list[int] = []
        while len(workers) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            workers = children(running.pid)
        running.send_signal(signal.SIGKILL)
    assert len(workers) >= 2

    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


@pytest.mark.slow
def test_ctrl_c_in_a_program_of_ones_own(folder: Path, tmp_path: Path) -> None:
    """The caller gets Python's exception, workers say nothing, and nothing half-written
    stays.
    """
    program = (
        "import sys\n"
        "from spack_cache_db import build\n"
        "from spack_cache_db.sources import units\n"
        "units.ENTRIES_PER_UNIT = 4\n"
        "try:\n"
        "    while True:\n"
        "        build(*sys.argv[1:], jobs=2, force=True, progress=lambda *_: print(flush=True))\n"
        "except KeyboardInterrupt:\n"
        "    print('heard')\n"
    )
    output = tmp_path / "out" / "x.db"
    chance = random.Random()

    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(folder), str(output)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as running:
            assert running.stdout is not None
            running.stdout.readline()
            time.sleep(chance.uniform(0, 1))
            os.killpg(running.pid, signal.SIGINT)
            said, errors = running.communicate(timeout=60)
        assert (running.returncode, errors) == (0, b"")
        assert said.endswith(b"heard\n")
        assert {path.name for path in output.parent.glob("*.tmp")} == set()
