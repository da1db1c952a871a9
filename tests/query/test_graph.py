"""What specs need, held against the index itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build import build
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.graph import Edge, Needs, Reach, read_needs, read_nodes
from tests.conftest import Build
from tests.graphs import installs, used
from tests.indexes import edge, hash_of, index, node, record

HASHES = sorted(installs())[::20]


def ids(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the ids of all specs by their hashes."""
    return dict(conn.execute("SELECT hash, id FROM specs"))


@pytest.mark.parametrize("dag_hash", HASHES)
def test_a_graph_is_what_is_needed(dag_hash: str, real_index: sqlite3.Connection) -> None:
    """Of the spec all edges, of what it needs those of run time, with types and virtuals."""
    numbers = ids(real_index)
    names = {number: each for each, number in numbers.items()}
    graph = read_needs(read_lookups(real_index), [numbers[dag_hash]], 10_000)

    assert {names[each] for each in graph.edges} == used(dag_hash)
    assert graph.missing == frozenset()
    for key, found in graph.edges.items():
        expected = {
            (each["hash"], tuple(sorted(how["deptypes"])), tuple(sorted(how["virtuals"])))
            for each in installs()[names[key]]["spec"].get("dependencies", [])
            for how in [each["parameters"]]
            if names[key] == dag_hash or {"link", "run"} & {*how["deptypes"]}
        }
        assert {(names[each.dependency], each.types, each.virtuals) for each in found} == expected


def test_what_is_too_much_is_not_read(real_index: sqlite3.Connection) -> None:
    """With little room the first has precedence, and no edge leads to what was not read."""
    numbers = ids(real_index)
    small, large = (
        numbers[how(installs(), key=lambda each: (len(used(each)), each))] for how in (min, max)
    )
    graph = read_needs(read_lookups(real_index), [small, large], 5)

    assert graph.missing == {large}
    assert {each.dependency for found in graph.edges.values() for each in found} <= {*graph.edges}
    assert read_needs(read_lookups(real_index), [large], 10_000).missing == frozenset()


def test_an_external_of_one_mirror_may_be_a_binary_of_another(tmp_path: Path) -> None:
    """A spec that some release lists is a binary, whatever another mirror calls it."""
    for name, external in (("e4s", None), ("hep", {"path": "/usr"})):
        gcc = node("gcc", external=external) if external else node("gcc")
        (tmp_path / "develop" / name).mkdir(parents=True)
        data = index(record(gcc, is_binary=not external), record(node(name)))
        (tmp_path / "develop" / name / "index.json").write_bytes(data)
    build(tmp_path, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        (gcc_node,) = read_nodes(conn, [ids(conn)[hash_of("gcc")]]).values()
    assert (gcc_node.kind, gcc_node.external) == ("binary", None)


def test_several_ways_to_need_one_thing_are_one_edge(built: Build) -> None:
    """Where an index has two edges between two specs, their types and virtuals are joined."""
    two = edge("lib", "build", virtuals=("x",)), edge("lib", "link", virtuals=("y",))
    conn = built(a=index(record(node("main", *two)), record(node("lib"))))
    main, lib = (ids(conn)[hash_of(each)] for each in ("main", "lib"))
    (found,) = read_needs(read_lookups(conn), [main], 10).edges[main]
    assert found == Edge(lib, ("build", "link"), ("x", "y")) and found.is_run_time


EDGES = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from(["build", "link", "run"])), max_size=4
)
GRAPHS = st.lists(EDGES, min_size=9, max_size=9)


@given(GRAPHS)
def test_reach_is_what_one_comes_to(edges_of: list[list[tuple[int, str]]]) -> None:
    """Sets of bits have what a search finds, where no edge leads back; and a cycle ends."""
    for is_free in (True, False):
        graph = Needs(
            {
                number: [Edge(to, (how,), ()) for to, how in found if to > number or not is_free]
                for number, found in enumerate(edges_of)
            },
            frozenset(),
        )
        reach = Reach(graph)
        for root in graph.edges:
            got, _ = reach.not_in_all([reach.run_time(root), 0])
            wider, _ = reach.not_in_all([reach.used(root), 0])
            assert root in got
            assert {*got} <= {*wider}
            if is_free:
                assert {*got} == _searched(graph, root)
                assert {*wider} == {root}.union(
                    *(_searched(graph, each.dependency) for each in graph.edges[root]),
                    _searched(graph, root),
                )


def _searched(graph: Needs, root: int) -> set[int]:
    found, ahead = {root}, [root]
    while ahead:
        new = {each.dependency for each in graph.edges[ahead.pop()] if each.is_run_time} - found
        found |= new
        ahead += new
    return found
