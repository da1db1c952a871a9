"""Answers the nodes of a lockfile: the binary of each hash, or binaries like it.

A lockfile names its binaries, and installing by hash is not restricted by the solver's rules. But
Spack installs a binary together with what it links and runs, so a node is `incomplete` if a node
that it needs has no binary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import or_

from spack_cache_db.environments import LockedSpec
from spack_cache_db.query import graph
from spack_cache_db.query.comparison import Change
from spack_cache_db.query.conditions import Condition, Conditions, asked, without
from spack_cache_db.query.configurations import HASHES_AT_ONCE, Spec, specs_in_scope
from spack_cache_db.query.covered import CoveredSpec
from spack_cache_db.query.database import Lookups, json_pieces, select
from spack_cache_db.query.reuse import series
from spack_cache_db.query.selection import Candidates

OF_HASHES = """
SELECT DISTINCT configuration FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))
"""
A_NODE = "it is another node of this lockfile"
MOST_OTHERS = 5


def lockfile_answers(candidates: Candidates, locked: tuple[LockedSpec, ...]) -> list[CoveredSpec]:
    """Return the answers for the nodes of a lockfile, in their order."""
    answers = list(_cover_lock(candidates, locked))
    return list(_with_missing(locked, answers))


def _with_missing(
    locked: Sequence[LockedSpec], answers: Sequence[CoveredSpec]
) -> Iterator[CoveredSpec]:
    """Yield the answers; binaries that need a node without one are `incomplete`."""
    numbers = {node.hash: number for number, node in enumerate(locked)}
    lacking = [
        number
        for number, answer in enumerate(answers)
        if answer.status not in ("binary", "installed")
    ]
    # Each node that lacks a binary has a bit, and each other node the bits of what it needs.
    bits = dict.fromkeys(range(len(locked)), 0)
    bits |= {number: 1 << place for place, number in enumerate(lacking)}
    reach = graph.Reach(graph.Needs(_edges(locked, numbers), frozenset()), bits)
    for number, answer in enumerate(answers):
        missing = reach.run_time(number) if answer.status == "binary" else 0
        if not missing:
            yield answer
            continue
        nodes = [answers[other] for place, other in enumerate(lacking) if missing >> place & 1]
        needed = series([node.spec for node in nodes])
        yield replace(
            answer,
            status="incomplete",
            missing=tuple(node.title for node in nodes),
            reasons=(f"no binary of {needed}, which Spack would build first",),
        )


def _edges(locked: Sequence[LockedSpec], numbers: Mapping[str, int]) -> dict[int, list[graph.Edge]]:
    """Return the run-time edges of a lockfile, by the numbers of its nodes."""
    return {
        numbers[node.hash]: [
            graph.Edge(numbers[needed], ("run",), ()) for needed in node.needs if needed in numbers
        ]
        for node in locked
    }


def _cover_lock(candidates: Candidates, locked: tuple[LockedSpec, ...]) -> Iterator[CoveredSpec]:
    """Yield the answers for the nodes of a lockfile, in their order."""
    lookups, scope, hashes = candidates.lookups, candidates.scope, [node.hash for node in locked]
    conn, provided, release = lookups.conn, graph.externals(lookups), asked(scope, "release")
    pieces = json_pieces(hashes, HASHES_AT_ONCE)
    rows = (select(conn, OF_HASHES, hashes=piece) for piece in pieces)
    ids = [key for (key,) in chain.from_iterable(rows)]

    def binaries_of(ids: Iterable[int], scope: Conditions) -> dict[int, list[Spec]]:
        return {
            key: [spec for spec in specs if spec.id not in provided]
            for key, specs in specs_in_scope(conn, ids, scope).items()
        }

    binaries, *installed = (
        {spec.hash for specs in binaries_of(ids, place).values() for spec in specs}
        for place in (scope, *(_in_release(scope, tree) for tree in lookups.trees(release)))
    )
    configurations = {node.configuration for node in locked if node.hash not in binaries}
    row_ids = {
        configuration: row.id
        for name in {configuration.package for configuration in configurations}
        for row in candidates.rows(name)
        if (configuration := candidates.configuration(row)) in configurations
    }
    similar = binaries_of(row_ids.values(), scope)
    every = [spec.id for specs in similar.values() for spec in specs]
    comparison = _Comparison(lookups, locked, every)
    for node in locked:
        if any(node.hash in tree for tree in installed):
            yield _of_node(node, "installed")
        elif node.hash in binaries:
            yield _of_node(node, "binary")
        elif others := similar.get(row_ids.get(node.configuration, 0)):
            yield comparison.answer(node, others)
        else:
            yield _of_node(node, "missing")


def _in_release(conditions: Conditions, release: int) -> Conditions:
    return (Condition("release", "", release), *without(conditions, "release"))


def _of_node(
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

    def __init__(self, lookups: Lookups, locked: tuple[LockedSpec, ...], others: list[int]) -> None:
        self._numbers_of_bits: dict[tuple[str, str], int] = {}
        self._recorded = {*graph.recorded_specs(lookups.conn, others)}
        needs = graph.read_run_time(lookups, self._recorded)
        nodes = graph.read_nodes(lookups.conn, needs.edges)
        bits = {key: self._bit((node.package, node.version)) for key, node in nodes.items()}
        self._of_specs = graph.Reach(needs, bits)
        numbers = self._numbers = {node.hash: number for number, node in enumerate(locked)}
        edges = _edges(locked, numbers)
        # A node also has the bits of its externals.
        bits = {
            number: reduce(or_, map(self._bit, (node.configuration[:2], *node.externals)))
            for number, node in enumerate(locked)
        }
        self._of_nodes = graph.Reach(graph.Needs(edges, frozenset()), bits)

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
            return _of_node(node, "rebuilt", same)
        others = sorted(
            others, key=lambda other: (other.hash in self._numbers, apart[other].bit_count())
        )
        changes = [*map(str, self._changes(needs, apart[others[0]]))]
        if others[0].hash in self._numbers:
            changes.append(A_NODE)
        return _of_node(node, "alike", others, changes)

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
