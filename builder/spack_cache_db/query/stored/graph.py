"""Reads the dependencies of specs: direct ones of all types, and run-time ones at any
depth.

Build dependencies of a dependency are not followed. Only indexes have dependency data.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from itertools import chain, islice
from operator import and_, or_
from typing import NamedTuple

from spack_cache_db.database_file import stored_json
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_ids, select_in
from spack_cache_db.spack.facts import RUN_TIME

EDGES = """
SELECT dependencies.spec, dependency, types, virtuals FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec = wanted.value
WHERE 1"""
TYPED = "\n  AND types IN (SELECT value FROM json_each(:types))"
NODES = """
SELECT specs.id, specs.hash, packages.name, versions.name, specs.is_binary, specs.is_gone,
  CASE WHEN specs.is_external AND NOT specs.is_binary THEN (
    SELECT max(nodes.external) FROM records JOIN nodes ON nodes.id = records.node
    WHERE records.spec = specs.id) END
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
JOIN configurations ON configurations.id = specs.configuration
LEFT JOIN packages ON packages.id = configurations.package
LEFT JOIN versions ON versions.id = configurations.version
"""
DEPENDENT_PACKAGES = """
SELECT DISTINCT packages.name FROM (
  SELECT dependents.configuration FROM configurations
  CROSS JOIN specs ON specs.configuration = configurations.id
  CROSS JOIN dependencies ON dependencies.dependency = specs.id
  CROSS JOIN specs AS dependents ON dependents.id = dependencies.spec
  WHERE configurations.package = :package LIMIT :limit) AS needing
JOIN configurations ON configurations.id = needing.configuration
JOIN packages ON packages.id = configurations.package
WHERE packages.id != :package ORDER BY packages.name
"""
MOST_EDGES = 20_000
MAX_CACHED_SPECS = 20_000
"""Maximum of specs whose edges a process caches: some 8 MB."""
NEEDING = (
    """
SELECT dependencies.spec FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency = wanted.value
WHERE 1"""
    + TYPED
)
NEEDING_ANY = "SELECT spec FROM dependencies WHERE 1" + TYPED
PROVIDING = "\n  AND virtuals IN (SELECT value FROM json_each(:virtuals))"
EXTERNALS = "SELECT id FROM specs WHERE is_external AND NOT is_binary"
KNOWN_AS_DEPENDENCY = "known as a dependency"
"""The kind of a spec that has an index record, but is in no release."""


class Edge(NamedTuple):
    """A dependency with its types and virtual packages, both sorted."""

    dependency: int
    types: tuple[str, ...]
    virtuals: tuple[str, ...]

    @property
    def is_run_time(self) -> bool:
        """Whether the dependency is linked or run, not only used to build or test."""
        return not RUN_TIME.isdisjoint(self.types)


class Node(NamedTuple):
    """A spec in the graph.

    Attributes:
        is_binary: whether a release lists it, now or earlier.
        external: the path or modules of an external.
        is_gone: whether its mirror has lost it.
    """

    hash: str
    package: str
    version: str
    is_binary: bool
    external: str | None
    is_gone: bool = False

    @property
    def sort_key(self) -> tuple[str, str]:
        """The package and the hash."""
        return self.package, self.hash

    @property
    def kind(self) -> str:
        """The kind: `binary`, `gone`, `external` or `KNOWN_AS_DEPENDENCY`."""
        if self.is_gone:
            return "gone"
        if self.is_binary:
            return "binary"
        return KNOWN_AS_DEPENDENCY if self.external is None else "external"


@dataclass(frozen=True)
class Needs:
    """The graph of root specs and their dependencies.

    `edges` has all edges of a root and the run-time edges of other specs; `missing` are
    the roots whose dependencies exceeded the limit.
    """

    edges: dict[int, list[Edge]]
    missing: frozenset[int]


def externals(lookups: Lookups) -> frozenset[int]:
    """Return the specs that the system provides, which are not binaries."""
    return lookups.once(EXTERNALS, lambda: select_ids(lookups.conn, EXTERNALS))


def recorded_specs(conn: sqlite3.Connection, specs: Iterable[int]) -> list[int]:
    """Return the specs that have an index record, in order."""
    specs = [*specs]
    sql = "SELECT DISTINCT spec FROM records WHERE spec IN (SELECT value FROM json_each(:ids))"
    recorded = select_ids(conn, sql, specs)
    return [spec for spec in specs if spec in recorded]


def read_needs(lookups: Lookups, roots: Iterable[int], limit: int) -> Needs:
    """Return the graph of root specs, given their ids, with at most `limit` specs.

    The first roots have precedence; the others are `missing` if they need more.
    """
    dependencies = _cached_dependencies(lookups)
    edges_of_spec: dict[int, list[Edge]] = {}
    missing, ends = list[int](), set[int]()
    for root, edges in dependencies.edges([*roots]).items():
        before = len(edges_of_spec)
        edges_of_spec[root] = edges
        ahead = {edge.dependency for edge in edges} - edges_of_spec.keys()
        if not dependencies.follow(edges_of_spec, ahead, limit):
            missing.append(root)
            ends.update((root,), islice(edges_of_spec, before, None))
    # Only specs of missing roots may have edges to specs that were not read.
    for spec in ends:
        edges = edges_of_spec[spec]
        edges_of_spec[spec] = [
            edge for edge in edges if edge.dependency in edges_of_spec
        ]
    return Needs(edges_of_spec, frozenset(missing))


def _cached_dependencies(lookups: Lookups) -> Dependencies:
    return lookups.once(Dependencies, lambda: Dependencies(lookups.conn))


def read_run_time(lookups: Lookups, roots: Iterable[int]) -> Needs:
    """Return the graph of specs and their run-time dependencies, given the ids of the
    specs.
    """
    edges: dict[int, list[Edge]] = {}
    _cached_dependencies(lookups).follow(edges, {*roots})
    return Needs(edges, frozenset())


def read_dependencies(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct and run-time dependencies of a spec, with the edges of direct
    ones.
    """
    dependencies, run_time = Dependencies(conn), dict[int, list[Edge]]()
    dependencies.follow(run_time, {spec})
    direct = {edge.dependency: edge for edge in dependencies.edges([spec])[spec]}
    return {other: direct.get(other) for other in (*run_time, *direct) if other != spec}


