"""Output that is full, closed or no longer read: one line, and no traceback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builds import whole
from tests.pagetexts import SAMPLES
from tests.processes import completed
from tests.serving import answers, eventually

pytestmark = pytest.mark.slow

MODULE = [sys.executable, "-m", "spack_cache_db"]


@pytest.fixture
def database(samples_file: Path, tmp_path: Path) -> Path:
    """A small database."""
    shutil.copy(samples_file, tmp_path / "x.db")
    return tmp_path / "x.db"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (["find", "py-mpi4py", "x.db"], ""),
        (["find", "py-mpi4py", "x.db"], "1"),
        (["find", "py-mpi4py", "x.db", "--json"], ""),
        (["find", "py-mpi4py", "x.db", "--csv", "--hashes"], ""),
        (["find", "py-mpi4py", "x.db", "--csv", "--hashes"], "1"),
        (["info", "x.db"], ""),
        (["check", str(SAMPLES)], ""),
        (["build", str(SAMPLES), "-o", "y.db"], ""),
        (["verify", "x.db", str(SAMPLES)], ""),
        (["serve", "x.db", "--port", "0"], ""),
        (["site"], ""),
        (["--help"], ""),
        (["--help"], "1"),
        (["--version"], ""),
    ],
)
def test_a_full_output_is_told_in_one_line(
    arguments: list[str], unbuffered: str, database: Path
) -> None:
    """Status 2, which says neither yes nor no."""
    with Path("/dev/full").open("w") as full:
        done = completed(
            [*MODULE, *arguments],
            stdout=full,
            cwd=database.parent,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2, done.stderr
    *notes, last = done.stderr.splitlines()
    assert last == "Error: the output cannot be written: No space left on device"
    assert all(each.startswith("Note: ") for each in notes)


def test_a_full_place_for_errors_is_survived(tmp_path: Path) -> None:
    """There is nothing left to say: only the status."""
    line = f'"{sys.executable}" -m spack_cache_db check "{tmp_path}/none" 2>/dev/full'
    done = completed(["/bin/sh", "-c", line])
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("closed", ["1", "2", "1 2"])
def test_closed_streams_are_no_error(closed: str, database: Path) -> None:
    """A command without a place for its output or its errors does what it is told."""
    shut = " ".join(f"{number}>&-" for number in closed.split())
    for arguments in (f"build {SAMPLES} -o y.db", "find py-mpi4py x.db", f"check {SAMPLES}"):
        line = f'"{sys.executable}" -m spack_cache_db {arguments} {shut}'
        done = completed(["/bin/sh", "-c", line], cwd=database.parent)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert whole(database.parent / "y.db")


@pytest.mark.parametrize("closed", ["1", "2", "1 2"])
def test_a_server_needs_no_streams(closed: str, database: Path) -> None:
    """`serve` answers without a place for its log, and ends as any other."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shut = " ".join(f"{number}>&-" for number in closed.split())
    line = f'exec "{sys.executable}" -m spack_cache_db serve x.db --port {port} {shut}'
    with subprocess.Popen(
        ["/bin/sh", "-c", line], cwd=database.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        try:
            eventually(lambda: answers(f"http://127.0.0.1:{port}/"))
        finally:
            server.terminate()
            _, told = server.communicate()
    assert (server.returncode, b"rror" in told) == (0, False), told


def test_errors_go_into_no_file(tmp_path: Path) -> None:
    """Where standard error is closed, the next file that is opened has its number."""
    program = (
        "import os, sys\n"
        "from spack_cache_db.cli.terminal import write_error\n"
        "with open(sys.argv[1], 'w') as stream:\n"
        "    print(stream.fileno())\n"
        "    write_error('what is said')\n"
    )
    line = f'"{sys.executable}" -c "$0" \'{tmp_path}/x\' 2>&-'
    done = completed(["/bin/sh", "-c", line, program], check=True)
    assert done.stdout == "2\n"
    assert (tmp_path / "x").read_bytes() == b""


def test_a_reader_that_leaves_is_no_error(database: Path) -> None:
    """`find | head -1` ends quietly."""
    line = f'"{sys.executable}" -m spack_cache_db find "*" x.db --csv --hashes | head -1'
    done = completed(["/bin/sh", "-c", line], cwd=database.parent)
    assert (done.returncode, done.stderr) == (0, "")
