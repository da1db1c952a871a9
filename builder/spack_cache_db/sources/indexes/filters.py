"""Applies the filters of a mirror to the binaries of an index (`include_binary`,
`exclude_binary`).

A node is compared with a spec as in Spack 1.2 (`spec.py`: `_satisfies`,
`_get_satisfying_edge`, `_satisfies_edge`, `_satisfies_node`; `mirrors/mirror.py`:
`_spec_matches_filters`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.rows import IndexRecords
from spack_cache_db.spack.facts import LANGUAGES, LEGACY_COMPILERS
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.matching import flags_match, variant_matches, version_matches
from spack_cache_db.spack.nodes import Edge, Node, Use
from spack_cache_db.spack.normal_forms import split_compiler, variant_of
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint
from spack_cache_db.spack.targets import target_matches

_AT_RUN_TIME = {"link", "run"}
_COMPILER = Use(("build",), LANGUAGES)
"""Use of the compiler that a node up to specfile 4 names."""


def parse_filter(texts: Iterable[str]) -> tuple[SpecQuery, ...]:
    """Return the parsed specs of a filter; `IndexFault` names a spec that cannot be
    parsed.
    """
    specs = []
    for text in texts:
        try:
            specs.append(parse_query(text))
        except QuerySyntaxError as error:
            raise IndexFault(f"{text!r} is not a spec: {error}") from None
    return tuple(specs)


class Graph:
    """The records of one index as nodes, each decoded once."""

    def __init__(self, records: IndexRecords) -> None:
        self._records = records
        self._entries: dict[str, Entry | None] = {}

    def entry(self, dag_hash: str) -> Entry | None:
        """Return a record; None if it is missing or unreadable, which its reader
        reports.
        """
        if dag_hash not in self._entries:
            self._entries[dag_hash] = None
            with suppress(KeyError, IndexFault):
                self._entries[dag_hash] = self._records.entry(dag_hash)
        return self._entries[dag_hash]

    def node(self, dag_hash: str) -> Node | None:
        """Return the node of a record."""
        entry = self.entry(dag_hash)
        return entry.node if entry else None

    @cached_property
    def providers(self) -> frozenset[tuple[str, str]]:
        """Pairs of a virtual package and a package that provides it on an edge of the
        index.
        """
        nodes = filter(None, map(self.node, self._records))
        return frozenset(
            (virtual, edge.name)
            for node in nodes
            for edge in node.edges
            for virtual in edge.use.virtuals
        )

    def satisfies(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node satisfies a spec."""
        return self._is_like(node, query) and all(
            self._has_edge(node, edge) for edge in query.dependencies
        )

    def _has_edge(self, node: Node, query: Dependency) -> bool:
        """Return whether an edge matches a query, or the query's condition is false."""
        if query.when is not None and not self.satisfies(node, query.when):
            return True
        for end in self._ends(node, query):
            return all(self._has_edge(end, below) for below in query.node.dependencies)
        return False

    def _ends(self, node: Node, query: Dependency) -> Iterator[Node]:
        """Yield the ends of the edges that match a query."""
        name = LEGACY_COMPILERS.get(query.node.name or "", query.node.name)
        for edge, end in self._edges(node, is_direct=query.direct):
            is_virtual = name is not None and name != edge.name
            virtuals = {*query.virtuals, *([name] if is_virtual else [])}
            types, words = {*query.deptypes}, edge.use
            if virtuals.issubset(words.virtuals) and types.issubset(words.types):
                if is_virtual:
                    _require_no_version(query.node)
                if is_virtual or self._is_like(end, query.node):
                    yield end

    def _edges(self, node: Node, *, is_direct: bool) -> Iterator[tuple[Edge, Node]]:
        """Yield edges with their ends, in Spack's order; by default, also those at run
        time.
        """
        yield from ((edge, self._end(edge)) for edge in node.edges)
        if node.compiler is not None:
            name, version = split_compiler(node.compiler)
            name = LEGACY_COMPILERS.get(name, name)
            yield Edge(name, "", _COMPILER), _bare(name, version or "")
        waiting, visited = deque([] if is_direct else [node]), set[str]()
        while waiting:
            for edge in waiting.popleft().edges:
                if (
                    _AT_RUN_TIME.intersection(edge.use.types)
                    and edge.hash not in visited
                ):
                    visited.add(edge.hash)
                    end = self._end(edge)
                    waiting.append(end)
                    yield edge, end

    def _end(self, edge: Edge) -> Node:
        return self.node(edge.hash) or _bare(edge.name)

    def _is_like(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node matches a query without its dependencies."""
        name = LEGACY_COMPILERS.get(query.name or "", query.name)
        if name not in (None, node.name):
            if (name, node.name) in self.providers:
                _require_no_version(query)
                return True
            return False
        flags = {
            name: value
            for name, value in node.parameters.items()
            if isinstance(value, tuple)
        }
        return (
            (query.namespace in (None, node.namespace) or node.namespace is None)
            and node.hash.startswith(query.hash or "")
            and version_matches(query.versions, node.version)
            and query.platform in (None, node.platform)
            and query.os in (None, node.os)
            and (query.target is None or target_matches(query.target, node.target))
            and flags_match(query.flags, flags)
            and all(self._has_variant(node, variant) for variant in query.variants)
        )

    def _has_variant(self, node: Node, variant: VariantConstraint) -> bool:
        name = variant.name
        if not variant.propagate and name not in node.parameters:
            return False
        return all(
            variant_matches(variant, variant_of(name, below.parameters[name]))
            for below in (self._all_below(node) if variant.propagate else [node])
            if name in below.parameters
        )

    def _all_below(self, node: Node) -> Iterator[Node]:
        """Yield a node and all its dependencies, of every type."""
        waiting, visited = [node], {node.hash}
        while waiting:
            below = waiting.pop()
            yield below
            new = {edge.hash for edge in below.edges} - visited
            visited |= new
            waiting += filter(None, map(self.node, new))


class BinaryFilter(NamedTuple):
    """The specs of `include_binary` (empty for all) and of `exclude_binary`."""

    include: tuple[SpecQuery, ...] = ()
    exclude: tuple[SpecQuery, ...] = ()

    def left_out(self, records: IndexRecords) -> frozenset[str]:
        """Return the hashes of the binaries of an index that are left out."""
        if not (self.include or self.exclude):
            return frozenset()
        graph = Graph(records)
        nodes = (
            entry.node
            for entry in filter(None, map(graph.entry, records))
            if entry.is_binary
        )
        return frozenset(
            node.hash
            for node in nodes
            if (
                self.include
                and not any(graph.satisfies(node, query) for query in self.include)
            )
            or any(graph.satisfies(node, query) for query in self.exclude)
        )


def _require_no_version(query: SpecQuery) -> None:
    """Raise `IndexFault` if a query has a version of a virtual package."""
    if query.versions is not None:
        message = (
            f"{query.name}@{query.versions.text} has a version of a virtual package"
        )
        raise IndexFault(f"{message}, which no index has: leave the version out")


def _bare(name: str, version: str = "") -> Node:
    """Return a node with only a name, and perhaps a version."""
    return Node(name, version, "", "", "", "", {})
