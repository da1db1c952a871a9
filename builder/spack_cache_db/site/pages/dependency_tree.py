"""The dependencies of a spec, as a foldable tree for run time and a list for build time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.graph import Edge, Needs, Node

MOST_ROWS = 1_500
"""Limit of the dependencies on one page; the canned queries return all."""


class TreeRow(NamedTuple):
    """A dependency in the tree.

    Attributes:
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


class Trees(NamedTuple):
    """Dependencies of a spec: at run time, recursively, and direct ones only to build or test it.

    `node_count` is the number of specs in both; they are not whole beyond `MOST_ROWS`.
    """

    run_time: tuple[TreeRow, ...]
    build_only: tuple[TreeRow, ...]
    node_count: int
    is_whole: bool


def trees(graph: Needs, nodes: Mapping[int, Node], root: int) -> Trees:
    """Return the dependencies of a spec; those of each spec are shown only once, depth first."""
    # Read once: most specs occur several times.
    below = {
        spec: [edge for edge in edges if edge.is_run_time] for spec, edges in graph.edges.items()
    }
    shown: set[int] = set()
    left, is_whole = MOST_ROWS, root not in graph.missing

    def ordered(edges: Iterable[Edge]) -> Iterator[Edge]:
        return iter(sorted(edges, key=lambda edge: nodes[edge.dependency].sort_key))

    rows: list[TreeRow] = []
    levels = [ordered(below[root])]
    while levels:
        edge = next(levels[-1], None)
        # Direct dependencies are shown even beyond the limit.
        if edge is None or (left <= 0 and len(levels) > 1):
            is_whole = is_whole and edge is None
            levels.pop()
            if levels:
                rows[-1] = rows[-1]._replace(closes=rows[-1].closes + 1)
            continue
        left -= 1
        needs, is_new = below.get(edge.dependency, []), edge.dependency not in shown
        shown.add(edge.dependency)
        has_more = bool(needs) and is_new and left > 0
        is_whole = is_whole and (has_more or not (needs and is_new))
        is_above = bool(needs) and not is_new
        node = nodes[edge.dependency]
        rows.append(TreeRow(node, edge.types, edge.virtuals, len(needs), has_more, is_above))
        if has_more:
            levels.append(ordered(needs))
    build_only = [*ordered(edge for edge in graph.edges[root] if not edge.is_run_time)]
    shown.update(edge.dependency for edge in build_only)
    direct = (TreeRow(nodes[edge.dependency], edge.types, edge.virtuals) for edge in build_only)
    return Trees(tuple(rows), tuple(direct), len(shown), is_whole)


def tree_rows(rows: Iterable[TreeRow], start: str) -> Markup:
    """Return the items of a tree's list, with nested lists; faster than a template.

    `start` is the address of the folder that contains the pages of all specs.
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
