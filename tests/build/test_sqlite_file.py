"""build.sqlite_file: a file is made whole, and what is broken or damaged in it is found."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from spack_cache_db import schema
from spack_cache_db.build import sqlite_file
from spack_cache_db.errors import OutputError


def test_an_empty_database_is_a_whole_one(tmp_path: Path) -> None:
    """Every table is made, even where nothing goes in, and described."""
    path = tmp_path / "x.db"
    db = sqlite_file.create(path)
    sqlite_file.index_text(db, {"configurations": (), "packages": (), "known_packages": ()})
    sqlite_file.finish(db)
    db.close()
    sqlite_file.require_intact(path)
    connection = sqlite3.connect(path)
    filled = [
        table.name
        for table in schema.TABLES
        if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table.name})").fetchone() == (1,)
    ]
    assert filled == ["column_descriptions"]
    connection.close()


def test_a_broken_foreign_key_is_found(tmp_path: Path) -> None:
    """SQLite checks what was inserted without looking."""
    path = tmp_path / "x.db"
    db = sqlite_file.create(path)
    sqlite_file.insert(db, "versions", [(1, 99, "1.0", 1, None)])
    sqlite_file.index_text(db, {"configurations": (), "packages": (), "known_packages": ()})
    sqlite_file.finish(db)
    db.close()
    with pytest.raises(OutputError, match="the built database is damaged"):
        sqlite_file.require_intact(path)


def test_a_damaged_page_is_found(samples_file: Path, tmp_path: Path) -> None:
    """A page of the file that holds something else is no database."""
    path = tmp_path / "x.db"
    data = bytearray(samples_file.read_bytes())
    data[schema.PAGE_SIZE * 8 : schema.PAGE_SIZE * 9] = b"\xff" * schema.PAGE_SIZE
    path.write_bytes(data)
    with pytest.raises(OutputError, match="the built database is damaged"):
        sqlite_file.require_intact(path)
