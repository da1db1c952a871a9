"""The dependencies of a spec as trees: a row for each, below the one that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from spack_cache_db.query.stored.graph import Edge, Needs, Node


class TreeRow(NamedTuple):
    """A dependency in the tree, which `edge` leads to; the depth of a direct one is 0.

    Attributes:
        needs: the number of its own run-time dependencies.
        has_more: whether these follow, one level deeper.
        is_above: whether these were shown at an earlier row of the same dependency.
    """

    node: Node
    edge: Edge
    depth: int = 0
    needs: int = 0
    has_more: bool = False
    is_above: bool = False


class Trees(NamedTuple):
    """Dependencies of a spec: at run time, recursively, and direct ones only to build
    or test it.

    `node_count` is the number of specs in both; they are not whole beyond a limit.
    """

    run_time: tuple[TreeRow, ...]
    build_only: tuple[TreeRow, ...]
    node_count: int
    is_whole: bool


def trees_of(needs: Needs, nodes: Mapping[int, Node], root: int, most: int) -> Trees:
    """Return the dependencies of a spec; those of each spec are shown only once, depth
    first.

    `most` limits the rows, but direct dependencies are shown even beyond it.
    """

    # Most specs occur several times.
    @cache
    def edges_of(spec: int, *, is_run_time: bool = True) -> list[Edge]:
        edges = [
            edge
            for edge in needs.edges.get(spec, ())
            if edge.is_run_time == is_run_time
        ]
        edges.sort(key=lambda edge: nodes[edge.dependency].sort_key)
        return edges

    rows: list[TreeRow] = []
    seen: set[int] = set()
    is_whole = root not in needs.missing
    # A stack of edges and their depths: the last one is shown next.
    ahead = [(edge, 0) for edge in reversed(edges_of(root))]
    while ahead:
        edge, depth = ahead.pop()
        if depth > 0 and len(rows) >= most:
            is_whole = False
            continue
        # Its own dependencies follow at its first row, if there is space for them.
        below = edges_of(edge.dependency)
        is_above = bool(below) and edge.dependency in seen
        is_first = bool(below) and edge.dependency not in seen
        has_more = is_first and len(rows) + 1 < most
        if is_first and not has_more:
            is_whole = False
        seen.add(edge.dependency)
        node = nodes[edge.dependency]
        rows.append(TreeRow(node, edge, depth, len(below), has_more, is_above))
        if has_more:
            ahead += [(lower_edge, depth + 1) for lower_edge in reversed(below)]

    build_only = []
    for edge in edges_of(root, is_run_time=False):
        seen.add(edge.dependency)
        build_only.append(TreeRow(nodes[edge.dependency], edge))
    return Trees(tuple(rows), tuple(build_only), len(seen), is_whole)
