"""query.dependencies.edges: what needs what, over edges of some types that provide something."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.dependencies.edges import Edges
from tests.indexes import edge, hash_of, index, node, record

GRAPH = index(
    record(node("top", edge("middle", "build"), edge("other", "link", "test"))),
    record(node("other", edge("middle", "run"), edge("low"))),
    record(node("middle", edge("low", "link", virtuals=("c", "mpi")), edge("tool", "build"))),
    record(node("low")),
    record(node("tool")),
)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the small graph."""
    (tmp_path / "index.json").write_bytes(GRAPH)
    build([str(tmp_path / "index.json")], tmp_path / "graph.db")
    connection = sqlite3.connect(tmp_path / "graph.db")
    yield connection
    connection.close()


def names(conn: sqlite3.Connection, ids: set[int]) -> set[str]:
    """Return the packages of some specs."""
    known = {hash_of(name): name for name in ("top", "other", "middle", "low", "tool")}
    return {known[row[1]] for row in conn.execute("SELECT id, hash FROM specs") if row[0] in ids}


def spec_id(conn: sqlite3.Connection, name: str) -> int:
    """Return the id of a spec."""
    return int(conn.execute("SELECT id FROM specs WHERE hash = ?", [hash_of(name)]).fetchone()[0])


@pytest.mark.parametrize(
    ("of", "types", "virtuals", "expected"),
    [
        ("low", ("link",), (), {"middle", "other"}),
        ("low", ("build",), (), {"other"}),
        ("low", ("link",), ("mpi",), {"middle"}),
        ("low", ("link",), ("mpi", "blas"), {"middle"}),
        ("low", ("link",), ("blas",), set()),
        (None, ("build",), (), {"top", "middle", "other"}),
        (None, ("build", "link"), ("c",), {"middle"}),
        ("top", ("link",), (), set()),
    ],
)
def test_what_needs_a_spec(
    graph: sqlite3.Connection,
    of: str | None,
    types: tuple[str, ...],
    virtuals: tuple[str, ...],
    expected: set[str],
) -> None:
    """An edge has one of the types, or none at all, and provides one of what is asked."""
    edges = Edges(graph)
    wanted = None if of is None else {spec_id(graph, of)}

    found = edges.needing(wanted, edges.of_any_type(types), frozenset(virtuals))

    assert names(graph, found) == expected
    for name in ("top", "other", "middle", "low"):
        one = {spec_id(graph, name)}
        among = edges.needing(wanted, edges.of_any_type(types), frozenset(virtuals), among=one)
        assert among == found & one


def test_all_types_at_once(graph: sqlite3.Connection) -> None:
    """An edge has all of the types; without any asked, every edge will do."""
    edges, other = Edges(graph), {spec_id(graph, "other")}

    assert names(graph, edges.needing(other, edges.of_all_types(("link", "test")))) == {"top"}
    assert edges.needing(other, edges.of_all_types(("link", "run"))) == set()
    assert names(graph, edges.needing(other, edges.of_all_types(()))) == {"top"}


@pytest.mark.parametrize(
    ("of", "types", "expected"),
    [
        ("tool", ("link", "run"), {"tool"}),
        ("tool", ("build",), {"tool", "middle", "top"}),
        ("low", ("link",), {"low", "middle", "other", "top"}),
        ("middle", ("link", "run"), {"middle", "other", "top"}),
        ("middle", ("test",), {"middle"}),
    ],
)
def test_all_that_needs_a_spec(
    graph: sqlite3.Connection, of: str, types: tuple[str, ...], expected: set[str]
) -> None:
    """Over any number of edges of these types; the spec itself is there."""
    edges = Edges(graph)

    found = edges.with_ancestors({spec_id(graph, of)}, edges.of_any_type(types))

    assert names(graph, found) == expected


def test_what_edges_provide(graph: sqlite3.Connection) -> None:
    """The virtual packages of all edges."""
    assert Edges(graph).virtuals == {"c", "mpi"}
