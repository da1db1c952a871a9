"""The page of one spec: its configuration, dependencies, releases and similar binaries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.comparison import differences
from spack_cache_db.query.configurations import (
    Listing,
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
from spack_cache_db.site.pages.configurations import MOST_NODES, ComparedSpec, compared_specs
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
    others: tuple[ComparedSpec, ...]
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
    (counted,) = configurations_by_id(lookups, [stored.configuration])
    configuration, listings = counted.configuration, listings_of(conn, dag_hash)
    releases = [listing.release for listing in listings if listing.kind != INSTALLED]
    chosen = release if release in releases else None
    same = specs_in_scope(conn, [stored.configuration], ()).get(stored.configuration, [])
    every_other = [other for other in same if other.id != stored.id]
    window = paginated(len(every_other), page, MOST_OTHERS)
    others = every_other[window.rows]
    recorded = recorded_specs(conn, [stored.id, *(other.id for other in others)])
    graph, trees, differing = read_needs(lookups, recorded, MOST_NODES), None, {}
    if stored.id in recorded:
        trees = read_trees(lookups, stored.id)
        differing = differences(lookups, graph, stored.id, recorded[1:])
    needing = read_nodes(conn, direct_dependents(conn, stored.id, MOST_DEPENDENTS + 1))
    return SpecPage(
        node=read_nodes(conn, [stored.id])[stored.id],
        configuration=configuration,
        spec=stored,
        listings=listings,
        otherwise=contradictions_of(conn, dag_hash),
        trees=trees,
        needed_by=tuple(needing.values()),
        other_count=len(every_other),
        others=compared_specs(lookups, others, differences=differing),
        window=window,
        release=chosen,
        installed=installations_of(conn, configuration.package, dag_hash),
        install=install_listed(
            conn, configuration.package, dag_hash, [chosen] if chosen else releases
        ),
    )


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
    """Dependencies of a spec: at run time, recursively, and direct ones only to build or test it.

    `node_count` is the number of specs in both; they are not whole beyond `MOST_ROWS`.
    """

    run_time: tuple[TreeRow, ...]
    build_only: tuple[TreeRow, ...]
    node_count: int
    is_whole: bool


def read_trees(lookups: Lookups, spec: int) -> Trees:
    """Return the dependencies of a spec that has an index record."""
    needs = read_needs(lookups, [spec], MOST_NODES)
    return trees_of(needs, read_nodes(lookups.conn, needs.edges), spec)


def trees_of(needs: Needs, nodes: Mapping[int, Node], root: int) -> Trees:
    """Return the dependencies of a spec; those of each spec are shown only once, depth first."""
    run_time: dict[int, list[Edge]] = {}
    build_only: list[Edge] = []
    for spec, edges in needs.edges.items():
        ordered = sorted(edges, key=lambda edge: nodes[edge.dependency].sort_key)
        run_time[spec] = [edge for edge in ordered if edge.is_run_time]
        if spec == root:
            build_only = [edge for edge in ordered if not edge.is_run_time]
    rows: list[TreeRow] = []
    seen: set[int] = set()
    is_whole = root not in needs.missing
    ahead = [(edge, 0) for edge in reversed(run_time[root])]
    while ahead:
        edge, depth = ahead.pop()
        # Direct dependencies are shown even beyond the limit.
        if depth and len(rows) >= MOST_ROWS:
            is_whole = False
            continue
        below, is_new = run_time.get(edge.dependency, []), edge.dependency not in seen
        seen.add(edge.dependency)
        has_more = bool(below) and is_new and len(rows) + 1 < MOST_ROWS
        is_whole = is_whole and (has_more or not (below and is_new))
        is_above = bool(below) and not is_new
        node = nodes[edge.dependency]
        rows.append(TreeRow(node, edge, depth, len(below), has_more, is_above))
        if has_more:
            ahead += [(edge, depth + 1) for edge in reversed(below)]
    seen.update(edge.dependency for edge in build_only)
    direct = (TreeRow(nodes[edge.dependency], edge) for edge in build_only)
    return Trees(tuple(rows), tuple(direct), len(seen), is_whole)
