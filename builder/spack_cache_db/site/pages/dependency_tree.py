"""The dependencies of a spec as a tree to be folded: what it needs to run, and what to be built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.graph import Edge, Needs, Node

MOST_ROWS = 1_500
"""So many dependencies stand on one page; the canned queries give all."""


class TreeRow(NamedTuple):
    """One dependency in the tree; the rows stand in the order in which they are shown.

    Attributes:
        types: how it is used.
        virtuals: for which virtual packages.
        needs: how many dependencies of its own it needs to run.
        has_more: whether these follow, one level deeper.
        is_above: whether they stand where the dependency was shown before.
        closes: so many levels end after this row.
    """

    node: Node
    types: tuple[str, ...]
    virtuals: tuple[str, ...]
    needs: int
    has_more: bool
    is_above: bool
    closes: int


@dataclass(frozen=True, slots=True)
class Trees:
    """What a spec needs.

    Attributes:
        run_time: what is linked or run, with what that links or runs.
        build_only: what is used to build or to test alone, without what that links or runs.
        node_count: how many specs there are in both.
        is_whole: whether none is left out, because they are too many.
    """

    run_time: tuple[TreeRow, ...]
    build_only: tuple[TreeRow, ...]
    node_count: int
    is_whole: bool


def trees(graph: Needs, nodes: Mapping[int, Node], root: int) -> Trees:
    """Return the trees of a spec.

    Args:
        graph: it and what it needs; other specs may be there.
        nodes: what these are.
    """
    tree = _Tree(graph, nodes)
    run_time = tree.rows(each for each in graph.edges[root] if each.is_run_time)
    build_only = tree.direct_rows(each for each in graph.edges[root] if not each.is_run_time)
    is_whole = tree.is_whole and root not in graph.missing
    return Trees(run_time, build_only, len(tree.shown), is_whole)


class _Tree:
    """Lays edges out, depth first; a spec that was shown is not unfolded again."""

    def __init__(self, graph: Needs, nodes: Mapping[int, Node]) -> None:
        self._graph = graph
        self._nodes = nodes
        self._left = MOST_ROWS
        self._below: dict[int, list[Edge]] = {}
        self.shown: set[int] = set()
        self.is_whole = True

    def rows(self, edges: Iterable[Edge]) -> tuple[TreeRow, ...]:
        """Return the rows of some edges, and of all below them."""
        found: list[TreeRow] = []
        # Of each level the edges that are still to come.
        levels = [self._sorted(edges)]
        while levels:
            edge = next(levels[-1], None)
            # Where there are too many, what the spec itself uses is shown nevertheless.
            if edge is None or (self._left <= 0 and len(levels) > 1):
                self.is_whole = self.is_whole and edge is None
                levels.pop()
                if levels:
                    found[-1] = found[-1]._replace(closes=found[-1].closes + 1)
                continue
            self._left -= 1
            below = self._needs(edge.dependency)
            is_new = edge.dependency not in self.shown
            self.shown.add(edge.dependency)
            has_more = bool(below) and is_new and self._left > 0
            self.is_whole = self.is_whole and (has_more or not (below and is_new))
            node = self._nodes[edge.dependency]
            is_above = bool(below) and not is_new
            found.append(
                TreeRow(node, edge.types, edge.virtuals, len(below), has_more, is_above, 0)
            )
            if has_more:
                levels.append(self._sorted(below))
        return tuple(found)

    def direct_rows(self, edges: Iterable[Edge]) -> tuple[TreeRow, ...]:
        """Return the rows of some edges, without those below."""
        used = [*self._sorted(edges)]
        self.shown.update(edge.dependency for edge in used)
        return tuple(
            TreeRow(self._nodes[edge.dependency], edge.types, edge.virtuals, 0, False, False, 0)
            for edge in used
        )

    def _needs(self, spec: int) -> list[Edge]:
        """Return the edges of a spec's own run time; most specs stand in several places."""
        if spec not in self._below:
            edges = self._graph.edges.get(spec, ())
            self._below[spec] = [each for each in edges if each.is_run_time]
        return self._below[spec]

    def _sorted(self, edges: Iterable[Edge]) -> Iterator[Edge]:
        """Return edges by package and hash of what they lead to."""
        return iter(sorted(edges, key=lambda each: self._nodes[each.dependency].place))


SHOWN_OF_HASH = 7


def tree_rows(rows: Iterable[TreeRow], start: str) -> Markup:
    """Return the items of a tree's list, with the lists of those that are unfolded in them.

    Args:
        rows: what the tree shows, in order.
        start: the address below which each spec has a page.
    """
    # Every word is escaped; hashes and kinds are letters and digits.
    return Markup("".join(f"{_item(row, start)}{_END * row.closes}\n" for row in rows))


_END = "</ul></details></li>"


def _item(row: TreeRow, start: str) -> str:
    node, package = row.node, escape(row.node.package)
    how = ", ".join(row.types) + (f" for {', '.join(row.virtuals)}" if row.virtuals else "")
    kind = "" if node.is_binary else f' <span class="kind">{node.kind}</span>'
    item = (
        f'<li><a href="{start}{node.hash}">{package}@{escape(node.version)}</a>'
        f' <span class="quiet">{escape(how)}</span>{kind}'
    )
    place = f"d-{node.hash[:SHOWN_OF_HASH]}"
    if row.has_more:
        own = f'<span class="visually-hidden"> of its own: {package}</span>'
        return f'{item}<details id="{place}"><summary>needs {row.needs}{own}</summary><ul>'
    if row.is_above:
        of = f'<span class="visually-hidden">: {package}</span>'
        item += f' <a class="above" href="#{place}">needs {row.needs}, as above{of}</a>'
    elif row.needs:
        item += f' <span class="quiet">needs {row.needs}, not shown</span>'
    return f"{item}</li>"
