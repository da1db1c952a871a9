"""build.sqlite_file: a file is made whole, and what is broken or damaged in it is found."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db import schema
from spack_cache_db.build import frames, sqlite_file
from spack_cache_db.build.frames import Frame
from spack_cache_db.errors import OutputError


def test_an_empty_database_is_a_whole_one(tmp_path: Path) -> None:
    """Every table is made, even where nothing goes in."""
    path = tmp_path / "x.db"
    db = sqlite_file.create(path)
    sqlite_file.index_text(db, {"configurations": (), "packages": (), "known_packages": ()})
    sqlite_file.finish(db)
    db.close()
    sqlite_file.require_intact(path)
    connection = sqlite3.connect(path)
    for table in schema.TABLES:
        assert connection.execute(f"SELECT count(*) FROM {table.name}").fetchone() == (0,)
    connection.close()


@given(
    listings=st.sets(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=1).flatmap(
        lambda keys: st.tuples(
            *(
                st.tuples(st.just(key), *[st.integers(0, 2)] * 2, *[st.integers(1, 2)] * 2)
                for key in sorted(keys)
            )
        )
    ),
    at_once=st.integers(1, 8),
)
def test_rows_of_a_frame_are_those_of_its_tuples(
    listings: tuple[tuple[tuple[int, int], int, int, int, int], ...], at_once: int
) -> None:
    """What rows have in common stands in the statement, and comes out of the file all the same."""
    rows = [(*key, *others) for key, *others in listings]
    names = ("release", "spec", "configuration", "tarball", "stacks", "size")
    frame = Frame(**dict(zip(names, np.array(rows).T, strict=True)))
    values = {"configuration": (None, 7, 8), "size": ("", "1", "it's"), "tarball": (None, 1, 2)}
    order = [column.name for column in schema.table("listings").columns]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "ROWS_AT_ONCE", at_once)
        for given_rows in (frame.rows(*order, **values), [*frame.rows(*order, **values)]):
            db = sqlite_file.create(Path(":memory:"))
            sqlite_file.insert(db, "listings", given_rows)
            found.append(db.execute("SELECT * FROM listings").fetchall())
            db.close()
    assert found[0] == found[1]
    assert len(found[0]) == len(rows)


def test_a_broken_foreign_key_is_found(tmp_path: Path) -> None:
    """SQLite checks what was inserted without looking."""
    path = tmp_path / "x.db"
    db = sqlite_file.create(path)
    sqlite_file.insert(db, "versions", [(1, 99, "1.0", 1)])
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
