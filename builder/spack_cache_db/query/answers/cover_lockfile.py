"""Answers the nodes of a lockfile: the binary of each hash, or binaries like it.

A lockfile names its binaries by their hashes, and installing by hash is not restricted
by the rules of Spack's solver. But Spack installs a binary together with what it links
and runs, so a node is `incomplete` if a node that it needs has no binary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from spack_cache_db.environments.model import LockedSpec
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.answers.similar_binaries import (
    Comparison,
    node_needs,
    node_numbers,
)
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
"""The configurations of the specs that have some hashes."""
MOST_OTHERS = 5
"""Maximum of other binaries that an answer lists."""


def lockfile_answers(
    candidates: Candidates, locked: tuple[LockedSpec, ...]
) -> list[CoveredSpec]:
    """Return the answers for the nodes of a lockfile, in their order.

    Args:
        candidates: the database, and the scope in which binaries count.
        locked: the nodes.
    """
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
    # Find the hashes with a binary, and those that an installation has.
    ids = _configurations_of(lookups, [node.hash for node in locked])
    binary_hashes = _hashes(_binaries(lookups, ids, scope))
    installed_hashes: set[str] = set()
    for installation in lookups.trees(condition_value(scope, "release")):
        within = within_release(scope, installation)
        installed_hashes |= _hashes(_binaries(lookups, ids, within))

    # For the other nodes, find the binaries of their configurations.
    without_binary = [node for node in locked if node.hash not in binary_hashes]
    row_ids = _row_ids(candidates, {node.configuration for node in without_binary})
    binaries_of_row = _binaries(lookups, row_ids.values(), scope)
    comparison = Comparison(lookups, locked, _ids(binaries_of_row))

    for node in locked:
        if node.hash in installed_hashes:
            yield _of_node(node, "installed")
            continue
        if node.hash in binary_hashes:
            yield _of_node(node, "binary")
            continue
        binaries: list[Spec] = []
        if node.configuration in row_ids:
            binaries = binaries_of_row.get(row_ids[node.configuration], [])
        if not binaries:
            yield _of_node(node, "missing")
            continue
        similar = comparison.similar_to(node, binaries)
        yield _of_node(node, similar.status, similar.binaries, similar.differences)


def _configurations_of(lookups: Lookups, hashes: Sequence[str]) -> list[int]:
    """Return the ids of the configurations of the specs that have some hashes."""
    ids: list[int] = []
    for piece in json_pieces(hashes, HASHES_AT_ONCE):
        ids.extend(key for (key,) in select(lookups.conn, OF_HASHES, hashes=piece))
    return ids


def _binaries(
    lookups: Lookups, ids: Iterable[int], scope: Conditions
) -> dict[int, list[Spec]]:
    """Return the specs of configurations in a scope, without externals, by
    configuration.
    """
    externals = graph.externals(lookups)
    binaries = {}
    for configuration_id, specs in specs_in_scope(lookups.conn, ids, scope).items():
        binaries[configuration_id] = [
            spec for spec in specs if spec.id not in externals
        ]
    return binaries


def _ids(binaries: Mapping[int, Sequence[Spec]]) -> list[int]:
    return [spec.id for spec in chain.from_iterable(binaries.values())]


def _hashes(binaries: Mapping[int, Sequence[Spec]]) -> set[str]:
    return {spec.hash for spec in chain.from_iterable(binaries.values())}


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
    differences: tuple[str, ...] = (),
) -> CoveredSpec:
    """Return the answer for a node; `others` are binaries of its configuration."""
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
        differences=differences,
    )


def _with_missing(
    locked: Sequence[LockedSpec], answers: Sequence[CoveredSpec]
) -> Iterator[CoveredSpec]:
    """Yield the answers; binaries that need a node without one are `incomplete`."""
    # Nodes are given by their positions. Each node that lacks a binary has a bit of its
    # own, so a set of bits is the nodes that are missing for another node.
    lacking = [
        number
        for number, answer in enumerate(answers)
        if answer.status not in ("binary", "installed")
    ]
    bits = dict.fromkeys(range(len(locked)), 0)
    for position, number in enumerate(lacking):
        bits[number] = 1 << position
    reach = Reach(node_needs(locked, node_numbers(locked)), bits)

    for number, answer in enumerate(answers):
        missing_bits = reach.run_time(number) if answer.status == "binary" else 0
        if not missing_bits:
            yield answer
            continue
        missing = [
            answers[other]
            for position, other in enumerate(lacking)
            if missing_bits >> position & 1
        ]
        names = short_series([other.spec for other in missing])
        yield replace(
            answer,
            status="incomplete",
            missing=tuple(other.title for other in missing),
            reasons=(f"no binary of {names}, which Spack would build first",),
        )
