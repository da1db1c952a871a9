"""What a spec needs, laid out to be folded."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.graph import Edge, Needs, Node, read_needs, read_nodes
from spack_cache_db.site.pages import spec
from spack_cache_db.site.pages.spec import TreeRow, tree_rows, trees
from tests.graphs import dependencies, edges, installs, run_time
from tests.indexes import hash_of
from tests.site.cache import HOSTILE


def graph_of(**needs: str) -> tuple[Needs, dict[int, Node], int]:
    """Return the graph of specs `a` to `z`: `a="b c:build"` needs b, to link, and c, to build."""
    names = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    found = {
        names.index(name): [
            Edge(names.index(to), tuple((how or "link").split(",")), ())
            for to, _, how in (each.partition(":") for each in text.split())
        ]
        for name, text in needs.items()
    }
    nodes = {key: Node(f"{name}-hash", name, "1.0", True, None) for key, name in enumerate(names)}
    every: dict[int, list[Edge]] = {key: [] for key in range(len(names))}
    return Needs({**every, **found}, frozenset()), nodes, 0


def drawn(rows: tuple[TreeRow, ...]) -> str:
    """Return rows as text: brackets where a level opens and closes, a caret for what is above."""
    text = ""
    for row in rows:
        text += row.node.package + ("^" if row.is_above else "") + ("(" if row.has_more else " ")
        text += ")" * row.closes
    return text.strip()


def both(**needs: str) -> tuple[str, str]:
    """Return both trees of `a` as text."""
    found = trees(*graph_of(**needs))
    return drawn(found.run_time), drawn(found.build_only)


def test_what_is_shared_is_unfolded_once() -> None:
    """The first time with all below it, later with a word; a leaf is a leaf each time."""
    assert both(a="b c", b="d", c="d e", d="e") == ("b(d(e ))c(d^ e )", "")


def test_build_only_stands_apart() -> None:
    """What is used to build or to test alone is the second tree, without what that needs."""
    assert both(a="b c:build d:build,link e:test", b="f", c="b g:build f:run") == ("b(f )d", "c e")


def test_a_cycle_ends() -> None:
    """Spack has none, an index may say anything: what stands above is not unfolded again."""
    assert both(a="a b", b="a c:build") == ("a(a^ b(a^ ))b^", "")


def test_too_many_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the spec itself uses is shown, however much; what is below it is cut, and told."""
    monkeypatch.setattr(spec, "MOST_ROWS", 3)
    deep = trees(*graph_of(a="b f", b="c", c="d", d="e", f="g"))
    exact = trees(*graph_of(a="b f", b="c"))

    assert (drawn(deep.run_time), deep.is_whole) == ("b(c(d ))f", False)
    assert (drawn(exact.run_time), exact.is_whole) == ("b(c )f", True)


def test_what_was_not_read_is_told() -> None:
    """Where the graph does not have all that the spec needs, the tree is not whole."""
    graph, nodes, root = graph_of(a="b")

    assert trees(graph, nodes, root).is_whole
    assert not trees(Needs(graph.edges, frozenset([root])), nodes, root).is_whole


@pytest.mark.parametrize("dag_hash", sorted(installs())[::40])
def test_the_real_index(dag_hash: str, real_index: sqlite3.Connection) -> None:
    """All that is needed is there, each level that opens is closed, and rows are in order."""
    ids = dict(real_index.execute("SELECT hash, id FROM specs"))
    graph = read_needs(read_lookups(real_index), [ids[dag_hash]], 10_000)
    found = trees(graph, read_nodes(real_index, graph.edges), ids[dag_hash])
    rows = (*found.run_time, *found.build_only)

    assert {row.node.hash for row in rows} == dependencies(dag_hash)
    assert {row.node.hash for row in found.run_time} == run_time(dag_hash) - {dag_hash}
    assert found.node_count == len(dependencies(dag_hash))
    assert found.is_whole
    depth = 0
    levels: dict[str, list[int]] = {row.node.hash: [] for row in rows}
    for row in rows:
        levels[row.node.hash].append(depth)
        depth += row.has_more
        depth -= row.closes
        assert depth >= 0
    assert depth == 0
    direct = {each for each, at in levels.items() if 0 in at}
    assert direct == edges()[dag_hash].keys()


def row(name: str, *types: str, **more: object) -> TreeRow:
    """Return the row of a binary of this name; `more` replaces what is said of it."""
    node = Node(hash_of(name), name, "1.0", is_binary=True, external=None)
    plain = TreeRow(node, types, (), 0, has_more=False, is_above=False, closes=0)
    return plain._replace(**more)  # type: ignore[arg-type]


def test_words_are_text() -> None:
    """A name, a version, a type or a virtual package that is a script is shown, not run."""
    node = Node(hash_of("x"), HOSTILE, HOSTILE, is_binary=True, external=None)
    every = row("x", HOSTILE, node=node, virtuals=(HOSTILE,), needs=1)

    for each in (every, every._replace(has_more=True, closes=1), every._replace(is_above=True)):
        found = tree_rows([each], "/")
        assert "<script" not in found
        assert found.count("&lt;script&gt;") >= 4
