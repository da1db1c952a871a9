"""Reads the dependencies of specs: direct ones of all types, and run-time ones at any
depth.

Build dependencies of a dependency are not followed. Only indexes have dependency data.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_ids, select_in
from spack_cache_db.query.stored.configurations import OF_IDS
from spack_cache_db.spack.facts import RUN_TIME

# The statements on edges end with conditions, so that others can follow.
EDGES = """
SELECT dependencies.spec_id, dependency_id, dependency_type_id, dependency_virtual_id
FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec_id = wanted.value
WHERE 1"""
"""The edges of some specs."""
TYPED = "\n  AND dependency_type_id IN (SELECT value FROM json_each(:types))"
PROVIDING = "\n  AND dependency_virtual_id IN (SELECT value FROM json_each(:virtuals))"
"""Conditions on edges, which follow a statement: on the types of an edge, and on its
virtual packages.
"""
NEEDED = (
    """
SELECT DISTINCT dependencies.dependency_id FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec_id = wanted.value
WHERE 1"""
    + TYPED
)
"""The dependencies of some specs, as ids alone."""
NEEDING = (
    """
SELECT dependencies.spec_id FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency_id = wanted.value
WHERE 1"""
    + TYPED
)
"""The dependents of some specs."""
NEEDING_PAIRS = (
    """
SELECT dependencies.spec_id, dependencies.dependency_id FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency_id = wanted.value
WHERE 1"""
    + TYPED
)
"""The dependents of some specs, each with the spec that it needs."""
NEEDING_ANY = "SELECT spec_id FROM dependencies WHERE 1" + TYPED
"""The dependents of any spec."""
NODES = """
SELECT specs.id, specs.hash, packages.name, versions.name, specs.is_binary, specs.is_gone,
  CASE WHEN specs.is_external AND NOT specs.is_binary THEN (
    SELECT max(nodes.external) FROM record_ranges AS records
    JOIN nodes ON nodes.id = records.node_id
    WHERE records.spec_id = specs.id) END
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
JOIN configurations ON configurations.id = specs.configuration_id
LEFT JOIN packages ON packages.id = configurations.package_id
LEFT JOIN versions ON versions.id = configurations.version_id
"""
"""The nodes of some specs. Several indexes may record an external at different places,
of which any will do: `max` takes the same one each time.
"""
DEPENDENT_PACKAGES = """
SELECT DISTINCT packages.name FROM (
  SELECT dependents.configuration_id FROM configurations
  CROSS JOIN specs ON specs.configuration_id = configurations.id
  CROSS JOIN dependencies ON dependencies.dependency_id = specs.id
  CROSS JOIN specs AS dependents ON dependents.id = dependencies.spec_id
  WHERE configurations.package_id = :package LIMIT :limit) AS needing
