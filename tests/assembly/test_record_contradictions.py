"""What indexes say of one spec that contradicts others, or that no record says."""

import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.find import find
from tests.indexes import FLAGS, edge, hash_of, index, node, real, record
from tests.trees import installed

OUTSIDE: dict[str, Any] = {"path": "/usr", "module": None, "extra_attributes": {}}


EDGES = """
SELECT package, dependency_package, dependency_hash FROM dependency_edges
ORDER BY package, dependency_package
"""
PROBLEMS = "SELECT code, message FROM problems ORDER BY message"


@contextmanager
def built(
    folder: Path, *documents: Iterable[dict[str, Any]]
) -> Iterator[sqlite3.Connection]:
    """Build an index of each list of records, and connect to the database."""
    for number, records in enumerate(documents):
        path = folder / "in" / "develop" / f"s{number}"
        path.mkdir(parents=True)
        (path / "index.json").write_bytes(index(*records))
    build(folder / "in", folder / "x.db")
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        yield connection


def without_record(name: str) -> tuple[str, str]:
    """Return the problem of a spec without a record."""
    words = f"the spec {hash_of(name)} is needed, and has no record"
    return "no_record", f"{words}: only its name is known, {name}"


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
def test_records_that_differ_are_a_problem(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    """Namespace, package hash, flags, patches, external or pushed, old hashes: both
    values.
    """
    more = [record(node("x")), record(node("y"))]
    documents = ([record(node("a", **each)), *more] for each in (one, other))
    with built(tmp_path, *documents) as db:
        sql = "SELECT message FROM problems WHERE code = 'two_records'"
        ((message,),) = db.execute(sql).fetchall()
    where = f"the spec {hash_of('a')} has another record here than in develop/s0/index.json: "

    assert message.startswith(where + words)


def test_a_key_that_an_index_lacks_contradicts_nothing(tmp_path: Path) -> None:
    """Formats of indexes differ: a key that one of them lacks, and what it says of its
    format.
    """
    same = node("a", edge("b", "link"))
    old = {key: value for key, value in same.items() if key != "package_hash"}
    old["annotations"] = {"original_specfile_version": 4}
    others = [record(node("b"))]

    with built(tmp_path, [record(same), *others], [record(old), *others]) as db:
        assert db.execute(PROBLEMS).fetchall() == []


@pytest.mark.parametrize("first_has_it", [True, False])
def test_no_edges_contradict_some_edges(tmp_path: Path, first_has_it: bool) -> None:
    """The first record counts, and the other one is a problem that stores its edges."""
    edges = [[edge("b", "link")], []] if first_has_it else [[], [edge("b", "link")]]
    documents = (
        [record(node("a", *edges_of_a)), record(node("b"))] for edges_of_a in edges
    )
    with built(tmp_path, *documents) as db:
        (count,) = db.execute("SELECT count(*) FROM dependencies").fetchone()
        ((mirror, code, value),) = db.execute(
            "SELECT mirror_id, code, value FROM problems"
        )
    expected: list[Any] = [] if first_has_it else [[hash_of("b"), ["link"], [], None]]

    assert count == int(first_has_it)
    assert (mirror, code, json.loads(value)) == (2, "two_dependencies", expected)


@pytest.mark.parametrize("of", [record, installed])
def test_a_dependency_without_a_record_is_a_problem(tmp_path: Path, of: Any) -> None:
    """All else is built, the edge stays, and the spec is found by hash and by name."""
    with built(tmp_path, [of(node("a", edge("b", "link"))), of(node("c"))]) as db:
        assert db.execute(EDGES).fetchall() == [("a", "b", hash_of("b"))]
        assert db.execute(PROBLEMS).fetchall() == [without_record("b")]
        assert set(db.execute("SELECT package FROM builds")) == {("a",), ("c",)}
        assert [found.package for found in find(db, "* ^b")] == ["a"]


def test_two_names_of_a_spec_without_a_record(tmp_path: Path) -> None:
    """The name in the first release counts, whatever the order of the input, so a
    database gives itself.
    """
    sources: list[Path] = []
    for release, name in (("v1.0", "older"), ("develop", "newer")):
        source = tmp_path / f"{len(sources)}"
        needed = edge(name, "link") | {"hash": hash_of("lost")}
        folder = source / release / "e4s"
        folder.mkdir(parents=True)
        records = index(record(node(f"user-of-{name}", needed)))
        (folder / "index.json").write_bytes(records)
        sources.append(source)
    both = tmp_path / "both.db"
    build(sources, both)

    with closing(sqlite3.connect(both)) as connection:
        query = "SELECT DISTINCT dependency_package FROM dependency_edges"
        assert connection.execute(query).fetchall() == [("newer",)]

    build(both, tmp_path / "again.db")
    build(sources[1], tmp_path / "newest.db")
    build([tmp_path / "newest.db", sources[0]], tmp_path / "one_by_one.db")

    for other in ("again.db", "one_by_one.db"):
        assert (tmp_path / other).read_bytes() == both.read_bytes()


def test_the_original_of_a_spliced_spec_needs_no_record(tmp_path: Path) -> None:
    """It is known by hash and name."""
    spliced = record(node("a", build_spec={"name": "a", "hash": hash_of("b")}))
    with built(tmp_path, [spliced]) as db:
        ((_, problem),) = db.execute(PROBLEMS)
        assert problem.endswith("only its name is known, a")


@pytest.mark.parametrize("order", [1, -1])
def test_one_index_with_a_record_suffices(tmp_path: Path, order: int) -> None:
    """A spec that one index knows is known, though another index lacks its record."""
    documents = [[record(node("a", edge("b", "link")))], [record(node("b"))]]
    with built(tmp_path, *documents[::order]) as db:
        found = set(db.execute("SELECT package, version FROM builds"))
        assert found == {("a", "1.0"), ("b", "1.0")}
        assert db.execute(PROBLEMS).fetchall() == [without_record("b")]


@pytest.mark.slow
def test_records_that_are_missing_at_random_cost_nothing_else(tmp_path: Path) -> None:
    """Of a real index without a tenth of its records, all others are there with all
    edges.
    """
    records = json.loads(real())["database"]["installs"]
    gone = set(random.Random(3).sample(sorted(records), len(records) // 10))
    left = {key: records[key] for key in records if key not in gone}
    needed = {
        (key, dependency["hash"])
        for key in left
        for dependency in left[key]["spec"].get("dependencies", ())
    }

    with built(tmp_path, left.values()) as db:
        assert (
            set(db.execute("SELECT hash, dependency_hash FROM dependency_edges"))
            == needed
        )
        (count,) = db.execute(
            "SELECT count(*) FROM problems WHERE code = 'no_record'"
        ).fetchone()
        assert count == len({dependency for _, dependency in needed} & gone) > 0
