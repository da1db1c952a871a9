"""Compares a node of a lockfile with the binaries of its configuration.

No mirror may have the hash of the node `hdf5@1.14.6`, but binaries with the same
version, variants, compiler and target. Their run-time dependencies tell whether one of
them may stand in for the node: it is `rebuilt` if they have the same packages and
versions, and only `alike` if `zlib-ng` is 2.2.4 in one and 2.2.5 in the other.

Dependencies are compared as sets of bits, each of which is a package with a version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from spack_cache_db.environments.model import LockedSpec
from spack_cache_db.query.answers.differences import Change
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.query.stored.reach import Reach

A_NODE = "it is another node of this lockfile"
"""The last of the differences, if the first binary is a node itself."""


class Similar(NamedTuple):
    """The binaries of a node's configuration.

    Attributes:
        status: `rebuilt` if one may stand in for the node; otherwise `alike`.
        binaries: those that may stand in for it, or else all, the most similar first.
        differences: the differences between the node and the first of them, such as
            `zlib-ng 2.2.4 → 2.2.5`; none if it is `rebuilt`.
    """

    status: Literal["rebuilt", "alike"]
    binaries: list[Spec]
    differences: tuple[str, ...] = ()


class Comparison:
    """Compares the run-time dependencies of nodes and binaries.

    Args:
        lookups: the database.
        locked: the nodes of the lockfile.
        binaries: the ids of the binaries with which nodes are compared.
    """

    def __init__(
        self, lookups: Lookups, locked: tuple[LockedSpec, ...], binaries: list[int]
    ) -> None:
        # The number of the bit of each package with its version, on both sides.
        self._number_of_bit: dict[tuple[str, str], int] = {}
        self._numbers = node_numbers(locked)

        # What the binaries need, of those whose dependencies the database has.
        self._recorded = frozenset(graph.recorded_specs(lookups.conn, binaries))
        needs = graph.read_run_time(lookups, self._recorded)
        bits_of_specs = {}
        for spec, node in graph.read_nodes(lookups.conn, needs.edges).items():
            bits_of_specs[spec] = self._bit(node.package, node.version)
        self._of_specs = Reach(needs, bits_of_specs)

        # What the nodes need. Externals are not nodes, but have bits in the nodes that
        # use them.
        bits_of_nodes = {}
        for number, locked_spec in enumerate(locked):
            configuration = locked_spec.configuration
            bits = self._bit(configuration.package, configuration.version)
            for package, version in locked_spec.externals:
                bits |= self._bit(package, version)
            bits_of_nodes[number] = bits
        self._of_nodes = Reach(node_needs(locked, self._numbers), bits_of_nodes)

    def _bit(self, package: str, version: str) -> int:
        """Return the bit of a package with its version, a new one if it is new."""
        next_number = len(self._number_of_bit)
        number = self._number_of_bit.setdefault((package, version), next_number)
        return 1 << number

    def similar_to(self, node: LockedSpec, binaries: list[Spec]) -> Similar:
        """Return how similar the binaries of a node's configuration are to it."""
        needed = self._of_nodes.run_time(self._numbers[node.hash])
        # Find the dependencies that only the node or only the binary has. Binaries
        # whose dependencies are not known count as equal.
        differing: dict[Spec, int] = {}
        for binary in binaries:
            differing[binary] = 0
            if binary.id in self._recorded:
                differing[binary] = needed ^ self._of_specs.run_time(binary.id)

        # A binary that is itself a node of this lockfile cannot stand in for another
        # node.
        equal = [
            binary
            for binary in binaries
            if not differing[binary] and binary.hash not in self._numbers
        ]
        if equal:
            return Similar("rebuilt", equal)

        # The binary with the fewest differences first, and other nodes last.
        by_similarity = sorted(
            binaries, key=lambda binary: differing[binary].bit_count()
        )
        by_similarity.sort(key=lambda binary: binary.hash in self._numbers)
        first = by_similarity[0]
        changes = self._changes(needed, differing[first])
        differences = [str(change) for change in changes]
        if first.hash in self._numbers:
            differences.append(A_NODE)
        return Similar("alike", by_similarity, tuple(differences))

    def _changes(self, needed: int, differing: int) -> Iterator[Change]:
        """Yield the dependencies that only the node or only the binary has.

        Args:
            needed: the dependencies of the node, as bits.
            differing: the dependencies that only one of them has, as bits.
        """
        # Collect the versions of each package.
        of_node: defaultdict[str, list[str]] = defaultdict(list)
        of_binary: defaultdict[str, list[str]] = defaultdict(list)
        for (package, version), number in self._number_of_bit.items():
            if differing >> number & 1:
                side = of_node if needed >> number & 1 else of_binary
                side[package].append(version)
        for package in sorted(of_node.keys() | of_binary.keys()):
            versions_of_node = ", ".join(sorted(of_node[package])) or None
            versions_of_binary = ", ".join(sorted(of_binary[package])) or None
            yield Change(package, "", versions_of_node, versions_of_binary)


def node_numbers(locked: Sequence[LockedSpec]) -> dict[str, int]:
    """Return the positions of nodes in their lockfile, by hash."""
    return {node.hash: number for number, node in enumerate(locked)}


def node_needs(locked: Sequence[LockedSpec], numbers: Mapping[str, int]) -> graph.Needs:
    """Return the run-time dependencies of a lockfile as a graph of the positions of its
    nodes.
    """
    edges = {}
    for node in locked:
        needed = [numbers[dag_hash] for dag_hash in node.needs if dag_hash in numbers]
        edges[numbers[node.hash]] = [
            graph.Edge(number, types=("run",), virtuals=()) for number in needed
        ]
    return graph.Needs(edges, missing=frozenset())
