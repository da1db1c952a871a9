"""Filters of mirrors: which records of an index satisfy a spec, as Spack 1.2 says."""

import gzip
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.filters import (
    BinaryFilter,
    ReadableRecords,
    parse_filter,
)
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.satisfying import SpecGraph
from tests import builds
from tests.examples import examples
from tests.indexes import edge, hash_of, index, node, old_node, record
from tests.paths import DATA
from tests.small_sources import hashes

OLD = old_node("old", "7", "lib")
"""A node from before Spack 1.0, which names one compiler."""

NODES: dict[str, dict[str, Any]] = {
    "app": node("app", edge("mid", "link"), edge("tool", "build"), version="2.1"),
    "mid": node("mid", edge("lib", "run", virtuals=("mpi",)), edge("tool", "build")),
    "lib": node("lib", edge("gcc", "build", virtuals=("c",)), version="1.4.2"),
    "tool": node("tool", edge("gcc", "build", virtuals=("c", "cxx"))),
    "gcc": node("gcc", version="13.2.0"),
    "gone": node("gone", {"name": "absent", "hash": "z" * 32, "parameters": {
        "deptypes": ["link"], "virtuals": ["blas"]}}),
    "old": OLD,
}  # fmt: skip


RECORDS = Installs(index(*map(record, NODES.values())))

COMPLETE_INDEX = index(
    *(record(NODES[name]) for name in ("app", "mid", "lib", "tool", "gcc"))
)
"""An index with a record of each dependency, compilers included."""
COMPLETE_RECORDS = Installs(COMPLETE_INDEX)


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        ((), (), ()),
        (("app", "lib"), (), ("mid", "tool", "gcc", "gone", "old")),
        ((), ("%gcc", "gone"), ("lib", "tool", "gone", "old")),
        (("%gcc",), ("^lib",), ("app", "mid", "gcc", "gone", "old")),
    ],
)
def test_what_is_left_out(
    include: tuple[str, ...], exclude: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """A binary stays if some spec of `include_binary` fits, or none is there, and none
    excludes.
    """
    chosen = BinaryFilter(parse_filter(include), parse_filter(exclude))

    assert chosen.left_out(RECORDS) == set(map(hash_of, left))


def test_a_version_of_a_virtual_package() -> None:
    """No index knows which version of a virtual package something provides."""
    for spec in ("^mpi@3", "mpi@3"):
        chosen = BinaryFilter(parse_filter([spec]))
        with pytest.raises(
            IndexFault, match="mpi@3 has a version of a virtual package"
        ):
            chosen.left_out(RECORDS)


ANSWERS: dict[str, list[tuple[str, list[int]]]] = json.loads(
    gzip.decompress((DATA / "satisfies_1.2.json.gz").read_bytes())
)["answers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_answers_are_those_of_spack(name: str) -> None:
    """Of two real indexes, one from before Spack 1.0, the binaries that Spack 1.2
    finds.
    """
    records = Installs(gzip.decompress((DATA / "indexes" / name).read_bytes()))
    readable = ReadableRecords(records)
    graph = SpecGraph(records, readable.node)
    binaries = sorted(key for key in records if records.entry(key).is_binary)
    wrong = []
    for text, places in ANSWERS[name]:
        (query,) = parse_filter([text])
        nodes = ((binary, readable.node(binary)) for binary in binaries)
        found = [each for each, node in nodes if node and graph.satisfies(node, query)]
        if found != [binaries[place] for place in places]:
            wrong.append(text)

    assert wrong == []


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """A database of the complete index."""

    def write(folder: Path) -> Path:
        (folder / "develop" / "e4s").mkdir(parents=True)
        (folder / "develop" / "e4s" / "index.json").write_bytes(COMPLETE_INDEX)
        return folder

    with builds.database_of(write) as conn:
        yield conn


PACKAGES = st.sampled_from([*NODES, "mpi", "c", "cxx", "blas", "absent", "clang"])
CONSTRAINTS = st.sampled_from(
    ["@1.0", "@1.4:", "@2", "target=x86_64_v3", "target=:x86_64", "os=debian12", "os=rhel8",
     "platform=linux", "namespace=builtin", "build_system=generic", "build_system==cmake",
     "cflags=-g", "/a", "+x"]
)  # fmt: skip
SIGILS = st.sampled_from(
    ["%", "^", "%[deptypes=build] ", "^[deptypes=link] ", "^[deptypes=run] ", "%c=",
     "^mpi=", "^[virtuals=c] ", "^[when='@1.0'] ", "^[when='%gcc'] "]
)  # fmt: skip


@st.composite
def specs(draw: st.DrawFn) -> str:
    """Draw a spec of a package, or of any, with at most two dependencies."""
    words = [draw(PACKAGES) if draw(st.booleans()) else "*"]
    words += draw(st.lists(CONSTRAINTS, max_size=1))
    for _ in range(draw(st.integers(0, 2))):
        words.append(draw(SIGILS) + draw(PACKAGES))
        words += draw(st.lists(CONSTRAINTS, max_size=1))
    return " ".join(words)


@settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=specs())
def test_a_filter_keeps_what_a_query_finds(
    text: str, database: sqlite3.Connection
) -> None:
    """The binaries that `include_binary` keeps are those that `find` finds in a
    database of the same index, if it has a record of each dependency.

    Of a dependency without a record, Spack compares what it knows; `find` finds only
    what is certain.
    """
    try:
        chosen = BinaryFilter(parse_filter([text]))
        kept = set(COMPLETE_RECORDS) - chosen.left_out(COMPLETE_RECORDS)
        found = hashes(database, text)
    except (IndexFault, QuerySyntaxError, UnsupportedQuery):
        assume(False)

    assert kept == found
