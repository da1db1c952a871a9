"""The dependencies of specs: what they link or run at any depth, and what they use directly.

What a dependency was built with belongs to that dependency. Only indexes have dependency data.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, islice
from operator import and_
from typing import NamedTuple

from spack_cache_db.query.database import KeptRows, Lookups, select, select_in

EDGES = """
SELECT spec, dependency, types, virtuals FROM dependencies
WHERE spec IN (SELECT value FROM json_each(:ids))
"""
RUN_TIME_EDGES = """
SELECT spec, dependency, types, virtuals FROM dependencies
WHERE spec IN (SELECT value FROM json_each(:ids))
  AND types IN (SELECT value FROM json_each(:types))
"""
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
MOST_KEPT = 20_000
"""The edges of so many specs are kept in a process, those that were read last: some 8 MB."""
MOST_KEPT_NODES = 10_000
"""The same of what specs are: some 4 MB."""
TOLD = "SELECT DISTINCT spec FROM records WHERE spec IN (SELECT value FROM json_each(:ids))"
RUN_TIME = frozenset(("link", "run"))
NEEDING = """
SELECT dependencies.spec FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency = wanted.value
WHERE types IN (SELECT value FROM json_each(:types))
"""
NEEDED_BY = """
SELECT dependencies.spec, dependency FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec = wanted.value
WHERE types IN (SELECT value FROM json_each(:types))
"""
NEEDING_ANY = "SELECT spec FROM dependencies WHERE types IN (SELECT value FROM json_each(:types))"
NEEDED_PACKAGE = """
SELECT packages.name FROM dependencies
JOIN specs ON specs.id = dependencies.dependency
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
LIMIT 1
"""
"""The name of a package that some spec needs."""
PROVIDING = "\n  AND virtuals IN (SELECT value FROM json_each(:virtuals))"
KNOWN_AS_DEPENDENCY = "known as a dependency"
"""What is known of a spec that an index has a record of, but no release lists."""


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
        """What puts it in its place among others."""
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


def recorded_specs(conn: sqlite3.Connection, specs: Iterable[int]) -> list[int]:
    """Return those of some specs of which an index tells, and of what they need, in order."""
    specs = [*specs]
    told = {spec for (spec,) in select_in(conn, TOLD, specs)}
    return [spec for spec in specs if spec in told]


def read_needs(lookups: Lookups, roots: Iterable[int], most: int) -> Needs:
    """Return the graph of some specs, given their ids; the first of them have precedence.

    Args:
        roots: the specs.
        most: when so many specs have been read, what more the next ones need is `missing`.
    """
    known, read = _kept_edges(lookups), dict[int, list[Edge]]()
    missing: list[int] = []
    ends: set[int] = set()
    for root, edges in known.all_of(lookups.conn, [*roots]).items():
        before = len(read)
        read[root] = edges
        if not _follow(lookups.conn, known, read, _ends([edges]) - read.keys(), most):
            missing.append(root)
            ends.update((root,), islice(read, before, None))
    # Only these may need what was not read.
    for spec in ends:
        read[spec] = [each for each in read[spec] if each.dependency in read]
    return Needs(read, frozenset(missing))


def read_run_time(lookups: Lookups, roots: Iterable[int]) -> Needs:
    """Return the graph of what some specs need to run, given their ids."""
    found: dict[int, list[Edge]] = {}
    _follow(lookups.conn, _kept_edges(lookups), found, {*roots}, sys.maxsize)
    return Needs(found, frozenset())


def read_dependencies(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return the direct dependencies of a spec, and what it links or runs at any depth, by ids.

    Returns:
        The edge of the spec to each; None for what only others link or run.
    """
    known, found = _Edges(conn), dict[int, list[Edge]]()
    _follow(conn, known, found, {spec}, sys.maxsize)
    direct = {edge.dependency: edge for edge in known.all_of(conn, [spec])[spec]}
    return {each: direct.get(each) for each in (*found, *direct) if each != spec}


def read_dependents(conn: sqlite3.Connection, spec: int) -> dict[int, Edge | None]:
    """Return what needs a spec, by their ids: the edge of each to it.

    None for those that only link or run something which needs it.
    """
    known = _Edges(conn)
    found: dict[int, Edge | None] = {}
    for other, types, virtuals in select(conn, EDGES_TO, spec=spec):
        edge, before = known.edge(spec, types, virtuals), found.get(other)
        found[other] = edge if before is None else _both(before, edge)
    every = Dependents(conn).with_ancestors({spec}, known.run_time_types)
    return {each: found.get(each) for each in every.union(found) if each != spec}


def direct_dependents(conn: sqlite3.Connection, spec: int, most: int) -> list[int]:
    """Return the ids of some specs that need a spec themselves, in order."""
    return [row[0] for row in select(conn, DIRECT_DEPENDENTS, spec=spec, most=most)]


def dependent_packages(conn: sqlite3.Connection, package: int) -> list[str]:
    """Return the packages of specs that need a spec of a package themselves, sorted.

    Of a package on which very many depend, only the first `MOST_EDGES` edges are read.
    """
    rows = select(conn, DEPENDENT_PACKAGES, package=package, most=MOST_EDGES)
    return [row[0] for row in rows]


def kept_nodes(lookups: Lookups, ids: Iterable[int]) -> dict[int, Node]:
    """Return what specs are, by their ids; pages of specs share most of them."""
    kept = lookups.once(Node, lambda: KeptRows[Node](MOST_KEPT_NODES))
    return kept.of(ids, lambda new: read_nodes(lookups.conn, new))


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
    told = json.loads(external)
    module = told.get("module") or ()
    return str(told.get("path") or " ".join([module] if isinstance(module, str) else module))


