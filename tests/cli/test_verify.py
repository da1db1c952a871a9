"""cli.build: one line if the file holds all, else every difference; nothing but that."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.commands import process, run
from tests.pagetexts import SAMPLES, page, spec, write


def test_a_whole_file_is_told_in_one_line(samples_file: Path) -> None:
    """Exit status 0."""
    result = run("verify", samples_file, SAMPLES, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert result.output == f"{samples_file}: 5 pages, 425 listings, 0 differences\n"


def test_each_difference_is_a_line(samples_file: Path, tmp_path: Path) -> None:
    """Sorted, with the page as the user named it; exit status 1."""
    (tmp_path / "x.db").write_bytes(samples_file.read_bytes())
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("DELETE FROM pages WHERE path < '002'")
    connection.commit()
    connection.close()
    result = run("verify", tmp_path / "x.db", SAMPLES, "--jobs", 1)
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == [
        str(path) for path in sorted(SAMPLES.iterdir())[:2]
    ]
    assert all(line.endswith(", the file has none") for line in lines[:-1])
    assert lines[-1] == f"{tmp_path}/x.db: 5 pages, 425 listings, 2 differences"


def test_faults_go_to_standard_error(samples_file: Path, tmp_path: Path) -> None:
    """With exit status 1, though nothing differs."""
    folder = write(tmp_path / "in", a=b"nothing")
    result = run("verify", samples_file, SAMPLES, folder, "--jobs", 1)
    assert result.exit_code == 1, result.output
    said = f"{folder}/a.md:1: no front matter, expected --- on the first line\n"
    assert result.stderr == said
    assert result.stdout == f"{samples_file}: 5 pages, 425 listings, 0 differences, 1 fault\n"


def test_the_report_for_machines(samples_file: Path, tmp_path: Path) -> None:
    """One object, whatever came out."""
    folder = write(tmp_path / "in", a=page("nothing-else", "v0.1", [spec(1)]), b=b"")
    result = run("verify", samples_file, folder, "--json", "--jobs", 1)
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout) == {
        "file": str(samples_file),
        "pages": 1,
        "indexes": 0,
        "listings": 1,
        "records": 0,
        "packages": 0,
        "faults": [f"{folder}/b.md: the file is empty, expected a page that starts with ---"],
        "differences": [
            f"{folder}/a.md: is a page of nothing-else in v0.1, the file has none",
        ],
        "others": 0,
    }


@pytest.mark.slow
def test_the_command_runs_in_processes(samples_file: Path) -> None:
    """With no progress bar in a pipe."""
    done = process("verify", samples_file, SAMPLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": 5 pages, 425 listings, 0 differences\n")


def test_what_is_no_file_of_ours_is_an_error(tmp_path: Path) -> None:
    """One line that says what to do."""
    result = run("verify", tmp_path / "x.db", SAMPLES)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {tmp_path}/x.db: no such file; build one with: ")


def test_a_path_that_does_not_exist_is_told(samples_file: Path, tmp_path: Path) -> None:
    """As for `check`."""
    result = run("verify", samples_file, tmp_path / "gone")
    assert result.exit_code == 1
    first, last = result.stderr.splitlines()
    assert first == f"{tmp_path}/gone: no such file or folder, expected pages or indexes"
    assert last.startswith("Error: 1 fault in the input")
