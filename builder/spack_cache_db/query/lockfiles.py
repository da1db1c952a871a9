"""Which nodes of a lockfile have a binary, and which binaries do the same.

A binary of another hash does the same if both have one configuration and need the same packages in
the same versions to run. A database of pages alone knows only the configuration.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from spack_cache_db.environments import (
    LockedSpec,
)
from spack_cache_db.query.comparison import Change
from spack_cache_db.query.conditions import (
    Conditions,
    asked,
)
from spack_cache_db.query.configurations import (
    HASHES_AT_ONCE,
    IN_STACK,
    Candidates,
    Spec,
    specs_in_scope,
)
from spack_cache_db.query.database import json_pieces, select
from spack_cache_db.query.graph import (
    Edge,
    Needs,
    Reach,
    externals,
    read_nodes,
    read_run_time,
    recorded_specs,
)
from spack_cache_db.records import Configuration

OF_NODES = ("missing", "alike", "rebuilt")
"""The statuses of nodes of a lockfile that have no binary."""

BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
WHERE specs.is_binary AND {IN_STACK.format("specs")}
"""
LISTED_BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}
"""
MOST_OTHERS = 5
A_NODE = "it is another node of this lockfile"


@dataclass(frozen=True, slots=True)
class CoveredNode:
    """The answer for one node of a lockfile.

    Attributes:
        spec: the name and version of the node.
        status: `installed`; `binary`; `rebuilt`, where others have the same configuration and need
            the same to run; `alike`, where others have the same configuration only; or `missing`.
        hash: the node's own.
        is_root: True for a root of the lockfile, False for a mere dependency.
        configuration: what the lockfile says of it.
        others: where its own hash has no binary, the first of those that are rebuilt or alike:
            what is current first, or what differs least.
        other_count: how many there are.
        differences: what the first that is alike needs otherwise.
        release: the first release that has the node's own hash, or else the first of the others.
        mirror: the URL of the mirror that has it; None where nothing says it, or it is installed.
    """

    spec: str
    status: str
    hash: str
    is_root: bool
    configuration: Configuration
    others: tuple[str, ...] = ()
    other_count: int = 0
    differences: tuple[str, ...] = ()
    release: str | None = None
    mirror: str | None = None


def cover_lock(
    candidates: Candidates, locked: tuple[LockedSpec, ...], scope: Conditions
) -> Iterator[CoveredNode]:
    """Yield the answers for the nodes of a lockfile, in their order."""
    lookups, hashes = candidates.lookups, [each.hash for each in locked]
    release, stack = asked(scope, "release"), asked(scope, "stack")
    binaries = _binaries(lookups.conn, hashes, release, stack)
    installed = {
        dag_hash
        for tree in lookups.trees(release)
        for dag_hash in _binaries(lookups.conn, hashes, tree, stack)
    }
    wanted = {each.configuration for each in locked if each.hash not in binaries}
    rows = {
        configuration: row.id
        for name in {each.package for each in wanted}
        for row in candidates.rows(name)
        if (configuration := candidates.configuration(row)) in wanted
    }
    provided = externals(lookups)
    specs = {
        key: [spec for spec in some if spec.id not in provided]
        for key, some in specs_in_scope(lookups.conn, rows.values(), scope).items()
    }
    comparison = _Comparison(candidates, locked, [x for some in specs.values() for x in some])
    for node in locked:
        others = specs.get(rows.get(node.configuration, 0), [])
        if node.hash in installed:
            yield _covered(node, "installed")
        elif node.hash in binaries:
            yield _covered(node, "binary")
        else:
            yield comparison.answer(node, others) if others else _covered(node, "missing")


def _covered(
    node: LockedSpec, status: str, others: Iterable[Spec] = (), differences: Iterable[str] = ()
) -> CoveredNode:
    hashes = tuple(each.hash for each in others)
    return CoveredNode(
        f"{node.configuration.package}@{node.configuration.version}",
        status,
        node.hash,
        node.is_root,
        node.configuration,
        hashes[:MOST_OTHERS],
        len(hashes),
        tuple(differences),
    )


class _Comparison:
    """The runtime dependencies of a lockfile's nodes and a database's specs, as sets of bits.

    A name with its version has one bit, whichever side says it.
    """

    def __init__(
        self, candidates: Candidates, locked: tuple[LockedSpec, ...], others: list[Spec]
    ) -> None:
        conn = candidates.lookups.conn
        self._places: dict[tuple[str, str], int] = {}
        self._recorded = {*recorded_specs(conn, [each.id for each in others])}
        graph = read_run_time(candidates.lookups, self._recorded)
        nodes = read_nodes(conn, graph.edges)
        bits = {key: self._bit((each.package, each.version)) for key, each in nodes.items()}
        self._of_specs = Reach(graph, bits)
        numbers = self._numbers = {each.hash: number for number, each in enumerate(locked)}
        edges = {
            numbers[each.hash]: [
                Edge(numbers[needed], ("run",), ()) for needed in each.needs if needed in numbers
            ]
            for each in locked
        }
        # A node has the bits of the externals that it needs as well.
        bits = {
            number: reduce(or_, map(self._bit, (each.configuration[:2], *each.externals)))
            for number, each in enumerate(locked)
        }
        self._of_nodes = Reach(Needs(edges, frozenset()), bits)

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredNode:
        """Return the answer for a node without a binary, given others of its configuration."""
        needs = self._of_nodes.run_time(self._numbers[node.hash])
        # Nothing is different if no index records the dependencies.
        apart = {
            each: needs ^ self._of_specs.run_time(each.id) if each.id in self._recorded else 0
            for each in others
        }
        same = [each for each in others if not apart[each] and each.hash not in self._numbers]
        if same:
            return _covered(node, "rebuilt", same)
        others = sorted(
            others, key=lambda each: (each.hash in self._numbers, apart[each].bit_count())
        )
        changes = [str(each) for each in self._changes(needs, apart[others[0]])]
        if others[0].hash in self._numbers:
            changes.append(A_NODE)
        return _covered(node, "alike", others, changes)

    def _changes(self, needs: int, apart: int) -> Iterator[Change]:
        """Yield what only the node needs, and what only the other spec does, by package."""
        here, there = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for (name, version), place in self._places.items():
            if apart >> place & 1:
                (here if needs >> place & 1 else there)[name].append(version)
        for name in sorted({*here, *there}):
            both = (", ".join(sorted(side.get(name, ()))) or None for side in (here, there))
            yield Change(name, "", *both)

    def _bit(self, named: tuple[str, str]) -> int:
        return 1 << self._places.setdefault(named, len(self._places))


def _binaries(
    conn: sqlite3.Connection, hashes: list[str], release: int | None, stack: int | None
) -> set[str]:
    """Return the hashes that have a binary in a release and a stack."""
    sql = BINARIES if release is None else LISTED_BINARIES
    pieces = json_pieces(hashes, HASHES_AT_ONCE)
    rows = (select(conn, sql, hashes=piece, release=release, stack=stack) for piece in pieces)
    return {dag_hash for some in rows for (dag_hash,) in some}
