"""build.graph: whose word on the dependencies of a spec is kept, and what the others say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spack_cache_db.build import build
from spack_cache_db.build.graph import Edges, Records, first_documents
from spack_cache_db.verify import verify
from tests.indexes import edge, hash_of, index, node, record


def columns(*rows: tuple[int, ...]) -> Edges:
    """Return (document, spec, dependency, use) as arrays."""
    return Edges(*(np.array(column, np.uint32) for column in zip(*rows, strict=True)))


def records(*keys: tuple[int, int]) -> Records:
    """Return records of (document, spec)."""
    document, spec = (np.array(column, np.uint32) for column in zip(*keys, strict=True))
    return Records(document, spec, *[np.zeros(len(keys), np.uint32)] * 7)


def test_the_first_document_that_tells_of_a_spec_is_right() -> None:
    """Document 1 comes before 2, whatever the order of the rows; one that agrees is not odd."""
    edges = columns((2, 7, 8, 0), (1, 7, 9, 0), (1, 7, 8, 0), (3, 7, 8, 0), (3, 7, 9, 0))

    kept, odd = first_documents(records((2, 7), (1, 7), (3, 7), (3, 8), (3, 9)), edges)

    assert sorted(zip(*map(np.ndarray.tolist, kept), strict=True)) == [(1, 7, 8, 0), (1, 7, 9, 0)]
    assert [*zip(*map(np.ndarray.tolist, odd.edges), strict=True)] == [(2, 7, 8, 0)]
    assert (odd.records.document.tolist(), odd.records.spec.tolist()) == ([2], [7])


@pytest.mark.parametrize("first_has_it", [True, False])
def test_a_record_without_edges_has_its_word(tmp_path: Path, first_has_it: bool) -> None:
    """No dependencies is something to say: it counts if it comes first, and is told if it does not.

    `declared` has what the other says, and the file gives both indexes back.
    """
    needs = {"1": first_has_it, "2": not first_has_it}
    for stack, has_it in needs.items():
        edges = [edge("b", "link")] if has_it else []
        folder = tmp_path / "in" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(record(node("a", *edges)), record(node("b"))))

    build(tmp_path / "in", tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        count = connection.execute("SELECT count(*) FROM dependencies").fetchone()
        rows = connection.execute("SELECT mirror, code, declared FROM problems").fetchall()
    said: list[Any] = [] if first_has_it else [[hash_of("b"), ["link"], [], None]]
    assert count == (int(first_has_it),)
    assert [(*row[:2], json.loads(row[2])) for row in rows] == [(2, "two_dependencies", said)]
    assert verify(tmp_path / "x.db", tmp_path / "in").differences == ()
