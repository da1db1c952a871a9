"""What `serve` refuses, each in one line that says what to do."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import run
from tests.serving import PATIENCE

pytestmark = pytest.mark.slow


def run_serve(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `serve` to its end, which comes at once when it refuses."""
    return subprocess.run(
        [sys.executable, "-m", "spack_cache_db", "serve", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def refusal(*arguments: object) -> str:
    """Return the one line with which `serve` refuses."""
    done = run_serve(*arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def test_a_taken_port_is_one_line(samples_file: Path) -> None:
    """A port that is in use: one line that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal(samples_file, "--port", port) == (
            f"Error: port {port} is taken; choose another with --port, "
            "or let --port 0 find a free one"
        )


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.7", "", "a..b", "x" * 300])
def test_an_odd_host_is_one_line(samples_file: Path, host: str) -> None:
    """A host that is none, or not here: one line."""
    line = refusal(samples_file, "--host", host, "--port", 0)
    assert line.startswith(f"Error: --host {host}: ")
    assert "use an address of this machine" in line


def damaged(samples_file: Path, tmp_path: Path, how: str) -> Path:
    """Return a copy of the samples' database that is damaged in one way."""
    copy = tmp_path / "damaged.db"
    shutil.copy(samples_file, copy)
    data = bytearray(copy.read_bytes())
    if how == "cut":
        copy.write_bytes(data[:-3000])
    elif how == "overwritten":
        data[len(data) // 3 : len(data) // 2] = b"\xff" * (len(data) // 2 - len(data) // 3)
        copy.write_bytes(data)
    elif how == "no schema":
        data[100:4096] = b"\0" * 3996
        copy.write_bytes(data)
    elif how == "no table":
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("DROP TABLE listings")
            connection.commit()
    return copy


@pytest.mark.parametrize("how", ["cut", "overwritten", "no schema", "no table"])
def test_a_damaged_file_is_refused(samples_file: Path, tmp_path: Path, how: str) -> None:
    """A damaged file is refused in one line before anything is served."""
    copy = damaged(samples_file, tmp_path, how)
    line = refusal(copy)
    assert line.startswith(f"Error: {copy}: is damaged: ")
    assert line.endswith("; build it anew")


def test_a_table_that_datasette_cannot_show_is_told(samples_file: Path, tmp_path: Path) -> None:
    """A table of somebody's own whose name breaks Datasette's SQL: one line, not pages of 500."""
    copy = tmp_path / "odd.db"
    shutil.copy(samples_file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute('CREATE TABLE "odd ]name" (x)')
        connection.commit()
    assert refusal(copy) == (
        f"Error: {copy}: has a table 'odd ]name', a name that Datasette cannot show; rename it"
    )


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, another kind of file: one line that says what to do."""
    other = tmp_path / "other.db"
    other.write_bytes(b"something else")
    assert refusal(other).endswith("is no spack-cache-db database; expected a file made by build")
    assert refusal(tmp_path).endswith(": is a folder, expected a file made by build")
    missing = refusal(tmp_path / "missing.db")
    assert "no such file; build one with: spack-cache-db build" in missing


def test_workers_need_the_extra(samples_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gunicorn one process serves, and several are refused with what to install."""
    monkeypatch.setattr("spack_cache_db.cli.serve.find_spec", lambda _: None)
    result = run("serve", samples_file, "--workers", 2)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: --workers needs gunicorn; install it with: pip install 'spack-cache-db[workers]'\n"
    )
