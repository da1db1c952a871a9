"""The dependencies of specs: what they link or run at any depth, and what they use directly.

The build dependencies of a dependency are not followed. Only indexes have dependency data.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, islice
from operator import and_, or_
from typing import NamedTuple

from spack_cache_db.query.database import Lookups, select, select_in

EDGES = """
SELECT dependencies.spec, dependency, types, virtuals FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec = wanted.value
WHERE 1"""
TYPED = "\n  AND types IN (SELECT value FROM json_each(:types))"
EDGES_TO = "SELECT spec, types, virtuals FROM dependencies WHERE dependency = :spec"
NODES = """
SELECT specs.id, specs.hash, packages.name, versions.name, specs.is_binary,
  CASE WHEN specs.is_external AND NOT specs.is_binary THEN (
    SELECT max(nodes.external) FROM records JOIN nodes ON nodes.id = records.node
    WHERE records.spec = specs.id) END
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
JOIN configurations ON configurations.id = specs.configuration
LEFT JOIN packages ON packages.id = configurations.package
LEFT JOIN versions ON versions.id = configurations.version
"""
DIRECT_DEPENDENTS = """
SELECT DISTINCT spec FROM dependencies WHERE dependency = :spec ORDER BY spec LIMIT :most
"""
DEPENDENT_PACKAGES = """
SELECT DISTINCT packages.name FROM (
  SELECT theirs.configuration FROM configurations AS own
  CROSS JOIN specs ON specs.configuration = own.id
  CROSS JOIN dependencies ON dependencies.dependency = specs.id
  CROSS JOIN specs AS theirs ON theirs.id = dependencies.spec
  WHERE own.package = :package LIMIT :most) AS needing
JOIN configurations ON configurations.id = needing.configuration
JOIN packages ON packages.id = configurations.package
WHERE packages.id != :package ORDER BY packages.name
"""
MOST_EDGES = 20_000
RECORDED = "SELECT DISTINCT spec FROM records WHERE spec IN (SELECT value FROM json_each(:ids))"
MOST_KEPT = 20_000
"""The edges of so many specs are kept in a process: some 8 MB."""
RUN_TIME = frozenset(("link", "run"))
NEEDING = """
SELECT dependencies.spec FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency = wanted.value
WHERE types IN (SELECT value FROM json_each(:types))
"""
NEEDING_ANY = "SELECT spec FROM dependencies WHERE types IN (SELECT value FROM json_each(:types))"
PROVIDING = "\n  AND virtuals IN (SELECT value FROM json_each(:virtuals))"
EXTERNALS = "SELECT id FROM specs WHERE is_external AND NOT is_binary"
KNOWN_AS_DEPENDENCY = "known as a dependency"
"""The kind of a spec that has an index record, but that no release lists."""


class Edge(NamedTuple):
    """How a spec uses another: in these types, for these virtual packages, both sorted."""

    dependency: int
    types: tuple[str, ...]
    virtuals: tuple[str, ...]

    @property
    def is_run_time(self) -> bool:
        """Whether it is linked or run, and not only used to build or to test."""
        return not RUN_TIME.isdisjoint(self.types)


class Node(NamedTuple):
    """A spec in the graph; `external` is where the system has it, for what Spack did not build."""

    hash: str
    package: str
    version: str
    is_binary: bool
    external: str | None

    @property
    def place(self) -> tuple[str, str]:
        """The key by which nodes are sorted."""
        return self.package, self.hash

    @property
    def kind(self) -> str:
        """One of `binary`, `external` and `KNOWN_AS_DEPENDENCY`."""
        if self.is_binary:
            return "binary"
        return KNOWN_AS_DEPENDENCY if self.external is None else "external"


@dataclass(frozen=True)
class Needs:
    """Some specs, what they need directly in any way, and what all of that needs to run.

    Attributes:
        edges: of each spec, by its id: of the first ones all, of others those of run time.
        missing: those of the first ones whose dependencies would have been too many.
    """

    edges: dict[int, list[Edge]]
    missing: frozenset[int]


def externals(lookups: Lookups) -> Set[int]:
    """Return the specs that the system provides, which are not binaries."""
    return lookups.once(EXTERNALS, lambda: {*chain.from_iterable(select(lookups.conn, EXTERNALS))})


def recorded_specs(conn: sqlite3.Connection, specs: Iterable[int]) -> list[int]:
    """Return the specs that have an index record, in order."""
    specs = [*specs]
    recorded = {spec for (spec,) in select_in(conn, RECORDED, specs)}
    return [spec for spec in specs if spec in recorded]


def read_needs(lookups: Lookups, roots: Iterable[int], most: int) -> Needs:
    """Return the graph of some specs, given their ids; the first of them have precedence.

    Args:
        roots: the specs.
        most: when so many specs have been read, what more the next ones need is `missing`.
    """
    known = lookups.once(Dependencies, lambda: Dependencies(lookups.conn))
    found: dict[int, list[Edge]] = {}
    missing, ends = list[int](), set[int]()
    for root, edges in known.edges([*roots]).items():
        before = len(found)
        found[root] = edges
        if not known.follow(found, {edge.dependency for edge in edges} - found.keys(), most):
            missing.append(root)
            ends.update((root,), islice(found, before, None))
    # Only these may need what was not read.
    for spec in ends:
        found[spec] = [edge for edge in found[spec] if edge.dependency in found]
    return Needs(found, frozenset(missing))


def read_run_time(lookups: Lookups, roots: Iterable[int]) -> Needs:
    """Return the graph of what some specs need to run, given their ids."""
    found: dict[int, list[Edge]] = {}
    lookups.once(Dependencies, lambda: Dependencies(lookups.conn)).follow(found, {*roots})
    return Needs(found, frozenset())


def read_dependencies(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct dependencies of a spec, and what it links or runs at any depth, by ids.

    Returns:
        The edge of the spec to each; None for what only others link or run.
    """
    known, found = Dependencies(conn), dict[int, list[Edge]]()
    known.follow(found, {spec})
    direct = {edge.dependency: edge for edge in known.edges([spec])[spec]}
    return {each: direct.get(each) for each in (*found, *direct) if each != spec}


