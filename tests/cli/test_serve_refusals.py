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

from spack_cache_db.cli.server import served
from spack_cache_db.errors import DatabaseError
from tests.commands import run
from tests.processes import completed


def run_serve(*arguments: object) -> tuple[int, str]:
    """Run `serve` until it ends, which it does at once when it refuses: its status and errors."""
    done = completed(
        [sys.executable, "-m", "spack_cache_db", "serve", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stderr


def refusal(file: Path) -> str:
    """Return why a file is not served."""
    with pytest.raises(DatabaseError) as caught, served(file):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_a_refusal_is_one_line(samples_file: Path, tmp_path: Path) -> None:
    """A port that is in use and a file that is missing: status 2, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = {
            f"Error: port {port} is in use; ": run_serve(samples_file, "--port", port),
            "Error: --proxy nginx: ": run_serve(samples_file, "--proxy", "nginx"),
            f"Error: {tmp_path}/missing.db: ": run_serve(tmp_path / "missing.db"),
        }
    for start, (status, said) in refusals.items():
        *loading, refusal = said.splitlines()
        assert status == 2
        assert refusal.startswith(start)
        assert len(loading) <= 1 and all(each.startswith("Loading ") for each in loading)


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
    """Before anything is served."""
    copy = damaged(samples_file, tmp_path, how)
    said = refusal(copy)
    assert said.startswith(f"{copy}: is damaged: ")
    assert said.endswith("; build it again")


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, another kind of file: each is told what it is."""
    other = tmp_path / "other.db"
    other.write_bytes(b"something else")
    assert refusal(other).endswith(
        "is not a spack-cache-db database; expected a file made by build"
    )
    assert refusal(tmp_path).endswith(": is a folder, expected a regular file")
    missing = refusal(tmp_path / "missing.db")
    assert "no such file; build one with: spack-cache-db build" in missing


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--setting", "sql_time_limit", "5"), "close: sql_time_limit_ms"),
        (("--setting", "sql_time_limit_ms", "soon"), "not a whole number"),
        (("--setting", "allow_download", "5"), "neither on nor off"),
        (("--metadata", "[1]"), "expected a mapping"),
        (("--metadata", "a: [b"), "m.yml:1: broken YAML"),
        (("--metadata", "a:\n " + "[" * 9_999), "m.yml:2: is nested more than 32 levels deep: "),
        (("--metadata", "a: 1\na: 2"), "m.yml:1: a repeated key, expected each once"),
        (("--metadata", "settings: {nope: 1}"), "no setting is called 'nope'"),
        (("--metadata", "plugins: {spack-cache-db: {open: 1}}"), "no key is called 'open'"),
    ],
)
def test_what_it_cannot_be_told_is_refused(
    samples_file: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """A setting, a metadata file or an allowance that is wrong: one line that names it."""
    *option, value = arguments
    if option == ["--metadata"]:
        value = str(tmp_path / "m.yml")
        Path(value).write_text(arguments[-1])
    found = run("serve", samples_file, *option, value, "--port", "0")

    assert found.exit_code == 2
    assert said in found.stderr
    assert found.stderr.splitlines()[-1].startswith("Error: ")
