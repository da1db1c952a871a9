"""The specs that a spec reaches in a graph, as integers used as bit sets.

Two sets compare in one step, however many specs they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spack_cache_db.query.stored.graph import Needs


class Reach:
    """Computes dependencies in a graph as sets of bits.

    `bits` has the bits of each spec: several, or 0 for a spec that does not matter.
    Specs with the same bit count as one. By default each spec has one bit of its own,
    which `members` needs.
    """

    def __init__(self, graph: Needs, bits: Mapping[int, int] | None = None) -> None:
        self._graph = graph
        self._specs = list(graph.edges)
        self._bits = bits or {
            spec: 1 << number for number, spec in enumerate(self._specs)
        }
        self._run_time: dict[int, int] = {}

    def run_time(self, root: int) -> int:
        """Return a spec and its run-time dependencies at any depth.

        The graph is walked depth first, with a stack instead of recursion, because it
        may be deeper than Python allows. A spec is looked at twice: first to put its
        dependencies above it on the stack, and again when they are done.
        """
        reached = self._run_time
        dependencies_under_way: dict[int, list[int]] = {}
        ahead = [root]
        while ahead:
            spec = ahead[-1]
            if spec not in reached:
                # This value also ends cycles, which only a faulty index has.
                reached[spec] = self._bits[spec]
                edges = self._graph.edges[spec]
                dependencies = [edge.dependency for edge in edges if edge.is_run_time]
                dependencies_under_way[spec] = dependencies
                ahead += [other for other in dependencies if other not in reached]
                continue
            # All its dependencies have been reached. A spec with two parents may be on
            # the stack again when it is done; then there is nothing to add.
            ahead.pop()
            for dependency in dependencies_under_way.pop(spec, ()):
                reached[spec] |= reached[dependency]
        return reached[root]

    def used(self, root: int) -> int:
        """Return the `run_time` sets of a spec and of all its direct dependencies as
        one set.

        Direct dependencies include those for the build, whose own run-time
        dependencies were used to build the spec.
        """
        reached = self.run_time(root)
        for edge in self._graph.edges[root]:
            reached |= self.run_time(edge.dependency)
        return reached

    def not_in_all(self, sets: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the specs of each set that are not in all sets."""
        common = sets[0]
        for other in sets[1:]:
            common &= other
        return [self.members(bits & ~common) for bits in sets]

    def members(self, bits: int) -> tuple[int, ...]:
        """Return the specs of a set, if each spec has a bit of its own."""
        members = []
        while bits:
            # The lowest bit that is set; its position is the spec's number.
            lowest_bit = bits & -bits
            number = lowest_bit.bit_length() - 1
            members.append(self._specs[number])
            bits ^= lowest_bit
        return tuple(members)