def read_dependents(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct and run-time dependents of a spec, with the edges of direct
    ones.
    """
    dependencies, direct = Dependencies(conn), dict[int, Edge]()
    sql = "SELECT spec, types, virtuals FROM dependencies WHERE dependency = :spec"
    for other, types, virtuals in select(conn, sql, spec=spec):
        direct[other] = dependencies.edge(spec, types, virtuals, direct.get(other))
    needing = dependencies.with_ancestors({spec}, dependencies.run_time_types)
    return {
        other: direct.get(other) for other in needing.union(direct) if other != spec
    }


def direct_dependents(conn: sqlite3.Connection, spec: int, limit: int) -> list[int]:
    """Return the ids of at most `limit` direct dependents of a spec, in order."""
    sql = "SELECT DISTINCT spec FROM dependencies WHERE dependency = :spec ORDER BY 1 LIMIT :limit"
    return [row[0] for row in select(conn, sql, spec=spec, limit=limit)]


def dependent_packages(conn: sqlite3.Connection, package: int) -> list[str]:
    """Return the packages of direct dependents of a package, from `MOST_EDGES` edges,
    sorted.
    """
    rows = select(conn, DEPENDENT_PACKAGES, package=package, limit=MOST_EDGES)
    return [row[0] for row in rows]


def read_nodes(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Node]:
    """Return the nodes of specs, by their ids."""
    return {
        key: Node(
            dag_hash,
            package,
            version,
            bool(is_binary),
            _external(external),
            bool(is_gone),
        )
        for key, dag_hash, package, version, is_binary, is_gone, external in select_in(
            conn, NODES, ids
        )
    }


def _external(external: str | None) -> str | None:
    """Return the path or the modules of an external."""
    if external is None:
        return None
    values = stored_json(external)
    module = values.get("module") or ()
    return str(
        values.get("path") or " ".join([module] if isinstance(module, str) else module)
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
        edges = (
            edge
            for edge in needs.edges.get(spec, ())
            if edge.is_run_time == is_run_time
        )
        return sorted(edges, key=lambda edge: nodes[edge.dependency].sort_key)

    rows: list[TreeRow] = []
    seen: set[int] = set()
    is_whole, ahead = (
        root not in needs.missing,
        [(edge, 0) for edge in reversed(edges_of(root))],
    )
    while ahead:
        edge, depth = ahead.pop()
        if depth and len(rows) >= most:
            is_whole = False
            continue
        below, is_new = edges_of(edge.dependency), edge.dependency not in seen
        seen.add(edge.dependency)
        has_more = bool(below) and is_new and len(rows) + 1 < most
        is_whole = is_whole and (has_more or not (below and is_new))
        is_above = bool(below) and not is_new
        node = nodes[edge.dependency]
        rows.append(TreeRow(node, edge, depth, len(below), has_more, is_above))
        if has_more:
            ahead += [(edge, depth + 1) for edge in reversed(below)]
    build_only = edges_of(root, is_run_time=False)
    seen.update(edge.dependency for edge in build_only)
    direct = (TreeRow(nodes[edge.dependency], edge) for edge in build_only)
    return Trees(tuple(rows), tuple(direct), len(seen), is_whole)


class Reach:
    """Computes dependencies in a graph as integers used as bit sets, which compare in
    one step.

    `bits` has the bit of each spec; by default each spec has a bit of its own.
    """

    def __init__(self, graph: Needs, bits: Mapping[int, int] | None = None) -> None:
        self._graph = graph
        self._specs = [*graph.edges]
        self._bits = bits or {
            spec: 1 << number for number, spec in enumerate(self._specs)
        }
        self._run_time: dict[int, int] = {}

    def run_time(self, root: int) -> int:
        """Return a spec and its run-time dependencies."""
        reached, under_way, ahead = self._run_time, dict[int, list[int]](), [root]
        while ahead:
            spec = ahead[-1]
            if spec not in reached:
                # This value also ends cycles, which only a faulty index has.
                reached[spec] = self._bits[spec]
                edges = self._graph.edges[spec]
                dependencies = [edge.dependency for edge in edges if edge.is_run_time]
                under_way[spec] = dependencies
                ahead += [
                    dependency
                    for dependency in dependencies
                    if dependency not in reached
                ]
                continue
            ahead.pop()
            for dependency in under_way.pop(spec, ()):
                reached[spec] |= reached[dependency]
        return reached[root]

    def used(self, root: int) -> int:
        """Return the `run_time` sets of a spec and of all its direct dependencies as
        one set.
        """
        edges = self._graph.edges[root]
        return reduce(
            or_, (self.run_time(edge.dependency) for edge in edges), self.run_time(root)
        )

    def not_in_all(self, sets: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the specs of each set that are not in all sets."""
        common = reduce(and_, sets)
        return [self.members(bits & ~common) for bits in sets]

    def members(self, bits: int) -> tuple[int, ...]:
        """Return the specs of a set, if each spec has a bit of its own."""
        members = []
        while bits:
            low = bits & -bits
            members.append(self._specs[low.bit_length() - 1])
            bits ^= low
        return tuple(members)


class Dependencies:
    """Reads dependencies in both directions, by spec id; `virtuals` has all virtual
    names.

    `run_time` are the ids of the sets of types that have `link` or `run`, or no type.

    The graph is read level by level. A recursive statement would take three times as
    long, because SQLite stores the visited specs in a table.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        types = self._types = _sets(
            select(conn, "SELECT id, types FROM dependency_types")
        )
        sets = self._virtuals = _sets(
            select(conn, "SELECT id, virtuals FROM dependency_virtuals")
        )
        self._edge = lru_cache(maxsize=MAX_CACHED_SPECS)(
            lambda dependency, type_id, set_id: Edge(
                dependency, types[type_id], sets[set_id]
            )
        )
        self.run_time_types = self.of_any_type(RUN_TIME, is_untyped=False)
        self.run_time = self.of_any_type(RUN_TIME)
        self._run_time: dict[int, list[Edge]] = {}
        self.virtuals = frozenset(chain.from_iterable(sets.values()))

    def edge(
        self, dependency: int, types: int, virtuals: int, other: Edge | None = None
    ) -> Edge:
        """Return the edge of these ids, merged with another edge to the same spec."""
        edge = self._edge(dependency, types, virtuals)
        if other is None:
            return edge
        both = ({*one, *more} for one, more in zip(edge[1:], other[1:], strict=True))
        return Edge(dependency, *(tuple(sorted(names)) for names in both))

    def edges(
        self, specs: Iterable[int], types: Iterable[int] | None = None
    ) -> dict[int, list[Edge]]:
        """Return the edges of specs, of all types or of the given sets of types."""
        edges_of_spec: dict[int, dict[int, Edge]] = {spec: {} for spec in specs}
        sql, type_ids = (
            (EDGES, "") if types is None else (EDGES + TYPED, json.dumps([*types]))
        )
        rows = select_in(self._conn, sql, edges_of_spec, types=type_ids)
        for spec, dependency, types_id, virtuals in rows:
            edges = edges_of_spec[spec]
            edges[dependency] = self.edge(
                dependency, types_id, virtuals, edges.get(dependency)
            )
        return {spec: [*edges.values()] for spec, edges in edges_of_spec.items()}

    def follow(
        self,
        edges_of_spec: dict[int, list[Edge]],
        ahead: set[int],
        limit: int = sys.maxsize,
    ) -> bool:
        """Add the run-time edges of specs and of their dependencies; False if above
        `limit`.
        """
        if len(self._run_time) > MAX_CACHED_SPECS:
            self._run_time.clear()
        while ahead and len(edges_of_spec) <= limit:
            new = [spec for spec in ahead if spec not in self._run_time]
            self._run_time |= self.edges(new, self.run_time_types) if new else {}
            edges_of_spec |= {spec: self._run_time[spec] for spec in ahead}
            ends = {edge.dependency for spec in ahead for edge in edges_of_spec[spec]}
            ahead = {spec for spec in ends if spec not in edges_of_spec}
        return not ahead

    def of_any_type(
        self, types: Iterable[str], *, is_untyped: bool = True
    ) -> list[int]:
        """Return the ids of sets with one of these types, or of none (Spack's
        `_select_edges`).
        """
        expected = {*types}
        return [
            key
            for key, names in self._types.items()
            if (not expected.isdisjoint(names) if names else is_untyped)
        ]

    def of_all_types(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets with all of these types."""
        return [key for key, names in self._types.items() if {*names}.issuperset(types)]

    def of_virtuals(self, virtuals: Iterable[str]) -> list[int]:
        """Return the ids of sets with all of these virtual packages."""
        return [
            key
            for key, names in self._virtuals.items()
            if {*names}.issuperset(virtuals)
        ]

    def needing(
        self,
        dependencies: Set[int] | None,
        types: Iterable[int],
        virtuals: Set[str] = frozenset(),
        among: Set[int] | None = None,
    ) -> set[int]:
        """Return the specs with an edge to one of the dependencies, None for any."""
        more, provided = {"types": json.dumps([*types])}, ""
        if virtuals:
            more["virtuals"], provided = (
                json.dumps(self.of_virtuals(virtuals)),
                PROVIDING,
            )
        if among is not None:
            edges = select_in(
                self._conn, EDGES + TYPED + provided, sorted(among), **more
            )
            return {
                spec
                for spec, dependency, *_ in edges
                if dependencies is None or dependency in dependencies
            }
        if dependencies is None:
            rows = select(self._conn, NEEDING_ANY + provided, **more)
        else:
            rows = select_in(
                self._conn, NEEDING + provided, sorted(dependencies), **more
            )
        return set(chain.from_iterable(rows))

    def with_ancestors(self, specs: Set[int], types: Iterable[int]) -> set[int]:
        """Return specs and all their dependents over edges of these types."""
        types, ancestors, last = tuple(types), set(specs), set(specs)
        while last:
            last = self.needing(last, types) - ancestors
            ancestors |= last
        return ancestors


def _sets(rows: Iterable[tuple[int, str]]) -> dict[int, tuple[str, ...]]:
    return {key: tuple(sorted(filter(None, text.split(",")))) for key, text in rows}
