"""Answers the nodes of a lockfile: the binary of each hash, or binaries like it.

A lockfile names its binaries, and installing by hash is not restricted by the solver's
rules. But Spack installs a binary together with what it links and runs, so a node is
`incomplete` if a node that it needs has no binary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import reduce
from operator import or_

from spack_cache_db.environments.model import LockedSpec
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.answers.differences import Change
from spack_cache_db.query.choice.reuse import short_series
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    condition_value,
    within_release,
)
from spack_cache_db.query.match.candidates import Candidates
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import json_pieces, select
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import HASHES_AT_ONCE, Spec, specs_in_scope
from spack_cache_db.query.stored.reach import Reach

OF_HASHES = """
SELECT DISTINCT configuration_id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))
"""
A_NODE = "it is another node of this lockfile"
MOST_OTHERS = 5
"""Maximum of other binaries that an answer lists."""


def lockfile_answers(
    candidates: Candidates, locked: tuple[LockedSpec, ...]
) -> list[CoveredSpec]:
    """Return the answers for the nodes of a lockfile, in their order."""
    answers = list(_own_answers(candidates, locked))
    return list(_with_missing(locked, answers))


def _own_answers(
    candidates: Candidates, locked: tuple[LockedSpec, ...]
) -> Iterator[CoveredSpec]:
    """Yield the answers for nodes, in their order, without regard to what the nodes
    need.
    """
    lookups = candidates.lookups
    scope = candidates.scope
    # The configurations of the specs that have the hashes of the nodes.
    ids: list[int] = []
    for piece in json_pieces([node.hash for node in locked], HASHES_AT_ONCE):
        ids.extend(key for (key,) in select(lookups.conn, OF_HASHES, hashes=piece))
    # The hashes with a binary, and those that an installation has.
    binary_hashes = _hashes(_binaries(lookups, ids, scope))
    installed_hashes: set[str] = set()
    for installation in lookups.trees(condition_value(scope, "release")):
        within = within_release(scope, installation)
        installed_hashes |= _hashes(_binaries(lookups, ids, within))
    # For the other nodes, the binaries of their configurations.
    without_binary = [node for node in locked if node.hash not in binary_hashes]
    row_ids = _row_ids(candidates, {node.configuration for node in without_binary})
    similar = _binaries(lookups, row_ids.values(), scope)
    similar_ids = [spec.id for specs in similar.values() for spec in specs]
    comparison = _Comparison(lookups, locked, similar_ids)
    for node in locked:
        if node.hash in installed_hashes:
            yield _of_node(node, "installed")
            continue
        if node.hash in binary_hashes:
            yield _of_node(node, "binary")
            continue
        row_id = row_ids.get(node.configuration)
        others = [] if row_id is None else similar.get(row_id, [])
        yield comparison.answer(node, others) if others else _of_node(node, "missing")


def _binaries(
    lookups: Lookups, ids: Iterable[int], scope: Conditions
) -> dict[int, list[Spec]]:
    """Return the specs of configurations in a scope, without externals, by
    configuration.
    """
    externals = graph.externals(lookups)
    binaries = {}
    for key, specs in specs_in_scope(lookups.conn, ids, scope).items():
        binaries[key] = [spec for spec in specs if spec.id not in externals]
    return binaries


def _hashes(binaries: Mapping[int, Sequence[Spec]]) -> set[str]:
    return {spec.hash for specs in binaries.values() for spec in specs}


def _row_ids(
    candidates: Candidates, configurations: Set[Configuration]
) -> dict[Configuration, int]:
    """Return the ids of configurations; those that the database does not have are left
    out.
    """
    ids = {}
    for package in {configuration.package for configuration in configurations}:
        for row in candidates.rows(package):
            configuration = candidates.configuration(row)
            if configuration in configurations:
                ids[configuration] = row.id
    return ids


def _of_node(
    node: LockedSpec,
    status: str,
    others: Iterable[Spec] = (),
    differences: Iterable[str] = (),
) -> CoveredSpec:
    configuration = node.configuration
    hashes = tuple(other.hash for other in others)
    return CoveredSpec(
        f"{configuration.package}@{configuration.version}",
        status,
        hash=node.hash,
        is_root=node.is_root,
        configuration=configuration,
        others=hashes[:MOST_OTHERS],
        other_count=len(hashes),
        differences=tuple(differences),
    )


class _Comparison:
    """Compares run-time dependencies of a lockfile's nodes and a database's specs, as
    bit sets.

    A name with its version has the same bit on both sides.

    Args:
        lookups: the database.
        locked: the nodes of the lockfile.
        others: the ids of the specs with which nodes are compared.
    """

    def __init__(
        self, lookups: Lookups, locked: tuple[LockedSpec, ...], others: list[int]
    ) -> None:
        self._number_of_bit: dict[tuple[str, str], int] = {}
        # What the specs need, of those whose dependencies the database has.
        self._recorded = frozenset(graph.recorded_specs(lookups.conn, others))
        needs = graph.read_run_time(lookups, self._recorded)
        bits_of_specs = {}
        for spec, dependency in graph.read_nodes(lookups.conn, needs.edges).items():
            bits_of_specs[spec] = self._bit((dependency.package, dependency.version))
        self._of_specs = Reach(needs, bits_of_specs)
        # What the nodes need. A node also has the bits of its externals.
        self._numbers = _node_numbers(locked)
        bits_of_nodes = {}
        for number, node in enumerate(locked):
            own = (node.configuration.package, node.configuration.version)
            bits_of_nodes[number] = reduce(or_, map(self._bit, (own, *node.externals)))
        self._of_nodes = Reach(_needs(locked, self._numbers), bits_of_nodes)

    def _bit(self, name_and_version: tuple[str, str]) -> int:
        """Return the bit of a name with its version, a new one if it is new."""
        next_number = len(self._number_of_bit)
        return 1 << self._number_of_bit.setdefault(name_and_version, next_number)

    def answer(self, node: LockedSpec, others: list[Spec]) -> CoveredSpec:
        """Return the answer for a node without a binary, given specs of its
        configuration.
        """
        needed = self._of_nodes.run_time(self._numbers[node.hash])
        # The dependencies that only the node or only the spec has. Specs without an
        # index record count as equal.
        differing: dict[Spec, int] = {}
        for other in others:
            differing[other] = 0
            if other.id in self._recorded:
                differing[other] = needed ^ self._of_specs.run_time(other.id)
        # A spec that is itself a node of this lockfile cannot stand in for another
        # node.
        same = [
            other
            for other in others
            if not differing[other] and other.hash not in self._numbers
        ]
        if same:
            return _of_node(node, "rebuilt", same)
        # The most similar first, and other nodes of this lockfile last.
        by_similarity = sorted(
            others,
            key=lambda other: (
                other.hash in self._numbers,
                differing[other].bit_count(),
            ),
        )
        first = by_similarity[0]
        differences = [
            str(change) for change in self._changes(needed, differing[first])
        ]
        if first.hash in self._numbers:
            differences.append(A_NODE)
        return _of_node(node, "alike", by_similarity, differences)

    def _changes(self, needed: int, differing: int) -> Iterator[Change]:
        """Yield the dependencies that only one of node and spec has, by package."""
        of_node: defaultdict[str, list[str]] = defaultdict(list)
        of_spec: defaultdict[str, list[str]] = defaultdict(list)
        for (name, version), number in self._number_of_bit.items():
            if differing >> number & 1:
                side = of_node if needed >> number & 1 else of_spec
                side[name].append(version)
        for name in sorted(of_node.keys() | of_spec.keys()):
            versions_of_node = ", ".join(sorted(of_node[name])) or None
            versions_of_spec = ", ".join(sorted(of_spec[name])) or None
            yield Change(name, "", versions_of_node, versions_of_spec)


def _node_numbers(locked: Sequence[LockedSpec]) -> dict[str, int]:
    """Return the places of nodes in their lockfile, by hash."""
    return {node.hash: number for number, node in enumerate(locked)}


def _needs(locked: Sequence[LockedSpec], numbers: Mapping[str, int]) -> graph.Needs:
    """Return the run-time dependencies of a lockfile, by the numbers of its nodes."""
    edges = {}
    for node in locked:
        needed = [numbers[dag_hash] for dag_hash in node.needs if dag_hash in numbers]
        edges[numbers[node.hash]] = [
            graph.Edge(number, ("run",), ()) for number in needed
        ]
    return graph.Needs(edges, frozenset())


def _with_missing(
    locked: Sequence[LockedSpec], answers: Sequence[CoveredSpec]
) -> Iterator[CoveredSpec]:
    """Yield the answers; binaries that need a node without one are `incomplete`."""
    # Each node that lacks a binary has a bit of its own, and all other nodes have none.
    lacking = [
        number
        for number, answer in enumerate(answers)
        if answer.status not in ("binary", "installed")
    ]
    bits = dict.fromkeys(range(len(locked)), 0)
    for position, number in enumerate(lacking):
        bits[number] = 1 << position
    reach = Reach(_needs(locked, _node_numbers(locked)), bits)
    for number, answer in enumerate(answers):
        missing = reach.run_time(number) if answer.status == "binary" else 0
        if not missing:
            yield answer
            continue
        nodes = [
            answers[other]
            for position, other in enumerate(lacking)
            if missing >> position & 1
        ]
        needed = short_series([node.spec for node in nodes])
        yield replace(
            answer,
            status="incomplete",
            missing=tuple(node.title for node in nodes),
            reasons=(f"no binary of {needed}, which Spack would build first",),
        )
