"""The page of one spec: its configuration, dependencies, releases and similar binaries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.comparison import differences
from spack_cache_db.query.configurations import (
    Listing,
    Spec,
    StoredSpec,
    configurations_by_id,
    contradictions_of,
    listings_of,
    specs_in_scope,
    stored_spec,
)
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.graph import (
    Edge,
    Needs,
    Node,
    direct_dependents,
    read_needs,
    read_nodes,
    recorded_specs,
)
from spack_cache_db.query.installation import Commands, install_listed, installations_of
from spack_cache_db.records import INSTALLED, Configuration
from spack_cache_db.site.pages.configurations import MOST_NODES, LookAlike, look_alikes
from spack_cache_db.site.pages.filters import Pagination, paginated
from spack_cache_db.spack.normal_forms import NO_COMPILER

MOST_OTHERS = 100
"""Other specs of the configuration on one page."""
MOST_ROWS = 1_500
"""Limit of the dependencies on one page; the canned queries return all."""
MOST_CANDIDATES = 50
MOST_DEPENDENTS = 50
"""Dependents on the page of a spec."""

_PREFIX = re.compile(r"[a-z2-7]{7,32}")


@dataclass(frozen=True, slots=True)
class SpecPage:
    """The content of the page of a spec.

    Attributes:
        otherwise: paths of pages and indexes that contradict the stored data, and their messages.
        trees: dependencies; None without a record in an index.
        needed_by: the first direct dependents, at most one more than `MOST_DEPENDENTS`.
        others: specs of the same configuration, current ones first.
        release: the release that the reader chose, if it lists the spec.
    """

    node: Node
    configuration: Configuration
    spec: StoredSpec
    listings: tuple[Listing, ...]
    otherwise: tuple[tuple[str, str], ...]
    trees: Trees | None
    needed_by: tuple[Node, ...]
    other_count: int
    others: tuple[LookAlike, ...]
    window: Pagination
    release: str | None
    installed: tuple[Commands, ...]
    install: Commands | None

    @property
    def line(self) -> str:
        """The configuration as a spec on one line."""
        return spec_line(self.configuration)

    @property
    def entry(self) -> str:
        """The configuration as an entry of a spack.yaml."""
        return f"- {json.dumps(self.line)}"


def spec_line(configuration: Configuration) -> str:
    """Return a configuration as a spec on one line, which `find` and Spack read."""
    # A version such as `git.main=1.4` is exact already.
    exact = "" if "=" in configuration.version else "="
    words = [f"{configuration.package}@{exact}{configuration.version}", *configuration.variants]
    words += [f"{name}={getattr(configuration, name)}" for name in ("platform", "os", "target")]
    if configuration.compiler != NO_COMPILER:
        words.append(f"%{configuration.compiler.replace('@', '@=')}")
    return " ".join(words)


def is_hash_prefix(text: str) -> bool:
    """Return whether a text can be a hash or the start of one."""
    return _PREFIX.fullmatch(text) is not None


def load_spec(
    lookups: Lookups, dag_hash: str, page: int = 1, release: str | None = None
) -> SpecPage | None:
    """Return the page of the spec with this full hash; None if there is none.

    `page` counts pages of other specs. The commands install from `release`, if that lists the spec.
    """
    conn, stored = lookups.conn, stored_spec(lookups.conn, dag_hash)
    if stored is None:
        return None
    spec, key = stored.id, stored.configuration
    (counted,) = configurations_by_id(lookups, [key])
    configuration, listings = counted.configuration, listings_of(conn, dag_hash)
    releases = [listing.release for listing in listings if listing.kind != INSTALLED]
    chosen = release if release in releases else None
    # Current ones come first.
    same = specs_in_scope(conn, [key], ()).get(key, [])
    every_other = [other for other in same if other.id != spec]
    window = paginated(len(every_other), page, MOST_OTHERS)
    others = every_other[window.rows]
    roots = recorded_specs(conn, [spec, *(other.id for other in others)])
    graph = read_needs(lookups, roots, MOST_NODES)
    needing = read_nodes(conn, direct_dependents(conn, spec, MOST_DEPENDENTS + 1))
    return SpecPage(
        node=read_nodes(conn, [spec])[spec],
        configuration=configuration,
        spec=stored,
        listings=listings,
        otherwise=contradictions_of(conn, dag_hash),
        trees=_trees(lookups, graph, spec) if spec in graph.edges else None,
        needed_by=tuple(needing.values()),
        other_count=len(every_other),
        others=_compared(lookups, graph, spec, others),
        window=window,
        release=chosen,
        installed=installations_of(conn, configuration.package, dag_hash),
        install=install_listed(
            conn, configuration.package, dag_hash, [chosen] if chosen else releases
        ),
    )


def _compared(
    lookups: Lookups, graph: Needs, spec: int, others: Sequence[Spec]
) -> tuple[LookAlike, ...]:
    """Return other specs with their differences from a spec, if the graph has both."""
    ids = [other.id for other in others if other.id in graph.edges] if spec in graph.edges else []
    differences_by_id = differences(lookups, graph, spec, ids)
    binaries = look_alikes(lookups, others, {})
    return tuple(
        replace(binary, differences=differences_by_id.get(other.id))
        for other, binary in zip(others, binaries, strict=True)
    )


def _trees(lookups: Lookups, graph: Needs, spec: int) -> Trees:
    """Return the dependency trees of a spec; only names of its dependencies are read."""
    needed, ahead = {spec}, [spec]
    while ahead:
        new = {edge.dependency for edge in graph.edges.get(ahead.pop(), ())} - needed
        needed |= new
        ahead += new
    return trees(graph, read_nodes(lookups.conn, needed), spec)


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
    seen: set[int] = set()
    budget, is_whole = MOST_ROWS, root not in graph.missing

    def ordered(edges: Iterable[Edge]) -> Iterator[Edge]:
        return iter(sorted(edges, key=lambda edge: nodes[edge.dependency].sort_key))

    rows: list[TreeRow] = []
    levels = [ordered(below[root])]
    while levels:
        edge = next(levels[-1], None)
        # Direct dependencies are shown even beyond the limit.
        if edge is None or (budget <= 0 and len(levels) > 1):
            is_whole = is_whole and edge is None
            levels.pop()
            if levels:
                rows[-1] = rows[-1]._replace(closes=rows[-1].closes + 1)
            continue
        budget -= 1
        needs, is_new = below.get(edge.dependency, []), edge.dependency not in seen
        seen.add(edge.dependency)
        has_more = bool(needs) and is_new and budget > 0
        is_whole = is_whole and (has_more or not (needs and is_new))
        is_above = bool(needs) and not is_new
        node = nodes[edge.dependency]
        rows.append(TreeRow(node, edge.types, edge.virtuals, len(needs), has_more, is_above))
        if has_more:
            levels.append(ordered(needs))
    build_only = [*ordered(edge for edge in graph.edges[root] if not edge.is_run_time)]
    seen.update(edge.dependency for edge in build_only)
    direct = (TreeRow(nodes[edge.dependency], edge.types, edge.virtuals) for edge in build_only)
    return Trees(tuple(rows), tuple(direct), len(seen), is_whole)


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