class Reach:
    """What specs of a graph need, as sets of bits: whole sets are compared in one step.

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
        found = self.run_time(root)
        for edge in self._graph.edges[root]:
            found |= self.run_time(edge.dependency)
        return found

    def only(self, here: int, there: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the specs that are only in the first set, and those only in the second."""
        return self._members(here & ~there), self._members(there & ~here)

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


def _kept_edges(lookups: Lookups) -> _Edges:
    return lookups.once(_Edges, lambda: _Edges(lookups.conn))


class _Edges:
    """The edges of a database; those of run time are kept, because specs share most of them.

    Attributes:
        run_time_types: the ids of the types of edges that are linked or run.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._types, self._virtuals = (
            {key: tuple(sorted(names)) for key, names in sets.items()}
            for sets in (read_types(conn), read_virtuals(conn))
        )
        self.run_time_types = [
            key for key, names in self._types.items() if not RUN_TIME.isdisjoint(names)
        ]
        self._asked_types = json.dumps(self.run_time_types)
        self._run_time = KeptRows[list[Edge]](MOST_KEPT)
        self.edge = lru_cache(maxsize=MOST_KEPT)(self._edge)

    def all_of(self, conn: sqlite3.Connection, specs: Sequence[int]) -> dict[int, list[Edge]]:
        """Return all edges of specs."""
        return self._read(conn, EDGES, specs)

    def of_run_time(
        self, conn: sqlite3.Connection, specs: Iterable[int]
    ) -> Mapping[int, list[Edge]]:
        """Return the edges of specs that are linked or run."""
        types = self._asked_types
        return self._run_time.of(
            specs, lambda new: self._read(conn, RUN_TIME_EDGES, new, types=types)
        )

    def _read(
        self, conn: sqlite3.Connection, sql: str, specs: Sequence[int], **more: str
    ) -> dict[int, list[Edge]]:
        found: dict[int, dict[int, Edge]] = {spec: {} for spec in specs}
        for spec, dependency, types, virtuals in select_in(conn, sql, specs, **more):
            edge = self.edge(dependency, types, virtuals)
            edges = found[spec]
            edges[dependency] = _both(edges[dependency], edge) if dependency in edges else edge
        return {spec: [*edges.values()] for spec, edges in found.items()}

    def _edge(self, dependency: int, types: int, virtuals: int) -> Edge:
        """Return an edge, given the ids of its sets."""
        return Edge(dependency, self._types[types], self._virtuals[virtuals])


def _follow(
    conn: sqlite3.Connection,
    known: _Edges,
    found: dict[int, list[Edge]],
    ahead: set[int],
    most: int,
) -> bool:
    """Add the edges of run time of specs, and of all that these lead to, level by level.

    Args:
        known: the edges of the database.
        found: the edges of each spec that was read.
        ahead: the ids of the specs to begin with.
        most: once more specs have been read, no further level is.

    Returns:
        Whether there was room for all of it.
    """
    while ahead and len(found) <= most:
        found |= known.of_run_time(conn, ahead)
        ahead = _ends(found[spec] for spec in ahead) - found.keys()
    return not ahead


def _ends(edges: Iterable[list[Edge]]) -> set[int]:
    return {edge.dependency for some in edges for edge in some}


def _both(one: Edge, other: Edge) -> Edge:
    """Return two edges to one dependency as one."""
    return Edge(
        one.dependency,
        tuple(sorted({*one.types, *other.types})),
        tuple(sorted({*one.virtuals, *other.virtuals})),
    )


class Dependents:
    """The dependencies of a database, from what is needed to what needs it: sets of ids of specs.

    A level of the graph is one statement for each piece of the ids. A recursive statement takes
    three times as long, since SQLite keeps the set of what it has seen in a table.

    Args:

    Attributes:
        virtuals: the names of all virtual packages that some dependency provides.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._types = read_types(conn)
        self._virtuals = read_virtuals(conn)
        self.virtuals = frozenset(chain.from_iterable(self._virtuals.values()))

    def of_any_type(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets of types that have one of these; a set without any counts.

        Spack 1.2 `spec.py`, `_select_edges`.
        """
        wanted = {*types}
        return [key for key, found in self._types.items() if not found or found & wanted]

    def of_all_types(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets of types that have all of these."""
        return [key for key, found in self._types.items() if found.issuperset(types)]

    def needing(
        self,
        of: Set[int] | None,
        types: Iterable[int],
        virtuals: Set[str] = frozenset(),
        among: Set[int] | None = None,
    ) -> set[int]:
        """Return the specs that have an edge to one of some specs.

        Args:
            of: what the edge leads to; None for anything.
            types: the ids of the sets of types that it may have.
            virtuals: it provides all of these.
            among: only specs of these are asked for.
        """
        more = {"types": json.dumps([*types])}
        provided = ""
        if virtuals:
            sets = [key for key, found in self._virtuals.items() if found >= virtuals]
            more["virtuals"], provided = json.dumps(sets), PROVIDING
        if among is not None:
            edges = select_in(self._conn, NEEDED_BY + provided, sorted(among), **more)
            return {spec for spec, dependency in edges if of is None or dependency in of}
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


def read_types(conn: sqlite3.Connection) -> dict[int, frozenset[str]]:
    """Return the sets of types of dependencies, by their ids."""
    return _sets(select(conn, "SELECT id, types FROM dependency_types"))


def read_virtuals(conn: sqlite3.Connection) -> dict[int, frozenset[str]]:
    """Return the sets of virtual packages that dependencies provide, by their ids."""
    return _sets(select(conn, "SELECT id, virtuals FROM dependency_virtuals"))


def _sets(rows: Iterable[tuple[int, str]]) -> dict[int, frozenset[str]]:
    return {key: frozenset(filter(None, text.split(","))) for key, text in rows}
