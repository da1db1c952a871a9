"""What specs need, held against the index itself."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.dependency_trees import TreeRow, trees_of
from spack_cache_db.query.stored.graph import (
    Edge,
    Needs,
    Node,
    read_needs,
    read_nodes,
)
from spack_cache_db.query.stored.reach import Reach
from tests.conftest import Build
from tests.graphs import dependencies, edges, installs, run_time, used
from tests.indexes import edge, hash_of, index, node, record

HASHES = sorted(installs())[::20]


def ids(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the ids of all specs by their hashes."""
    return dict(conn.execute("SELECT hash, id FROM specs"))


@pytest.mark.parametrize("dag_hash", HASHES)
def test_a_graph_is_what_is_needed(
    dag_hash: str, real_index: sqlite3.Connection
) -> None:
    """Of the spec all edges, of what it needs those of run time, with types and
    virtuals.
    """
    numbers = ids(real_index)
    names = {number: each for each, number in numbers.items()}
    graph = read_needs(read_lookups(real_index), [numbers[dag_hash]], 10_000)

    assert {names[each] for each in graph.edges} == used(dag_hash)
    assert graph.missing == frozenset()
    for key, found in graph.edges.items():
        expected = {
            (
                each["hash"],
                tuple(sorted(how["deptypes"])),
                tuple(sorted(how["virtuals"])),
            )
            for each in installs()[names[key]]["spec"].get("dependencies", [])
            for how in [each["parameters"]]
            if names[key] == dag_hash or {"link", "run"} & {*how["deptypes"]}
        }
        assert {
            (names[each.dependency], each.types, each.virtuals) for each in found
        } == expected


def test_what_is_too_much_is_not_read(real_index: sqlite3.Connection) -> None:
    """With little room the first has precedence, and no edge leads to what was not
    read.
    """
    numbers = ids(real_index)
    small, large = (
        numbers[how(installs(), key=lambda each: (len(used(each)), each))]
        for how in (min, max)
    )
    graph = read_needs(read_lookups(real_index), [small, large], 5)

    assert graph.missing == {large}
    assert {each.dependency for found in graph.edges.values() for each in found} <= {
        *graph.edges
    }
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
    """Where an index has two edges between two specs, their types and virtuals are
    joined.
    """
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
    """Sets of bits have what a search finds, where no edge leads back; and a cycle
    ends.
    """
    for is_free in (True, False):
        graph = Needs(
            {
                number: [
                    Edge(to, (how,), ())
                    for to, how in found
                    if to > number or not is_free
                ]
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
        new = {
            each.dependency for each in graph.edges[ahead.pop()] if each.is_run_time
        } - found
        found |= new
        ahead += new
    return found


def graph_of(**needs: str) -> tuple[Needs, dict[int, Node], int]:
    """Return the graph of specs `a` to `z`: `a="b c:build"` needs b, to link, and c, to
    build.
    """
    names = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    found = {
        names.index(name): [
            Edge(names.index(to), tuple((how or "link").split(",")), ())
            for to, _, how in (each.partition(":") for each in text.split())
        ]
        for name, text in needs.items()
    }
    nodes = {
        key: Node(f"{name}-hash", name, "1.0", True, None)
        for key, name in enumerate(names)
    }
    every: dict[int, list[Edge]] = {key: [] for key in range(len(names))}
    return Needs({**every, **found}, frozenset()), nodes, 0


def drawn(rows: tuple[TreeRow, ...]) -> str:
    """Return rows as text: brackets where a level opens and closes, a caret for what is
    above.
    """
    text = ""
    for row, following in zip(
        rows, [*(row.depth for row in rows[1:]), 0], strict=False
    ):
        text += (
            row.node.package
            + ("^" if row.is_above else "")
            + ("(" if row.has_more else " ")
        )
        text += ")" * (row.depth - following)
    return text.strip()


def both(**needs: str) -> tuple[str, str]:
    """Return both trees of `a` as text."""
    found = trees_of(*graph_of(**needs), 1_500)
    return drawn(found.run_time), drawn(found.build_only)


def test_what_is_shared_is_unfolded_once() -> None:
    """The first time with all below it, later with a word; a leaf is a leaf each
    time.
    """
    assert both(a="b c", b="d", c="d e", d="e") == ("b(d(e ))c(d^ e )", "")

    # What is used to build or to test alone is the second tree, without what that
    # needs.
    assert both(a="b c:build d:build,link e:test", b="f", c="b g:build f:run") == (
        "b(f )d",
        "c e",
    )

    # A cycle ends: Spack has none, but an index may have any.
    assert both(a="a b", b="a c:build") == ("a(a^ b(a^ ))b^", "")


def test_too_many_are_cut() -> None:
    """All direct dependencies are shown; the limit cuts deeper ones, and `is_whole` is
    false.
    """
    deep = trees_of(*graph_of(a="b f", b="c", c="d", d="e", f="g"), 3)
    exact = trees_of(*graph_of(a="b f", b="c"), 3)

    assert (drawn(deep.run_time), deep.is_whole) == ("b(c(d ))f", False)
    assert (drawn(exact.run_time), exact.is_whole) == ("b(c )f", True)
    graph, nodes, root = graph_of(a="b")
    assert not trees_of(Needs(graph.edges, frozenset([root])), nodes, root, 3).is_whole


@pytest.mark.parametrize("dag_hash", sorted(installs())[::40])
def test_trees_have_all_that_is_needed(
    dag_hash: str, real_index: sqlite3.Connection
) -> None:
    """All that is needed is there, each level begins below its row, and rows are in
    order.
    """
    spec = ids(real_index)[dag_hash]
    graph = read_needs(read_lookups(real_index), [spec], 10_000)
    found = trees_of(graph, read_nodes(real_index, graph.edges), spec, 10_000)
    rows = (*found.run_time, *found.build_only)

    assert {row.node.hash for row in rows} == dependencies(dag_hash)
    assert {row.node.hash for row in found.run_time} == run_time(dag_hash) - {dag_hash}
    assert found.node_count == len(dependencies(dag_hash))
    assert found.is_whole
    for row, following in pairwise(found.run_time):
        assert (
            following.depth == row.depth + 1
            if row.has_more
            else following.depth <= row.depth
        )
    direct = {row.node.hash for row in rows if row.depth == 0}
    assert direct == edges()[dag_hash].keys()
