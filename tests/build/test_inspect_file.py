"""build.inspect_file: the inspect file is of the very database that it stands beside."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.build import inspect_file as inspection
from spack_cache_db.errors import OutputError
from tests.pagetexts import SAMPLES, page, write


@pytest.fixture
def built_file(tmp_path: Path) -> Path:
    """A database of one page, with its inspect file."""
    output = tmp_path / "x.db"
    build([str(write(tmp_path / "pages", a=page()))], output)
    return output


def test_a_build_writes_the_inspect_file(built_file: Path) -> None:
    """Hash, size, and the number of rows of each table."""
    written = json.loads(inspection.inspect_path(built_file).read_text())["spack-cache"]
    assert written["hash"] == hashlib.sha256(built_file.read_bytes()).hexdigest()
    assert written["size"] == built_file.stat().st_size
    assert written["file"] == "x.db"
    connection = sqlite3.connect(built_file)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    counts = {
        name: {"count": connection.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0]}
        for (name,) in tables
    }
    connection.close()
    assert written["tables"] == counts
    assert counts["specs"] == {"count": 1}


def test_it_follows_the_database(built_file: Path) -> None:
    """The next build replaces both."""
    build([str(SAMPLES)], built_file)
    written = json.loads(inspection.inspect_path(built_file).read_text())["spack-cache"]
    assert written["tables"]["specs"] == {"count": 413}


def test_it_is_believed_where_it_is_of_this_file(built_file: Path) -> None:
    """Nothing is counted again: a number that we change in it comes back."""
    path = inspection.inspect_path(built_file)
    written = json.loads(path.read_text())
    written["spack-cache"]["tables"]["specs"]["count"] = 77
    path.write_text(json.dumps(written))
    found = inspection.current_inspection(built_file)
    assert found["spack-cache"]["tables"]["specs"]["count"] == 77


@pytest.mark.parametrize(
    "content", [None, "", "[]", "{}", '{"spack-cache": {"hash": "of another file"}}', "\udcff"]
)
def test_any_other_one_is_not_believed(content: str | None, built_file: Path) -> None:
    """A missing, broken or stale file: the database itself is asked."""
    path = inspection.inspect_path(built_file)
    path.unlink()
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    found = inspection.current_inspection(built_file)
    assert found["spack-cache"]["tables"]["specs"]["count"] == 1


def test_a_place_that_is_taken_is_told(tmp_path: Path) -> None:
    """A folder stands where the inspect file belongs: one message, no litter."""
    output = tmp_path / "x.db"
    inspection.inspect_path(output).mkdir()
    with pytest.raises(OutputError) as caught:
        build([str(SAMPLES)], output)
    assert str(caught.value) == (
        f"{tmp_path}/x.inspect.json: cannot be written: Is a directory; "
        "the database itself is whole"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"x.db", "x.inspect.json"}
