"""query.stored.dependency_trees: a row for each dependency, below what needs it."""

import sqlite3
from itertools import pairwise
from string import ascii_lowercase

import pytest

from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.dependency_trees import TreeRow, trees_of
from spack_cache_db.query.stored.graph import (
    Edge,
    Needs,
    Node,
    read_needs,
    read_nodes,
)
from tests.graphs import dependencies, edges, installs, run_time


def graph_of(**needs: str) -> tuple[Needs, dict[int, Node], int]:
    """Return the graph of specs `a` to `z`, their nodes, and the id of `a`.

    `a="b c:build"` needs b, to link, and c, to build.
    """
    edges_of_spec: dict[int, list[Edge]] = {}
    nodes = {}
    for spec, name in enumerate(ascii_lowercase):
        nodes[spec] = Node(f"{name}-hash", name, "1.0", True, None)
        edges_of_spec[spec] = []
        for text in needs.get(name, "").split():
            other, _, types = text.partition(":")
            dependency = ascii_lowercase.index(other)
            edge = Edge(dependency, tuple((types or "link").split(",")), ())
            edges_of_spec[spec].append(edge)
    return Needs(edges_of_spec, frozenset()), nodes, 0


def drawn(rows: tuple[TreeRow, ...]) -> str:
    """Return rows as text: brackets where a level opens and closes, a caret for what is
    above.
    """
    text = ""
    depths = [row.depth for row in rows]
    for row, next_depth in zip(rows, [*depths[1:], 0], strict=False):
        text += row.node.package
        text += "^" if row.is_above else ""
        text += "(" if row.has_more else " "
        text += ")" * (row.depth - next_depth)
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

    assert drawn(deep.run_time) == "b(c(d ))f"
    assert deep.is_whole is False
    assert drawn(exact.run_time) == "b(c )f"
    assert exact.is_whole is True
    graph, nodes, root = graph_of(a="b")
    assert not trees_of(Needs(graph.edges, frozenset([root])), nodes, root, 3).is_whole


@pytest.mark.parametrize("dag_hash", sorted(installs())[::40])
def test_trees_have_all_that_is_needed(
    dag_hash: str, real_index: sqlite3.Connection
) -> None:
    """All that is needed is there, each level begins below its row, and rows are in
    order.
    """
    sql = "SELECT id FROM specs WHERE hash = ?"
    (spec,) = real_index.execute(sql, (dag_hash,)).fetchone()
    graph = read_needs(read_lookups(real_index), [spec], 10_000)
    found = trees_of(graph, read_nodes(real_index, graph.edges), spec, 10_000)
    rows = (*found.run_time, *found.build_only)

    assert {row.node.hash for row in rows} == dependencies(dag_hash)
    assert {row.node.hash for row in found.run_time} == run_time(dag_hash) - {dag_hash}
    assert found.node_count == len(dependencies(dag_hash))
    assert found.is_whole
    for row, following in pairwise(found.run_time):
        if row.has_more:
            assert following.depth == row.depth + 1
        else:
            assert following.depth <= row.depth
    direct = {row.node.hash for row in rows if row.depth == 0}
    assert direct == edges()[dag_hash].keys()