def read_dependents(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return what needs a spec, by their ids: the edge of each to it.

    None for those that only link or run something which needs it.
    """
    known, found = Dependencies(conn), dict[int, Edge]()
    for other, types, virtuals in select(conn, EDGES_TO, spec=spec):
        found[other] = known.edge(spec, types, virtuals, found.get(other))
    every = known.with_ancestors({spec}, known.of_any_type(RUN_TIME, is_untyped=False))
    return {each: found.get(each) for each in every.union(found) if each != spec}


def direct_dependents(conn: sqlite3.Connection, spec: int, most: int) -> list[int]:
    """Return the ids of some specs that need a spec themselves, in order."""
    return [row[0] for row in select(conn, DIRECT_DEPENDENTS, spec=spec, most=most)]


def dependent_packages(conn: sqlite3.Connection, package: int) -> list[str]:
    """Return the packages of specs that need a spec of a package themselves, sorted.

    Only the first `MOST_EDGES` edges to the package are read.
    """
    rows = select(conn, DEPENDENT_PACKAGES, package=package, most=MOST_EDGES)
    return [row[0] for row in rows]


def read_nodes(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Node]:
    """Return what specs are, by their ids."""
    return {
        key: Node(dag_hash, package, version, bool(is_binary), _place(external))
        for key, dag_hash, package, version, is_binary, external in select_in(conn, NODES, ids)
    }


def _place(external: str | None) -> str | None:
    """Return where the system has an external: its path, or its modules."""
    if external is None:
        return None
    values = json.loads(external)
    module = values.get("module") or ()
    return str(values.get("path") or " ".join([module] if isinstance(module, str) else module))


class Reach:
    """The needs of specs in a graph, as sets of bits: whole sets are compared in one step.

    Args:
        graph: the specs and their edges.
        bits: the bit of each spec; None for a bit of its own for each.
    """

    def __init__(self, graph: Needs, bits: Mapping[int, int] | None = None) -> None:
        self._graph = graph
        self._specs = [*graph.edges]
        self._bits = bits or {spec: 1 << number for number, spec in enumerate(self._specs)}
        self._run_time: dict[int, int] = {}

    def run_time(self, root: int) -> int:
        """Return what a spec needs to run, itself included."""
        known, under_way, ahead = self._run_time, dict[int, list[int]](), [root]
        while ahead:
            spec = ahead[-1]
            if spec not in known:
                # What is under way counts as itself, so that a cycle, which Spack has not, ends.
                known[spec] = self._bits[spec]
                edges = self._graph.edges[spec]
                needed = [each.dependency for each in edges if each.is_run_time]
                under_way[spec] = needed
                ahead += [each for each in needed if each not in known]
                continue
            ahead.pop()
            for each in under_way.pop(spec, ()):
                known[spec] |= known[each]
        return known[root]

    def used(self, root: int) -> int:
        """Return that, and what its direct dependencies of all types need to run."""
        edges = self._graph.edges[root]
        return reduce(or_, (self.run_time(edge.dependency) for edge in edges), self.run_time(root))

    def not_in_all(self, sets: Sequence[int]) -> list[tuple[int, ...]]:
        """Return of each set the specs that some other set does not have."""
        common = reduce(and_, sets)
        return [self._members(each & ~common) for each in sets]

    def _members(self, bits: int) -> tuple[int, ...]:
        found = []
        while bits:
            low = bits & -bits
            found.append(self._specs[low.bit_length() - 1])
            bits ^= low
        return tuple(found)


class Dependencies:
    """The dependencies of a database, in both directions, by the ids of specs.

    A level of the graph is one statement for each piece of the ids. A recursive statement takes
    three times as long, since SQLite keeps the set of what it has seen in a table.

    Attributes:
        virtuals: the names of all virtual packages that some dependency provides.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._types = _sets(select(conn, "SELECT id, types FROM dependency_types"))
        self._virtuals = _sets(select(conn, "SELECT id, virtuals FROM dependency_virtuals"))
        self._edge = lru_cache(maxsize=MOST_KEPT)(self._of_sets)
        self._run_time_types = self.of_any_type(RUN_TIME, is_untyped=False)
        self._run_time: dict[int, list[Edge]] = {}
        self.virtuals = frozenset(chain.from_iterable(self._virtuals.values()))

    def edge(self, dependency: int, types: int, virtuals: int, other: Edge | None = None) -> Edge:
        """Return an edge, given the ids of its sets; together with another one to the same spec."""
        found = self._edge(dependency, types, virtuals)
        if other is None:
            return found
        both = ({*one, *more} for one, more in zip(found[1:], other[1:], strict=True))
        return Edge(dependency, *(tuple(sorted(names)) for names in both))

    def _of_sets(self, dependency: int, types: int, virtuals: int) -> Edge:
        return Edge(dependency, self._types[types], self._virtuals[virtuals])

    def edges(
        self, specs: Iterable[int], types: Iterable[int] | None = None
    ) -> dict[int, list[Edge]]:
        """Return the edges of specs, of all types or of some sets of them."""
        found: dict[int, dict[int, Edge]] = {spec: {} for spec in specs}
        sql, given = (EDGES, "") if types is None else (EDGES + TYPED, json.dumps([*types]))
        for spec, needed, how, virtuals in select_in(self._conn, sql, found, types=given):
            found[spec][needed] = self.edge(needed, how, virtuals, found[spec].get(needed))
        return {spec: [*edges.values()] for spec, edges in found.items()}

    def follow(
        self, found: dict[int, list[Edge]], ahead: set[int], most: int = sys.maxsize
    ) -> bool:
        """Add the run-time edges of specs and of all that they lead to; False if over `most`."""
        if len(self._run_time) > MOST_KEPT:
            self._run_time.clear()
        while ahead and len(found) <= most:
            new = [spec for spec in ahead if spec not in self._run_time]
            self._run_time |= self.edges(new, self._run_time_types) if new else {}
            found |= {spec: self._run_time[spec] for spec in ahead}
            ends = {edge.dependency for spec in ahead for edge in found[spec]}
            ahead = {spec for spec in ends if spec not in found}
        return not ahead

    def of_any_type(self, types: Iterable[str], *, is_untyped: bool = True) -> list[int]:
        """Return the ids of sets of types that have one of these; a set without any may count.

        Spack 1.2 `spec.py`, `_select_edges`.
        """
        wanted = {*types}
        return [
            key
            for key, names in self._types.items()
            if (not wanted.isdisjoint(names) if names else is_untyped)
        ]

    def of_all_types(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets of types that have all of these."""
        return [key for key, names in self._types.items() if {*names}.issuperset(types)]

    def of_virtuals(self, virtuals: Iterable[str]) -> list[int]:
        """Return the ids of sets of virtual packages that have all of these."""
        return [key for key, names in self._virtuals.items() if {*names}.issuperset(virtuals)]

    def needing(
        self,
        of: Set[int] | None,
        types: Iterable[int],
        virtuals: Set[str] = frozenset(),
        among: Set[int] | None = None,
    ) -> set[int]:
        """Return the specs that have an edge to one of some specs."""
        more = {"types": json.dumps([*types])}
        provided = ""
        if virtuals:
            more["virtuals"], provided = json.dumps(self.of_virtuals(virtuals)), PROVIDING
        if among is not None:
            edges = select_in(self._conn, EDGES + TYPED + provided, sorted(among), **more)
            return {spec for spec, dependency, *_ in edges if of is None or dependency in of}
        if of is None:
            rows = select(self._conn, NEEDING_ANY + provided, **more)
        else:
            rows = select_in(self._conn, NEEDING + provided, sorted(of), **more)
        return set(chain.from_iterable(rows))

    def with_ancestors(self, of: Set[int], types: Iterable[int]) -> set[int]:
        """Return some specs and all that needs them over edges of these types, however far."""
        types, found, last = tuple(types), set(of), set(of)
        while last:
            last = self.needing(last, types) - found
            found |= last
        return found


def _sets(rows: Iterable[tuple[int, str]]) -> dict[int, tuple[str, ...]]:
    return {key: tuple(sorted(filter(None, text.split(",")))) for key, text in rows}
