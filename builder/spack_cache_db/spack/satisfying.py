"""Tests whether a concrete spec satisfies a query, by the records of its dependencies.

`hdf5 ^mpi %gcc@13` asks for an hdf5 that depends on a package which provides mpi and
was itself built with gcc 13. That needs the graph of specs: `SpecGraph.satisfies`
compares the root, and then looks for an edge of the graph for each edge of the query.

The order of edges and the rules are those of Spack 1.2 (`spec.py`: `_satisfies`,
`_get_satisfying_edge`, `_satisfies_edge`, `_satisfies_node`). `matching` compares
single values. `query/match` tests all specs of a database at once by the same rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.facts import LANGUAGES, LEGACY_COMPILERS, RUN_TIME
from spack_cache_db.spack.matching import flags_match, variant_matches, version_matches
from spack_cache_db.spack.nodes import Edge, Node, Use
from spack_cache_db.spack.normal_forms import split_compiler, variant_of
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint
from spack_cache_db.spack.targets import target_matches

_USE_OF_COMPILER = Use(("build",), LANGUAGES)
"""How a node from before Spack 1.0 uses the compiler that it names: in all languages.
"""


class VirtualVersionError(BuilderError, ValueError):
    """A query has a version of a virtual package, which no record has."""


class _Step(NamedTuple):
    """An edge of the graph, and the node to which it leads."""

    edge: Edge
    end: Node


class SpecGraph:
    """The concrete specs of one index or environment, and the edges between them.

    Args:
        hashes: the hashes of all nodes.
        node_of: returns the node with a hash; None if it is missing or unreadable.
    """

    def __init__(
        self, hashes: Iterable[str], node_of: Callable[[str], Node | None]
    ) -> None:
        self._hashes = hashes
        self._node_of = node_of

    def satisfies(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node and its dependencies satisfy a query.

        Raises:
            VirtualVersionError: the query has a version of a virtual package.
        """
        if not self._matches(node, query):
            return False
        return self._has_edges(node, query.dependencies)

    def _matches(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node matches a query, leaving its dependencies aside."""
        # A query with another name may ask for a virtual package, such as mpi. If the
        # node provides it, the rest of the query says nothing about the node itself.
        name = _todays_name(query)
        if name is not None and name != node.name:
            if (name, node.name) not in self._providers:
                return False
            _require_no_version(query)
            return True

        # The namespace, unless the record lacks it, and the architecture.
        if node.namespace is not None and query.namespace not in (None, node.namespace):
            return False
        if query.platform is not None and query.platform != node.platform:
            return False
        if query.os is not None and query.os != node.os:
            return False
        if not target_matches(query.target, node.target):
            return False

        # The hash, version, flags and variants.
        if query.hash is not None and not node.hash.startswith(query.hash):
            return False
        if not version_matches(query.versions, node.version):
            return False
        if query.flags and not flags_match(query.flags, _flags_of(node)):
            return False
        return all(self._has_variant(node, variant) for variant in query.variants)

    @cached_property
    def _providers(self) -> frozenset[tuple[str, str]]:
        """Pairs of a virtual package and a package that provides it in some edge.

        Such as `("mpi", "openmpi")`. Records do not show who could provide it, only who
        does.
        """
        providers = set()
        for dag_hash in self._hashes:
            node = self._node_of(dag_hash)
            if node is None:
                continue
            for edge in node.edges:
                for virtual in edge.use.virtuals:
                    providers.add((virtual, edge.name))
        return frozenset(providers)

    def _has_variant(self, node: Node, variant: VariantConstraint) -> bool:
        """Return whether a node satisfies a constraint on a variant.

        `++x` also applies to all nodes below. Nodes without this variant are skipped.
        """
        if not variant.propagate and variant.name not in node.parameters:
            return False
        nodes = self._with_all_below(node) if variant.propagate else [node]
        for candidate in nodes:
            if variant.name not in candidate.parameters:
                continue
            value = candidate.parameters[variant.name]
            if not variant_matches(variant, variant_of(variant.name, value)):
                return False
        return True

    def _with_all_below(self, node: Node) -> Iterator[Node]:
        """Yield a node and all its dependencies, of every type."""
        waiting = [node]
        visited = {node.hash}
        while waiting:
            current = waiting.pop()
            yield current
            for edge in current.edges:
                if edge.hash in visited:
                    continue
                visited.add(edge.hash)
                below = self._node_of(edge.hash)
                if below is not None:
                    waiting.append(below)

    def _has_edges(self, node: Node, edges: Iterable[Dependency]) -> bool:
        """Return whether a node has an edge for each edge of a query.

        As in Spack, the first dependency that matches `^x` has to satisfy its `%y` too:
        no other one is tried.
        """
        for edge in edges:
            if edge.when is not None and not self.satisfies(node, edge.when):
                continue
            end = self._first_end(node, edge)
            if end is None or not self._has_edges(end, edge.node.dependencies):
                return False
        return True

    def _first_end(self, node: Node, query: Dependency) -> Node | None:
        """Return the first dependency of a node that matches an edge of a query."""
        name = _todays_name(query.node)
        types = set(query.deptypes)
        for edge, end in self._steps(node, is_direct=query.direct):
            # Another name than that of the dependency is the name of a virtual package.
            virtuals = set(query.virtuals)
            is_virtual = name is not None and name != edge.name
            if is_virtual:
                virtuals.add(str(name))
            if not virtuals.issubset(edge.use.virtuals):
                continue
            if not types.issubset(edge.use.types):
                continue
            if is_virtual:
                _require_no_version(query.node)
                return end
            if self._matches(end, query.node):
                return end
        return None

    def _steps(self, node: Node, *, is_direct: bool) -> Iterator[_Step]:
        """Yield the edges to the dependencies of a node, in Spack's order.

        With `is_direct`, those of the node itself; else also all edges below that a
        binary needs at run time, the nearest first.
        """
        for edge in node.edges:
            yield _Step(edge, self._end(edge))
        # A node from before Spack 1.0 names its compiler, and has no edge to it.
        if node.compiler is not None:
            name, version = split_compiler(node.compiler)
            package = LEGACY_COMPILERS.get(name, name)
            compiler = _bare_node(package, version or "")
            yield _Step(Edge(package, "", _USE_OF_COMPILER), compiler)
        if is_direct:
            return

        # Breadth first, each dependency once.
        waiting = deque([node])
        visited = set()
        while waiting:
            current = waiting.popleft()
            for edge in current.edges:
                is_run_time = not RUN_TIME.isdisjoint(edge.use.types)
                if not is_run_time or edge.hash in visited:
                    continue
                visited.add(edge.hash)
                end = self._end(edge)
                waiting.append(end)
                yield _Step(edge, end)

    def _end(self, edge: Edge) -> Node:
        """Return the node at the end of an edge; only its name if it has no record."""
        return self._node_of(edge.hash) or _bare_node(edge.name)


def _todays_name(query: SpecQuery) -> str | None:
    """Return the name in a query, `llvm` for `clang`; None if it names no package."""
    if query.name is None:
        return None
    return LEGACY_COMPILERS.get(query.name, query.name)


def _require_no_version(query: SpecQuery) -> None:
    """Raise `VirtualVersionError` if a query has a version of a virtual package."""
    if query.versions is not None:
        spec = f"{query.name}@{query.versions.text}"
        raise VirtualVersionError(
            f"{spec} has a version of a virtual package, "
            "which no index has: leave the version out"
        )


def _flags_of(node: Node) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a node that are lists of values.

    The flags of compilers are among them; nobody asks for the others by this name.
    """
    flags = {}
    for name, value in node.parameters.items():
        if isinstance(value, tuple):
            flags[name] = value
    return flags


def _bare_node(name: str, version: str = "") -> Node:
    """Return a node of which only the name, and perhaps the version, is known."""
    return Node(name, version, hash="", platform="", os="", target="", parameters={})
