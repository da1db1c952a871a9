"""What indexes say of one spec that contradicts others, or that no record says."""

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
from tests.indexes import FLAGS, edge, hash_of, index, node, real, record
from tests.trees import installed

OUTSIDE: dict[str, Any] = {"path": "/usr", "module": None, "extra_attributes": {}}


def built_releases(folder: Path, *records: list[dict[str, Any]]) -> sqlite3.Connection:
    """Build an index of each release, see that the file gives all back, and connect to it."""
    for release, some in zip(("develop", "v1.0"), records, strict=True):
        path = folder / "in" / release / "e4s"
        path.mkdir(parents=True)
        (path / "index.json").write_bytes(index(*some))
    build(folder / "in", folder / "x.db")
    assert verify(folder / "x.db", folder / "in").differences == ()
    return sqlite3.connect(folder / "x.db")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"namespace": "ours"}, {}, "namespace builtin, not ours"),
        ({"package_hash": "x"}, {"package_hash": "y"}, "package hash y, not x"),
        (
            {"parameters": {**FLAGS, "cflags": ["-O2", "-g"]}},
            {"parameters": FLAGS},
            "cflags none, not -O2 -g",
        ),
        ({"external": OUTSIDE}, {}, 'external none, not {"path":"/usr"}'),
        ({}, {"external": OUTSIDE}, 'external {"path":"/usr"}, not none'),
        (
            {"parameters": {**FLAGS, "patches": ["1234567" + "a" * 57]}},
            {"parameters": {**FLAGS, "patches": ["1234567" + "b" * 57]}},
            "patches of the variant 1234567b",
        ),
        (
            {"build_spec": {"name": "x", "hash": hash_of("x")}},
            {"build_spec": {"name": "y", "hash": hash_of("y")}},
            f"build_spec {hash_of('y')}, not {hash_of('x')}",
        ),
    ],
)
def test_what_two_indexes_say_otherwise_is_told(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    """Namespace, package hash, flags, patches, external or pushed, old hashes: both values."""
    more = [record(node("x")), record(node("y"))]
    with closing(
        built_releases(
            tmp_path, [record(node("a", **one)), *more], [record(node("a", **other)), *more]
        )
    ) as db:
        found = db.execute("SELECT message FROM problems WHERE code = 'two_records'").fetchall()
        (message,) = (message for (message,) in found)
    where = f"the spec {hash_of('a')} has another record here than in develop/e4s/index.json: "
    assert message.startswith(where + words)


def test_what_an_index_does_not_say_contradicts_nothing(tmp_path: Path) -> None:
    """Formats of indexes differ: a key that one of them lacks, and what it says of its format."""
    same = node("a", edge("b", "link"))
    old = {key: value for key, value in same.items() if key != "package_hash"}
    old["annotations"] = {"original_specfile_version": 4}
    with closing(
        built_releases(
            tmp_path, [record(same), record(node("b"))], [record(old), record(node("b"))]
        )
    ) as db:
        assert db.execute("SELECT message FROM problems").fetchall() == []


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
