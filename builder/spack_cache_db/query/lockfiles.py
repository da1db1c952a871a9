"""Finds the binaries of a lockfile's nodes, or equivalent binaries with other hashes.

Binaries are equivalent if they have one configuration and run-time dependencies of the same
packages and versions. A database of pages alone has only configurations.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import chain
from operator import or_

from spack_cache_db.environments import LockedSpec
from spack_cache_db.query.comparison import Change
from spack_cache_db.query.conditions import Conditions, Verdict, asked
from spack_cache_db.query.configurations import (
    HASHES_AT_ONCE,
    IN_STACK,
    Candidates,
    Spec,
    specs_in_scope,
)
from spack_cache_db.query.covered_spec import CoveredSpec
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

OF_NODES = ("missing", "alike", "rebuilt")
"""The statuses of nodes without a binary."""

BINARIES = f"""
SELECT specs.id, hash FROM json_each(:hashes) AS wanted
CROSS JOIN specs ON specs.hash = wanted.value
WHERE specs.is_binary AND {IN_STACK.format("specs")}
"""
LISTED_BINARIES = f"""
SELECT specs.id, hash FROM json_each(:hashes) AS wanted
CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}
"""
MOST_OTHERS = 5
A_NODE = "it is another node of this lockfile"


def cover_lock(
    candidates: Candidates, locked: tuple[LockedSpec, ...], scope: Conditions
) -> Iterator[CoveredSpec]:
    """Yield the answers for the nodes of a lockfile, in their order."""
    lookups, hashes = candidates.lookups, [node.hash for node in locked]
    release, stack = asked(scope, "release"), asked(scope, "stack")
    binaries = _binaries(lookups.conn, hashes, release, stack, asked(scope, "specs"))
    installed = {
        dag_hash
        for tree in lookups.trees(release)
        for dag_hash in _binaries(lookups.conn, hashes, tree, stack)
    }
    configurations = {node.configuration for node in locked if node.hash not in binaries}
    rows = {
        configuration: row.id
        for name in {node.package for node in configurations}
        for row in candidates.rows(name)
        if (configuration := candidates.configuration(row)) in configurations
    }
    provided = externals(lookups)
    specs = {
        key: [spec for spec in specs_of_row if spec.id not in provided]
        for key, specs_of_row in specs_in_scope(lookups.conn, rows.values(), scope).items()
    }
    comparison = _Comparison(candidates, locked, [*chain.from_iterable(specs.values())])
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
) -> CoveredSpec:
    hashes = tuple(other.hash for other in others)
    return CoveredSpec(
        f"{node.configuration.package}@{node.configuration.version}",
        status,
        hash=node.hash,
        is_root=node.is_root,
        configuration=node.configuration,
        others=hashes[:MOST_OTHERS],
        other_count=len(hashes),
        differences=tuple(differences),
    )


class _Comparison:
    """Compares run-time dependencies of a lockfile's nodes and a database's specs, as bit sets.

    A name with its version has the same bit on both sides.
    """

    def __init__(
        self, candidates: Candidates, locked: tuple[LockedSpec, ...], others: list[Spec]
    ) -> None:
        conn = candidates.lookups.conn
        self._numbers_of_bits: dict[tuple[str, str], int] = {}
        self._recorded = {*recorded_specs(conn, [spec.id for spec in others])}
        graph = read_run_time(candidates.lookups, self._recorded)
        nodes = read_nodes(conn, graph.edges)
        bits = {key: self._bit((node.package, node.version)) for key, node in nodes.items()}
        self._of_specs = Reach(graph, bits)
        numbers = self._numbers = {node.hash: number for number, node in enumerate(locked)}
        edges = {
            numbers[node.hash]: [
                Edge(numbers[dependency], ("run",), ())
                for dependency in node.needs
                if dependency in numbers
            ]
            for node in locked
        }
        # A node also has the bits of its externals.
        bits = {
            number: reduce(or_, map(self._bit, (node.configuration[:2], *node.externals)))
            for number, node in enumerate(locked)
        }
        self._of_nodes = Reach(Needs(edges, frozenset()), bits)

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredSpec:
        """Return the answer for a node without a binary, given specs of its configuration."""
        needs = self._of_nodes.run_time(self._numbers[node.hash])
        # Specs without an index record count as equal.
        apart = {
            other: needs ^ self._of_specs.run_time(other.id) if other.id in self._recorded else 0
            for other in others
        }
        same = [other for other in others if not apart[other] and other.hash not in self._numbers]
        if same:
            return _covered(node, "rebuilt", same)
        others = sorted(
            others, key=lambda other: (other.hash in self._numbers, apart[other].bit_count())
        )
        changes = [*map(str, self._changes(needs, apart[others[0]]))]
        if others[0].hash in self._numbers:
            changes.append(A_NODE)
        return _covered(node, "alike", others, changes)

    def _changes(self, needs: int, apart: int) -> Iterator[Change]:
        """Yield the dependencies that only one of node and spec has, by package."""
        ours, theirs = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for (name, version), bit in self._numbers_of_bits.items():
            if apart >> bit & 1:
                (ours if needs >> bit & 1 else theirs)[name].append(version)
        for name in sorted({*ours, *theirs}):
            both = (", ".join(sorted(side.get(name, ()))) or None for side in (ours, theirs))
            yield Change(name, "", *both)

    def _bit(self, name_and_version: tuple[str, str]) -> int:
        return 1 << self._numbers_of_bits.setdefault(name_and_version, len(self._numbers_of_bits))


def _binaries(
    conn: sqlite3.Connection,
    hashes: list[str],
    release: int | None,
    stack: int | None,
    verdict: Verdict | None = None,
) -> set[str]:
    """Return the hashes that have a binary in a release and a stack, and satisfy the verdict."""
    sql = BINARIES if release is None else LISTED_BINARIES
    return {
        dag_hash
        for piece in json_pieces(hashes, HASHES_AT_ONCE)
        for spec, dag_hash in select(conn, sql, hashes=piece, release=release, stack=stack)
        if verdict is None or spec in verdict.holds
    }
