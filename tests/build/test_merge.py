"""build.merge: many units, one whole, however the input was divided; nothing is lost in silence."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from tests.indexes import edge, hash_of, index, node, record


@pytest.mark.parametrize("first_has_it", [True, False])
def test_a_record_without_edges_has_its_word(tmp_path: Path, first_has_it: bool) -> None:
    """No dependencies is something to say: it counts if it comes first, else it is a problem."""
    needs = {"1": first_has_it, "2": not first_has_it}
    for stack, has_it in needs.items():
        edges = [edge("b", "link")] if has_it else []
        folder = tmp_path / "in" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node("a", *edges)), record(node("b"))))

    build(tmp_path / "in", tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        count = connection.execute("SELECT count(*) FROM dependencies").fetchone()
        rows = connection.execute("SELECT mirror, code, value FROM problems").fetchall()
    said: list[Any] = [] if first_has_it else [[hash_of("b"), ["link"], [], None]]
    assert count == (int(first_has_it),)
    assert [(*row[:2], json.loads(row[2])) for row in rows] == [(2, "two_dependencies", said)]
