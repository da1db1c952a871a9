"""Dependencies that have no record: known by hash and name, and told."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.build.verification import verify
from spack_cache_db.query.answers import find
from tests.indexes import edge, hash_of, index, node, real, record
from tests.trees import installed

EDGES = """
SELECT package, dependency_package, dependency_hash FROM dependency_edges
ORDER BY package, dependency_package
"""
PROBLEMS = "SELECT code, message FROM problems ORDER BY message"


def built(folder: Path, *documents: bytes) -> sqlite3.Connection:
    """Build indexes, see that the file gives all of them back, and connect to the file."""
    for at, data in enumerate(documents):
        path = folder / "in" / "develop" / f"s{at}"
        path.mkdir(parents=True, exist_ok=True)
        (path / "index.json").write_bytes(data)
    build(folder / "in", folder / "x.db")
    found = verify(folder / "x.db", folder / "in")
    assert (found.faults, found.differences) == ((), ())
    return sqlite3.connect(folder / "x.db")


def told(name: str) -> tuple[str, str]:
    """Return the problem of a spec without a record."""
    words = f"the spec {hash_of(name)} is needed, and has no record"
    return "no_record", f"{words}: only its name is known, {name}"


@pytest.mark.parametrize("of", [record, installed])
def test_a_dependency_without_a_record_is_a_problem(tmp_path: Path, of: Any) -> None:
    """The rest is built, the edge stays, and the spec is found by hash and by name."""
    with closing(built(tmp_path, index(of(node("a", edge("b", "link"))), of(node("c"))))) as db:
        assert db.execute(EDGES).fetchall() == [("a", "b", hash_of("b"))]
        assert db.execute(PROBLEMS).fetchall() == [told("b")]
        assert db.execute("SELECT package FROM builds ORDER BY package").fetchall() == [
            ("a",),
            ("c",),
        ]
        assert [each.package for each in find(db, "* ^b")] == ["a"]


def test_what_a_spec_was_built_as_needs_no_record(tmp_path: Path) -> None:
    """The original of a spliced spec is known by hash and name."""
    spliced = record(node("a", build_spec={"name": "a", "hash": hash_of("b")}))
    with closing(built(tmp_path, index(spliced))) as db:
        (problem,) = db.execute("SELECT message FROM problems").fetchone()
        assert problem.endswith("only its name is known, a")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_who_has_a_record_is_believed(tmp_path: Path, order: tuple[int, int]) -> None:
    """What one index knows is no less known because another one does not know it."""
    parts = [index(record(node("a", edge("b", "link")))), index(record(node("b")))]
    with closing(built(tmp_path, *(parts[at] for at in order))) as db:
        assert db.execute("SELECT package, version FROM builds ORDER BY package").fetchall() == [
            ("a", "1.0"),
            ("b", "1.0"),
        ]
        assert db.execute(PROBLEMS).fetchall() == [told("b")]


@pytest.mark.slow
def test_records_that_are_missing_at_random_cost_nothing_else(tmp_path: Path) -> None:
    """Of a real index without a tenth of its records, all others are there with all edges."""
    data = json.loads(real())
    installs = data["database"]["installs"]
    gone = {*random.Random(3).sample(sorted(installs), len(installs) // 10)}
    data["database"]["installs"] = {key: installs[key] for key in installs if key not in gone}
    needed = {
        (key, to["hash"])
        for key in installs.keys() - gone
        for to in installs[key]["spec"].get("dependencies", ())
    }
    with closing(built(tmp_path, json.dumps(data).encode())) as db:
        edges = {*db.execute("SELECT hash, dependency_hash FROM dependency_edges")}
        assert edges == needed
        (count,) = db.execute("SELECT count(*) FROM problems WHERE code = 'no_record'").fetchone()
        assert count == len({to for _, to in needed} & gone) > 0