JOIN configurations ON configurations.id = needing.configuration_id
JOIN packages ON packages.id = configurations.package_id
WHERE packages.id != :package ORDER BY packages.name
"""
MOST_EDGES = 20_000
"""Maximum of edges that are read for the dependents of a package."""
MAX_CACHED_SPECS = 20_000
"""Maximum of specs whose edges a process caches: some 8 MB."""
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


class Need(NamedTuple):
    """Why a spec is found by `read_needing`: it needs one of the sought specs.

    Attributes:
        spec: the id of the nearest sought spec; of several, the lowest id.
        is_direct: whether the spec that is found has an edge to it.
    """

    spec: int
    is_direct: bool


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
    ids = list(specs)
    sql = f"SELECT DISTINCT spec_id FROM record_ranges WHERE spec_id {OF_IDS}"
    recorded = select_ids(conn, sql, ids)
    return [spec for spec in ids if spec in recorded]


def read_needs(lookups: Lookups, roots: Iterable[int], limit: int) -> Needs:
    """Return the graph of root specs, given their ids, with at most `limit` specs.

    The first roots have precedence; the others are `missing` if they need more.
    """
    dependencies = _cached_dependencies(lookups)
    edges_of_spec: dict[int, list[Edge]] = {}
    missing: list[int] = []
    # The missing roots, and the specs that were read for them.
    incomplete: set[int] = set()
    for root, edges in dependencies.edges(list(roots)).items():
        count_before = len(edges_of_spec)
        # A root that was read as a dependency gets its other edges too, at its old
        # place.
        edges_of_spec[root] = edges
        ahead = {edge.dependency for edge in edges} - edges_of_spec.keys()
        is_whole = dependencies.follow(edges_of_spec, ahead, limit)
        if not is_whole:
            missing.append(root)
            incomplete.add(root)
            read_for_root = islice(edges_of_spec, count_before, None)
            incomplete.update(read_for_root)

    # Leave out edges to specs that were not read. Only these specs may have them.
    for spec in incomplete:
        edges_of_spec[spec] = [
            edge for edge in edges_of_spec[spec] if edge.dependency in edges_of_spec
        ]
    return Needs(edges_of_spec, frozenset(missing))


def _cached_dependencies(lookups: Lookups) -> Dependencies:
    return lookups.once(Dependencies, lambda: Dependencies(lookups.conn))


def read_run_time(lookups: Lookups, roots: Iterable[int]) -> Needs:
    """Return the graph of specs and their run-time dependencies, given the ids of the
    specs.
    """
    edges: dict[int, list[Edge]] = {}
    _cached_dependencies(lookups).follow(edges, set(roots))
    return Needs(edges, frozenset())


def with_run_time(conn: sqlite3.Connection, specs: Iterable[int]) -> set[int]:
    """Return specs and all that they need at run time, by their ids.

    Without edges, this takes a fraction of the time of `read_run_time`.
    """
    types = json.dumps(Dependencies(conn).run_time_types)
    needed = set(specs)
    newest = needed
    while newest:
        rows = select_in(conn, NEEDED, newest, types=types)
        newest = {spec for (spec,) in rows} - needed
        needed |= newest
    return needed


def read_dependencies(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct and run-time dependencies of a spec, with the edges of direct
    ones.
    """
    dependencies = Dependencies(conn)
    run_time: dict[int, list[Edge]] = {}
    dependencies.follow(run_time, {spec})
    edges = dependencies.edges([spec])[spec]
    direct = {edge.dependency: edge for edge in edges}
    needed = dict.fromkeys([*run_time, *direct])
    return {other: direct.get(other) for other in needed if other != spec}


