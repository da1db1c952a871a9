"""query.dependencies.recorded: what the records of several indexes say, the first of them first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.dependencies.recorded import Recorded, has_records
from tests.indexes import MIRRORS, REAL_FILE, edge, hash_of, index, node, old_node, record
from tests.pagetexts import page, spec, spec_hash, write

Make = Callable[..., sqlite3.Connection]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Build pages and indexes, given as place=bytes, and connect to the file."""
    connections: list[sqlite3.Connection] = []

    def made(pages: dict[str, bytes], **indexes: bytes) -> sqlite3.Connection:
        where = tmp_path / str(len(connections))
        write(where / "pages", **pages)
        for stack, data in indexes.items():
            (where / "develop" / stack).mkdir(parents=True)
            (where / "develop" / stack / "index.json").write_bytes(data)
        build([str(where)], where / "out.db")
        connections.append(sqlite3.connect(where / "out.db"))
        return connections[-1]

    yield made
    for each in connections:
        each.close()


def hashes(conn: sqlite3.Connection, ids: Any) -> set[str]:
    """Return the hashes of some specs."""
    return {row[1] for row in conn.execute("SELECT id, hash FROM specs") if row[0] in ids}


PAGES = {"zlib": page("zlib", specs=[spec(1)])}


def test_what_pages_alone_tell_of(make: Make) -> None:
    """A spec without a record is one that no index has; a file of pages has no records at all."""
    mixed = make(PAGES, a=index(record(node("aa"))))

    assert has_records(mixed)
    assert not has_records(make(PAGES))
    assert hashes(mixed, Recorded(mixed).unrecorded) == {spec_hash(1)}
    assert hashes(mixed, Recorded(mixed).every) == {spec_hash(1), hash_of("aa")}
    for each in Recorded(mixed).every:
        assert Recorded(mixed, {each}).unrecorded == Recorded(mixed).unrecorded & {each}
        one = Recorded(mixed, {each}).with_node(lambda _: True)
        assert one == Recorded(mixed).with_node(lambda _: True) & {each}


def test_the_first_record_counts(make: Make) -> None:
    """Of two indexes that contradict each other, the first by its path tells what a node is."""
    one, other = node("aa", namespace="own"), node("aa", namespace="builtin")
    conn = make({}, a=index(record(one)), b=index(record(other), record(node("bb"))))

    found = Recorded(conn).with_node(lambda each: each.namespace == "own")

    assert hashes(conn, found) == {hash_of("aa")}
    assert Recorded(conn).with_node(lambda each: "x" in each.parameters) == frozenset()


def test_who_names_a_compiler(make: Make) -> None:
    """Specs of before Spack 1.0, whatever index tells of them, and externals without edges."""
    external = {"path": "/usr", "module": None}
    kept = {"original_specfile_version": 4, "compiler": "gcc@=12.2.0"}
    new = index(
        record(node("new")),
        record(node("kept", annotations=kept)),
        record(node("outside", external=external), is_binary=False),
        record(node("needing", edge("new", "link"), external=external), is_binary=False),
    )
    conn = make({}, a=new, b=index(record(old_node("old", "7")), version="7"))

    assert hashes(conn, Recorded(conn).old) == {hash_of("old"), hash_of("kept")}
    assert hashes(conn, Recorded(conn).by_compiler - Recorded(conn).old) == {hash_of("outside")}


@pytest.mark.parametrize(("version", "tells"), [("5", False), ("6", False), ("7", True)])
def test_who_tells_of_virtual_packages(make: Make, version: str, tells: bool) -> None:
    """Indexes since database 7 do; those of before say it of no spec."""
    conn = make({}, a=index(record(old_node("old", version)), version=version))

    assert Recorded(conn).tells_virtuals is tells
    assert (Recorded(conn).without_virtuals == frozenset()) is tells


@pytest.mark.slow
def test_whole_mirrors(tmp_path: Path) -> None:
    """Of mirrors without an index, those of Spack before 0.21 do not tell of virtual packages."""
    build([str(MIRRORS), str(REAL_FILE)], tmp_path / "out.db")
    conn = sqlite3.connect(tmp_path / "out.db")
    mute = Recorded(conn).without_virtuals
    releases = {
        row[0]
        for row in conn.execute(
            "SELECT releases.name, spec FROM records JOIN mirrors ON mirrors.id = mirror "
            "JOIN releases ON releases.id = release"
        )
        if row[1] in mute
    }
    conn.close()

    assert releases == {"v2-0.16", "v2-0.17", "v2-0.20"}
