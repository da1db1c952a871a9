"""Output that is full, closed or no longer read: one line, and no traceback."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.pagetexts import SAMPLES
from tests.processes import completed

pytestmark = pytest.mark.slow

MODULE = [sys.executable, "-m", "spack_cache_db"]


@pytest.fixture
def database(samples_file: Path, tmp_path: Path) -> Path:
    """A small database."""
    shutil.copy(samples_file, tmp_path / "x.db")
    return tmp_path / "x.db"


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full on this machine"
)
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (["find", "py-mpi4py", "x.db", "--csv", "--hashes"], "1"),
        (["build", str(SAMPLES), "-o", "y.db"], ""),
        (["serve", "x.db", "--port", "0"], ""),
        (["--help"], ""),
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
    assert all(note.startswith(("Note: ", "Loading ")) for note in notes)


def test_a_full_place_for_errors_is_survived(tmp_path: Path) -> None:
    """There is nothing left to say: only the status."""
    line = f'"{sys.executable}" -m spack_cache_db check "{tmp_path}/none" 2>/dev/full'
    done = completed(["/bin/sh", "-c", line])
    assert (done.returncode, done.stdout) == (2, "")


def test_a_reader_that_leaves_is_no_error(database: Path) -> None:
    """`find | head -1` ends quietly."""
    line = (
        f'"{sys.executable}" -m spack_cache_db find "*" x.db --csv --hashes | head -1'
    )
    done = completed(["/bin/sh", "-c", line], cwd=database.parent)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "rows"), [("<&-", True), (">&-", False), ("2>&-", True)]
)
def test_a_closed_stream_is_no_error(database: Path, closed: str, rows: bool) -> None:
    """As some schedulers start programs."""
    line = f'"{sys.executable}" -m spack_cache_db find py-mpi4py x.db {closed}'
    done = completed(["/bin/sh", "-c", line], cwd=database.parent)

    assert (done.returncode, done.stderr) == (0, "")
    assert ("configurations" in done.stdout) == rows


@pytest.mark.parametrize("command", ["find", "deps"])
def test_a_word_that_is_not_text_is_named(database: Path, command: str) -> None:
    """Bytes that are not UTF-8 are an error of the user, and no bug."""
    word = os.fsdecode(b"hdf\xff")
    done = completed([*MODULE, command, word, "x.db"], cwd=database.parent)

    assert done.returncode == 2
    assert done.stderr == (
        "Error: 'hdf\\udcff' is not UTF-8 text, expected a spec, a name or a path\n"
    )


def test_a_report_that_cannot_be_written_keeps_the_old_one(database: Path) -> None:
    """On a full disk, here with a limit of the size of files."""
    report = database.parent / "r.xml"
    report.write_text("old")
    line = (
        f'ulimit -f 0; echo py-mpi4py | "{sys.executable}" -m spack_cache_db'
        " cover - x.db --junit r.xml"
    )
    done = completed(["/bin/sh", "-c", line], cwd=database.parent)

    assert done.returncode == 2
    assert "r.xml: cannot be written: File too large" in done.stderr
    assert report.read_text() == "old"
    assert sorted(path.name for path in database.parent.iterdir()) == ["r.xml", "x.db"]


def test_a_folder_that_is_gone_is_no_bug(tmp_path: Path) -> None:
    """Another process removed the folder in which a shell stands."""
    command = f'"{sys.executable}" -m spack_cache_db build "{SAMPLES}" -o x.db'
    line = f"mkdir gone && cd gone && rmdir ../gone && {command}"
    done = completed(["/bin/sh", "-c", line], cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("Error: the current folder does not exist any more")