def read_dependents(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct and run-time dependents of a spec, with the edges of direct
    ones.
    """
    dependencies = Dependencies(conn)
    direct: dict[int, Edge] = {}
    sql = (
        "SELECT spec_id, dependency_type_id, dependency_virtual_id "
        "FROM dependencies WHERE dependency_id = :spec"
    )
    for other, types, virtuals in select(conn, sql, spec=spec):
        direct[other] = dependencies.edge(spec, types, virtuals, direct.get(other))
    needing = dependencies.with_ancestors({spec}, dependencies.run_time_types)
    dependents = needing.union(direct)
    return {other: direct.get(other) for other in dependents if other != spec}


def read_needing(conn: sqlite3.Connection, sought: Set[int]) -> dict[int, Need]:
    """Return the specs that link or run one of the sought specs, at any depth.

    A sought spec is among them if it needs another one.
    """
    dependencies = Dependencies(conn)
    types = json.dumps(dependencies.run_time_types)
    needs: dict[int, Need] = {}
    # Level by level, so that the first way to a spec is the shortest. For each spec of
    # a level: the sought spec that is nearest to it.
    level = {spec: spec for spec in sought}
    is_direct = True
    while level:
        next_level: dict[int, int] = {}
        for spec, dependency in select_in(conn, NEEDING_PAIRS, level, types=types):
            nearest = level[dependency]
            # It was found on a level before this one.
            if spec in needs:
                continue
            # It needs itself: a cycle, which only a faulty index has.
            if spec == nearest:
                continue
            next_level[spec] = min(nearest, next_level.get(spec, nearest))
        for spec, nearest in next_level.items():
            needs[spec] = Need(nearest, is_direct)
        # What needs a sought spec is nearer to that than to others.
        level = {
            spec: nearest for spec, nearest in next_level.items() if spec not in sought
        }
        is_direct = False
    return needs


def direct_dependents(conn: sqlite3.Connection, spec: int, limit: int) -> list[int]:
    """Return the ids of at most `limit` direct dependents of a spec, in order."""
    sql = (
        "SELECT DISTINCT spec_id FROM dependencies WHERE dependency_id = :spec "
        "ORDER BY 1 LIMIT :limit"
    )
    return [row[0] for row in select(conn, sql, spec=spec, limit=limit)]


def dependent_packages(conn: sqlite3.Connection, package: int) -> list[str]:
    """Return the packages of direct dependents of a package, from `MOST_EDGES` edges,
    sorted.
    """
    rows = select(conn, DEPENDENT_PACKAGES, package=package, limit=MOST_EDGES)
    return [row[0] for row in rows]


def read_nodes(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Node]:
    """Return the nodes of specs, by their ids."""
    nodes = {}
    for row in select_in(conn, NODES, ids):
        spec, dag_hash, package, version, is_binary, is_gone, external = row
        nodes[spec] = Node(
            hash=dag_hash,
            package=package,
            version=version,
            is_binary=bool(is_binary),
            external=None if external is None else _path_or_modules(external),
            is_gone=bool(is_gone),
        )
    return nodes


def _path_or_modules(external: str) -> str:
    """Return the path of an external, or else its modules, from JSON."""
    values = stored_json(external)
    path = values.get("path")
    if path:
        return str(path)
    modules = values.get("module") or ()
    return modules if isinstance(modules, str) else " ".join(modules)


class Dependencies:
    """Reads dependencies in both directions, by spec id.

    A database stores sets of types, such as `build,link`, and of virtual packages, and
    an edge has the ids of two sets.

    The graph is read level by level. A recursive statement would take three times as
    long, because SQLite stores the visited specs in a table.

    Attributes:
        virtuals: the names of all virtual packages that an edge has.
        run_time_types: the ids of the sets of types that have `link` or `run`: what a
            spec needs at run time.
        run_time: these, and the ids of sets without a type: what `^` in a query means
            at any depth, because an edge without a type satisfies any in Spack.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        types = _sets(select(conn, "SELECT id, types FROM dependency_types"))
        virtuals = _sets(select(conn, "SELECT id, virtuals FROM dependency_virtuals"))

        # Many specs have the same edges, which are one object in memory.
        @lru_cache(maxsize=MAX_CACHED_SPECS)
        def edge_of(dependency: int, types_id: int, virtuals_id: int) -> Edge:
            return Edge(dependency, types[types_id], virtuals[virtuals_id])

        self._edge_of = edge_of
        self._types = types
        self._virtuals = virtuals
        self.virtuals = frozenset(chain.from_iterable(virtuals.values()))
        self.run_time_types = self.of_any_type(RUN_TIME, is_untyped=False)
        self.run_time = self.of_any_type(RUN_TIME)
        self._run_time_edges: dict[int, list[Edge]] = {}

    def edge(
        self, dependency: int, types: int, virtuals: int, other: Edge | None = None
    ) -> Edge:
        """Return the edge of these ids, merged with another edge to the same spec."""
        edge = self._edge_of(dependency, types, virtuals)
        if other is None:
            return edge
        all_types = {*edge.types, *other.types}
        all_virtuals = {*edge.virtuals, *other.virtuals}
        return Edge(dependency, tuple(sorted(all_types)), tuple(sorted(all_virtuals)))

    def edges(
        self, specs: Iterable[int], types: Iterable[int] | None = None
    ) -> dict[int, list[Edge]]:
        """Return the edges of specs, of all types or of the given sets of types."""
        sql = EDGES
        types_text = ""
        if types is not None:
            sql += TYPED
            types_text = json.dumps(list(types))

        # A dependency has a row for each set of types and each set of virtual packages.
        edges_of_spec: dict[int, dict[int, Edge]] = {spec: {} for spec in specs}
        for row in select_in(self._conn, sql, edges_of_spec, types=types_text):
            spec, dependency, types_id, virtuals_id = row
            edges = edges_of_spec[spec]
            other = edges.get(dependency)
            edges[dependency] = self.edge(dependency, types_id, virtuals_id, other)
        return {spec: list(edges.values()) for spec, edges in edges_of_spec.items()}

    def follow(
        self,
        edges_of_spec: dict[int, list[Edge]],
        ahead: set[int],
        limit: int = sys.maxsize,
    ) -> bool:
        """Add the run-time edges of specs and of all that they need.

        Args:
            edges_of_spec: the edges that are known, to which others are added.
            ahead: the specs to begin with, whose edges are not known.
            limit: the number of specs above which no further level is read.

        Returns:
            Whether all edges were read.
        """
        cached = self._run_time_edges
        if len(cached) > MAX_CACHED_SPECS:
            cached.clear()
        while ahead and len(edges_of_spec) <= limit:
            # Read the edges of this level, except those that are cached.
            unread = [spec for spec in ahead if spec not in cached]
            if unread:
                cached.update(self.edges(unread, self.run_time_types))
            # Their ends that are new are the next level.
            ends: set[int] = set()
            for spec in ahead:
                edges = cached[spec]
                edges_of_spec[spec] = edges
                ends.update(edge.dependency for edge in edges)
            ahead = {spec for spec in ends if spec not in edges_of_spec}
        return not ahead

    def of_any_type(
        self, types: Iterable[str], *, is_untyped: bool = True
    ) -> list[int]:
        """Return the ids of sets with one of these types, or of none (Spack's
        `_select_edges`).
        """
        wanted = set(types)
        ids = []
        for key, names in self._types.items():
            is_of_type = not wanted.isdisjoint(names) if names else is_untyped
            if is_of_type:
                ids.append(key)
        return ids

    def of_all_types(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets with all of these types."""
        wanted = set(types)
        return [key for key, names in self._types.items() if wanted.issubset(names)]

    def of_virtuals(self, virtuals: Iterable[str]) -> list[int]:
        """Return the ids of sets with all of these virtual packages."""
        wanted = set(virtuals)
        return [key for key, names in self._virtuals.items() if wanted.issubset(names)]

    def needing(
        self,
        dependencies: Set[int] | None,
        types: Iterable[int],
        virtuals: Set[str] = frozenset(),
        among: Set[int] | None = None,
    ) -> set[int]:
        """Return the specs with an edge to one of the dependencies.

        Args:
            dependencies: the ids of specs; None for any dependency.
            types: the ids of the sets of types that the edge may have.
            virtuals: the virtual packages that the edge must have.
            among: the specs that are tried; None for all.
        """
        parameters = {"types": json.dumps(list(types))}
        providing = ""
        if virtuals:
            parameters["virtuals"] = json.dumps(self.of_virtuals(virtuals))
            providing = PROVIDING

        # Read the edges of the specs that are tried, or else those to the dependencies.
        if among is not None:
            sql = EDGES + TYPED + providing
            rows = select_in(self._conn, sql, sorted(among), **parameters)
            return {
                spec
                for spec, dependency, *_ in rows
                if dependencies is None or dependency in dependencies
            }
        if dependencies is None:
            rows = select(self._conn, NEEDING_ANY + providing, **parameters)
        else:
            sql = NEEDING + providing
            rows = select_in(self._conn, sql, sorted(dependencies), **parameters)
        return {spec for (spec,) in rows}

    def with_ancestors(self, specs: Set[int], types: Iterable[int]) -> set[int]:
        """Return specs and all their dependents over edges of these types."""
        type_ids = tuple(types)
        ancestors = set(specs)
        newest = set(specs)
        while newest:
            newest = self.needing(newest, type_ids) - ancestors
            ancestors |= newest
        return ancestors


def _sets(rows: Iterable[tuple[int, str]]) -> dict[int, tuple[str, ...]]:
    """Return the sets of words in texts such as `build,link`, by their ids."""
    sets = {}
    for key, text in rows:
        words = [word for word in text.split(",") if word]
        sets[key] = tuple(sorted(words))
    return sets
