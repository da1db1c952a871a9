"""The dependencies of a spec, as a foldable tree for run time and a list for build time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.graph import Edge, Needs, Node

MOST_ROWS = 1_500
"""Limit of the dependencies on one page; the canned queries return all."""


class TreeRow(NamedTuple):
    """A dependency in the tree.

    Attributes:
        types: the dependency types, such as `link`.
        virtuals: the virtual packages that it provides to the spec above.
        needs: the number of its own run-time dependencies.
        has_more: whether these follow, one level deeper.
        is_above: whether these were shown at an earlier row of the same dependency.
        closes: the number of levels that end after this row.
    """

    node: Node
    types: tuple[str, ...]
    virtuals: tuple[str, ...]
    needs: int = 0
    has_more: bool = False
    is_above: bool = False
    closes: int = 0


@dataclass(frozen=True, slots=True)
class Trees:
    """The dependencies of a spec.

    Attributes:
        run_time: dependencies of the types link and run, recursively.
        build_only: direct dependencies only of the types build and test.
        node_count: the number of specs in both.
        is_whole: whether all are shown; False beyond `MOST_ROWS`.
    """

    run_time: tuple[TreeRow, ...]
    build_only: tuple[TreeRow, ...]
    node_count: int
    is_whole: bool


def trees(graph: Needs, nodes: Mapping[int, Node], root: int) -> Trees:
    """Return the dependencies of a spec.

    Args:
        graph: the spec and its dependencies, perhaps with other specs.
        nodes: the specs of the graph.
    """
    tree = _Tree(graph, nodes)
    edges = graph.edges[root]
    run_time = tree.rows(edge for edge in edges if edge.is_run_time)
    build_only = tree.direct_rows(edge for edge in edges if not edge.is_run_time)
    is_whole = tree.is_whole and root not in graph.missing
    return Trees(run_time, build_only, len(tree.shown), is_whole)


class _Tree:
    """Makes rows depth first; the dependencies of a spec are shown only once."""

    def __init__(self, graph: Needs, nodes: Mapping[int, Node]) -> None:
        self._graph = graph
        self._nodes = nodes
        self._left = MOST_ROWS
        self._below: dict[int, list[Edge]] = {}
        self.shown: set[int] = set()
        self.is_whole = True

    def rows(self, edges: Iterable[Edge]) -> tuple[TreeRow, ...]:
        """Return the rows of some edges, and of all edges below them."""
        rows: list[TreeRow] = []
        levels = [self._sorted(edges)]
        while levels:
            edge = next(levels[-1], None)
            # Direct dependencies are shown even beyond the limit.
            if edge is None or (self._left <= 0 and len(levels) > 1):
                self.is_whole = self.is_whole and edge is None
                levels.pop()
                if levels:
                    rows[-1] = rows[-1]._replace(closes=rows[-1].closes + 1)
                continue
            self._left -= 1
            below = self._run_time_edges(edge.dependency)
            is_new = edge.dependency not in self.shown
            self.shown.add(edge.dependency)
            has_more = bool(below) and is_new and self._left > 0
            self.is_whole = self.is_whole and (has_more or not (below and is_new))
            row = self._row(edge)
            is_above = bool(below) and not is_new
            rows.append(row._replace(needs=len(below), has_more=has_more, is_above=is_above))
            if has_more:
                levels.append(self._sorted(below))
        return tuple(rows)

    def direct_rows(self, edges: Iterable[Edge]) -> tuple[TreeRow, ...]:
        """Return the rows of some edges only."""
        rows = [*self._sorted(edges)]
        self.shown.update(edge.dependency for edge in rows)
        return tuple(map(self._row, rows))

    def _row(self, edge: Edge) -> TreeRow:
        return TreeRow(self._nodes[edge.dependency], edge.types, edge.virtuals)

    def _run_time_edges(self, spec: int) -> list[Edge]:
        """Return the run-time edges of a spec, read once: most specs occur several times."""
        if spec not in self._below:
            edges = self._graph.edges.get(spec, ())
            self._below[spec] = [edge for edge in edges if edge.is_run_time]
        return self._below[spec]

    def _sorted(self, edges: Iterable[Edge]) -> Iterator[Edge]:
        """Return edges by package and hash of the dependency."""
        return iter(sorted(edges, key=lambda edge: self._nodes[edge.dependency].sort_key))


def tree_rows(rows: Iterable[TreeRow], start: str) -> Markup:
    """Return the items of a tree's list, with nested lists.

    Args:
        start: the address of the folder that contains the pages of all specs.
    """
    # Every word is escaped; hashes and kinds are letters and digits.
    return Markup("".join(f"{_item(row, start)}{_END * row.closes}\n" for row in rows))


_END = "</ul></details></li>"


def _item(row: TreeRow, start: str) -> str:
    node, package = row.node, escape(row.node.package)
    use = ", ".join(row.types) + (f" for {', '.join(row.virtuals)}" if row.virtuals else "")
    kind = "" if node.is_binary else f' <span class="kind">{node.kind}</span>'
    item = (
        f'<li><a href="{start}{node.hash}">{package}@{escape(node.version)}</a>'
        f' <span class="quiet">{escape(use)}</span>{kind}'
    )
    anchor = f"d-{node.hash[:7]}"
    if row.has_more:
        hidden = f'<span class="visually-hidden"> of its own: {package}</span>'
        return f'{item}<details id="{anchor}"><summary>needs {row.needs}{hidden}</summary><ul>'
    if row.is_above:
        hidden = f'<span class="visually-hidden">: {package}</span>'
        item += f' <a class="above" href="#{anchor}">needs {row.needs}, as above{hidden}</a>'
    elif row.needs:
        item += f' <span class="quiet">needs {row.needs}, not shown</span>'
    return f"{item}</li>"
