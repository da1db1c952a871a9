"""What records of indexes say of specs, and what needs what; what is known of two conditions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.conditions import Verdict
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.records import SpecRecords, has_records
from tests.indexes import MIRRORS, REAL_FILE, hash_of, index, node, old_node, record
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
    assert hashes(mixed, SpecRecords(read_lookups(mixed)).unrecorded) == {spec_hash(1)}
    assert hashes(mixed, SpecRecords(read_lookups(mixed)).every) == {
        spec_hash(1),
        hash_of("aa"),
    }
    one = SpecRecords(read_lookups(mixed), "zlib")
    assert hashes(mixed, one.unrecorded) == hashes(mixed, one.every) == {spec_hash(1)}
    assert one.with_node(lambda *_: True) == set()


def test_the_first_record_counts(make: Make) -> None:
    """Of two indexes that contradict each other, the first by its path tells what a node is."""
    one, other = node("aa", namespace="own"), node("aa", namespace="builtin")
    conn = make({}, a=index(record(one)), b=index(record(other), record(node("bb"))))

    found = SpecRecords(read_lookups(conn)).with_node(lambda space, _: space == "own")

    assert hashes(conn, found) == {hash_of("aa")}
    assert SpecRecords(read_lookups(conn)).with_node(lambda _, values: "x" in values) == frozenset()


def test_which_records_name_a_compiler(make: Make) -> None:
    """Those from before Spack 1.0, in an index of any version; not externals, nor new ones."""
    kept = {"original_specfile_version": 4, "compiler": "gcc@=12.2.0"}
    new = index(
        record(node("new")),
        record(node("kept", annotations=kept)),
        record(node("outside", external={"path": "/usr", "module": None}), is_binary=False),
    )
    conn = make({}, a=new, b=index(record(old_node("old", "7")), version="7"))

    found = SpecRecords(read_lookups(conn)).with_compiler

    assert hashes(conn, found) == {hash_of("old"), hash_of("kept")}


@pytest.mark.parametrize(("version", "tells"), [("5", False), ("6", False), ("7", True)])
def test_who_tells_of_virtual_packages(make: Make, version: str, tells: bool) -> None:
    """Indexes since database 7 do; those of before say it of no spec."""
    conn = make({}, a=index(record(old_node("old", version)), version=version))

    assert SpecRecords(read_lookups(conn)).tells_virtuals is tells
    assert (SpecRecords(read_lookups(conn)).without_virtuals == frozenset()) is tells


@pytest.mark.slow
def test_whole_mirrors(tmp_path: Path) -> None:
    """Of mirrors without an index, those of Spack before 0.21 do not tell of virtual packages."""
    build([str(MIRRORS), str(REAL_FILE)], tmp_path / "out.db")
    conn = sqlite3.connect(tmp_path / "out.db")
    mute = SpecRecords(read_lookups(conn)).without_virtuals
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


TRUTHS = (True, False, None)
PAIRS = [*product(TRUTHS, TRUTHS)]


def verdict(place: int) -> Verdict:
    """Return a verdict on the pairs, by their places: what one of each pair says."""
    said = {at: pair[place] for at, pair in enumerate(PAIRS)}
    return Verdict(
        {at for at, truth in said.items() if truth},
        {at for at, truth in said.items() if truth is None},
    )


def truth(of: Verdict, at: int) -> bool | None:
    """Return what a verdict says of one spec."""
    return True if at in of.holds else None if at in of.unknown else False


@pytest.mark.parametrize(("at", "pair"), [*enumerate(PAIRS)])
def test_two_conditions(at: int, pair: tuple[bool | None, bool | None]) -> None:
    """What is false decides `and`, what is true decides `or`; else one unknown is enough."""
    first, second = verdict(0), verdict(1)

    assert truth(first & second, at) is (False if False in pair else None if None in pair else True)
    assert truth(first | second, at) is (True if True in pair else None if None in pair else False)


@pytest.mark.parametrize(("at", "pair"), [*enumerate(PAIRS)])
def test_the_opposite(at: int, pair: tuple[bool | None, bool | None]) -> None:
    """What is not known stays so."""
    opposite = verdict(0).opposite({*range(len(PAIRS))})

    assert truth(opposite, at) is {True: False, False: True, None: None}[pair[0]]
