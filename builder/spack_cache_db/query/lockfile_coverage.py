"""Which nodes of a lockfile have a binary, and which binaries come closest to the others.

A binary of another hash does the same as a node if both have one configuration and need the same
packages in the same versions to run. What a file built from pages alone knows is the configuration.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from spack_cache_db.environments import LockedSpec
from spack_cache_db.query.candidates import Candidate, Candidates
from spack_cache_db.query.catalogue import HASHES_AT_ONCE, IN_STACK, Spec, specs_in_scope
from spack_cache_db.query.conditions import Condition, Conditions, asked, without
from spack_cache_db.query.connection import select
from spack_cache_db.query.coverage_output import CoveredNode
from spack_cache_db.query.dependency_graph import (
    Edge,
    Needs,
    Reach,
    read_nodes,
    read_run_time,
    told_of,
)
from spack_cache_db.query.look_alikes import Change
from spack_cache_db.records import Configuration

BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
WHERE specs.release_count > 0 AND {IN_STACK.format("specs")}
"""
LISTED_BINARIES = f"""
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}
"""

MOST_OTHERS = 5
A_NODE = "it is another node of this lockfile"


def cover_lock(
    candidates: Candidates, locked: tuple[LockedSpec, ...], scope: Conditions
) -> tuple[CoveredNode, ...]:
    """Return the answers for the nodes of a lockfile, in their order.

    Args:
        candidates: the configurations of the file.
        locked: the nodes.
        scope: a release and a stack that must have the binaries; a machine is not looked at.
    """
    hashes = [each.hash for each in locked]
    binaries = _binaries(candidates.conn, hashes, scope)
    installed = _installed(candidates, hashes, scope)
    rows = _rows(candidates, {each.configuration for each in locked if each.hash not in binaries})
    others = specs_in_scope(candidates.conn, {row.id for row in rows.values()}, scope)
    comparison = _Comparison(candidates, locked, [x for some in others.values() for x in some])
    found = []
    for each in locked:
        row = rows.get(each.configuration)
        if each.hash in installed:
            found.append(_covered(each, "installed"))
        elif each.hash in binaries:
            found.append(_covered(each, "binary"))
        elif row is None or row.id not in others:
            found.append(_covered(each, "missing"))
        else:
            found.append(comparison.answer(each, others[row.id]))
    return tuple(found)


def _covered(
    node: LockedSpec, status: str, others: Iterable[Spec] = (), differences: Iterable[str] = ()
) -> CoveredNode:
    hashes = [each.hash for each in others]
    words = node.configuration
    return CoveredNode(
        f"{words.package}@{words.version}",
        status,
        node.hash,
        node.is_root,
        words,
        tuple(hashes[:MOST_OTHERS]),
        len(hashes),
        tuple(differences),
    )


class _Comparison:
    """What nodes of a lockfile and specs of a file need to run, as sets of bits.

    A name with its version has one bit, whichever side says it.
    """

    def __init__(
        self, candidates: Candidates, locked: tuple[LockedSpec, ...], others: list[Spec]
    ) -> None:
        conn = candidates.conn
        self._places: dict[tuple[str, str], int] = {}
        self._told = {*told_of(conn, [each.id for each in others])}
        graph = read_run_time(conn, candidates.lookups, self._told)
        nodes = read_nodes(conn, graph.edges)
        bits = {key: self._bit(each.package, each.version) for key, each in nodes.items()}
        self._recorded = Reach(graph, bits)
        self._numbers = {each.hash: number for number, each in enumerate(locked)}
        self._of_lock = Reach(self._graph(locked), dict(enumerate(self._bits(locked))))

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredNode:
        """Return the answer for a node without a binary, given others of its configuration."""
        needs = self._of_lock.run_time(self._numbers[node.hash])
        apart = {each: self._differing(needs, each) for each in others}
        same = [each for each in others if not apart[each] and each.hash not in self._numbers]
        if same:
            return _covered(node, "rebuilt", same)
        others = sorted(
            others, key=lambda each: (each.hash in self._numbers, apart[each].bit_count())
        )
        nearest = others[0]
        changes = [str(each) for each in self._changes(needs, apart[nearest])]
        if nearest.hash in self._numbers:
            changes.append(A_NODE)
        return _covered(node, "alike", others, changes)

    def _differing(self, needs: int, other: Spec) -> int:
        """Return what only one of both needs; nothing where no index tells what is needed."""
        return needs ^ self._recorded.run_time(other.id) if other.id in self._told else 0

    def _changes(self, needs: int, apart: int) -> Iterator[Change]:
        """Yield what only the node needs, and what only the other spec does, by package."""
        sides: tuple[Mapping[str, list[str]], ...] = (defaultdict(list), defaultdict(list))
        for (name, version), place in self._places.items():
            if apart >> place & 1:
                sides[not needs >> place & 1][name].append(version)
        here, there = (
            {name: ", ".join(sorted(found)) for name, found in side.items()} for side in sides
        )
        for name in sorted({*here, *there}):
            yield Change(name, "", here.get(name), there.get(name))

    def _bit(self, name: str, version: str) -> int:
        return 1 << self._places.setdefault((name, version), len(self._places))

    def _bits(self, locked: tuple[LockedSpec, ...]) -> Iterator[int]:
        """Yield the bits of each node, those of the externals that it needs included."""
        for each in locked:
            found = self._bit(each.configuration.package, each.configuration.version)
            for external in each.externals:
                found |= self._bit(*external)
            yield found

    def _graph(self, locked: tuple[LockedSpec, ...]) -> Needs:
        numbers = self._numbers
        edges = {
            numbers[each.hash]: [
                Edge(numbers[needed], ("run",), ()) for needed in each.needs if needed in numbers
            ]
            for each in locked
        }
        return Needs(edges, frozenset())


def _installed(candidates: Candidates, hashes: list[str], scope: Conditions) -> set[str]:
    found: set[str] = set()
    for tree in candidates.lookups.trees(asked(scope, "release")):
        within = (Condition("release", "", tree), *without(scope, "release"))
        found |= _binaries(candidates.conn, hashes, within)
    return found


def _binaries(conn: sqlite3.Connection, hashes: list[str], scope: Conditions) -> set[str]:
    release, stack = asked(scope, "release"), asked(scope, "stack")
    sql = BINARIES if release is None else LISTED_BINARIES
    found: set[str] = set()
    for start in range(0, len(hashes), HASHES_AT_ONCE):
        some = json.dumps(hashes[start : start + HASHES_AT_ONCE])
        rows = select(conn, sql, hashes=some, release=release, stack=stack)
        found.update(row[0] for row in rows)
    return found


def _rows(candidates: Candidates, wanted: set[Configuration]) -> dict[Configuration, Candidate]:
    """Return the configurations of the file that are the same as those wanted."""
    names = {each.package for each in wanted}
    candidates.prepare(names)
    rows = (row for name in names for row in candidates.rows(name))
    words = ((candidates.configuration(row), row) for row in rows)
    return {configuration: row for configuration, row in words if configuration in wanted}
