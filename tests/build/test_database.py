"""build.database: a file is published whole, or what stood there stays."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from spack_cache_db import schema
from spack_cache_db.build import database
from spack_cache_db.errors import OutputError

NOBODY = 2**22 + 1
"""No process has this id: Linux stops at 2**22."""


def names(folder: Path) -> set[str]:
    """Return the names in a folder."""
    return {path.name for path in folder.iterdir()}


def test_the_temporary_file_takes_the_place(tmp_path: Path) -> None:
    """Only when all went well, and the folder is made if it is missing."""
    output = tmp_path / "new" / "folder" / "x.db"
    with database.replacing(output) as temporary:
        temporary.write_bytes(b"new")
        assert temporary.parent == output.parent
        assert not output.exists()
    assert output.read_bytes() == b"new"
    assert names(output.parent) == {"x.db"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError, sqlite3.DatabaseError])
def test_an_error_leaves_the_old_file(error: type[BaseException], tmp_path: Path) -> None:
    """Whatever is raised, the old file stays and the temporary file goes."""
    output = tmp_path / "x.db"
    output.write_bytes(b"old")
    with pytest.raises((error, OutputError)), database.replacing(output) as temporary:
        temporary.write_bytes(b"half")
        raise error
    assert output.read_bytes() == b"old"
    assert names(tmp_path) == {"x.db"}


def test_a_bug_keeps_its_traceback(tmp_path: Path) -> None:
    """A broken constraint is our mistake, not a full disk."""
    with pytest.raises(sqlite3.IntegrityError), database.replacing(tmp_path / "x.db"):
        raise sqlite3.IntegrityError("UNIQUE constraint failed")


@pytest.mark.parametrize("output", ["x.db", "[x].db", "x*.db"])
def test_what_a_killed_build_left_is_removed(output: str, tmp_path: Path) -> None:
    """Its files are named for its process; names of other targets are not touched."""
    (tmp_path / f".{output}.{NOBODY}.tmp").touch()
    (tmp_path / f".{output}.inspect.{NOBODY}.tmp").touch()
    (tmp_path / f".other.db.{NOBODY}.tmp").touch()
    with database.replacing(tmp_path / output):
        pass
    assert names(tmp_path) == {output, f".other.db.{NOBODY}.tmp"}


@pytest.mark.slow
def test_what_a_running_build_writes_is_left_alone(tmp_path: Path) -> None:
    """Two builds of one output do not remove each other's files."""
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        (tmp_path / f".x.db.{running.pid}.tmp").touch()
        with database.replacing(tmp_path / "x.db"):
            pass
        assert names(tmp_path) == {"x.db", f".x.db.{running.pid}.tmp"}


def test_a_leftover_with_our_own_number_is_removed(tmp_path: Path) -> None:
    """In a container every build may be process 1."""
    left_over = tmp_path / f".x.db.{os.getpid()}.tmp"
    left_over.write_bytes(b"half")
    with database.replacing(tmp_path / "x.db") as temporary:
        assert temporary.read_bytes() == b""


def test_an_empty_database_is_a_whole_one(tmp_path: Path) -> None:
    """Every table is made, even where nothing goes in."""
    path = tmp_path / "x.db"
    db = database.create(path)
    database.finish(db)
    db.close()
    database.require_intact(path)
    connection = sqlite3.connect(path)
    for table in schema.TABLES:
        assert connection.execute(f"SELECT count(*) FROM {table.name}").fetchone() == (0,)
    connection.close()


def test_a_broken_foreign_key_is_found(tmp_path: Path) -> None:
    """SQLite checks what was inserted without looking."""
    path = tmp_path / "x.db"
    db = database.create(path)
    database.insert(db, "versions", [(1, 99, "1.0", 1)])
    database.finish(db)
    db.close()
    with pytest.raises(OutputError, match="the built database is damaged"):
        database.require_intact(path)


def test_a_damaged_page_is_found(samples_file: Path, tmp_path: Path) -> None:
    """A page of the file that holds something else is no database."""
    path = tmp_path / "x.db"
    data = bytearray(samples_file.read_bytes())
    data[schema.PAGE_SIZE * 8 : schema.PAGE_SIZE * 9] = b"\xff" * schema.PAGE_SIZE
    path.write_bytes(data)
    with pytest.raises(OutputError, match="the built database is damaged"):
        database.require_intact(path)
