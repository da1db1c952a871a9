"""What two indexes say otherwise of one spec is told, whatever it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.build.verification import verify
from tests.indexes import FLAGS, edge, hash_of, index, node, record

OUTSIDE: dict[str, Any] = {"path": "/usr", "module": None, "extra_attributes": {}}


def built(folder: Path, *records: list[dict[str, Any]]) -> sqlite3.Connection:
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
        built(tmp_path, [record(node("a", **one)), *more], [record(node("a", **other)), *more])
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
        built(tmp_path, [record(same), record(node("b"))], [record(old), record(node("b"))])
    ) as db:
        assert db.execute("SELECT message FROM problems").fetchall() == []
