"""Which binaries of an index a mirror leaves out (`include_binary` and `exclude_binary`).

A node is compared with a spec as in Spack 1.2 (`spec.py`: `_satisfies`, `_get_satisfying_edge`,
`_satisfies_edge`, `_satisfies_node`; `mirrors/mirror.py`: `_spec_matches_filters`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from spack_cache_db.sources.indexes import Address, Arch, IndexFault, SpecNode
from spack_cache_db.sources.indexes.index_reader import read_arch, use_of
from spack_cache_db.sources.indexes.index_records import IndexRecords
from spack_cache_db.sources.strictness import BROKEN
from spack_cache_db.spack.constraints import (
    LEGACY_COMPILERS,
    Dependency,
    SpecQuery,
    VariantConstraint,
    flags_match,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.normal_forms import LANGUAGES, Variant, split_compiler
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import target_matches

_EVERY_TYPE = frozenset(("build", "link", "run", "test"))
_AT_RUN_TIME = frozenset(("link", "run"))
_PARAMETERS = msgspec.json.Decoder(dict[str, bool | str | tuple[str, ...]])


class Edge(NamedTuple):
    """An edge of a node; `node` is None if the index has no record of the dependency."""

    name: str
    hash: str
    types: frozenset[str]
    virtuals: frozenset[str]


class Node(NamedTuple):
    """The parts of a record that a spec can constrain."""

    name: str
    version: str
    hash: str = ""
    namespace: str | None = None
    arch: Arch | None = None
    parameters: Mapping[str, Any] = {}
    variants: Mapping[str, Variant] = {}
    compiler: tuple[str, str | None] | None = None
    edges: tuple[Edge, ...] = ()


def parse_filter(texts: Iterable[str]) -> tuple[SpecQuery, ...]:
    """Return the specs of a filter; `ValueError` names one that cannot be read."""
    found = []
    for text in texts:
        try:
            found.append(parse_query(text))
        except QuerySyntaxError as error:
            raise ValueError(f"{text!r} is not a spec: {error}") from None
    return tuple(found)


class Graph:
    """The records of one index as nodes, each decoded once."""

    def __init__(self, records: IndexRecords) -> None:
        self._records = records
        self._nodes: dict[str, Node | None] = {}

    def node(self, dag_hash: str) -> Node | None:
        """Return a node; None if the index has no record of it that can be read."""
        if dag_hash not in self._nodes:
            try:
                self._nodes[dag_hash] = node_of(self._records.entry(dag_hash).node)
            except (KeyError, IndexFault, *BROKEN):
                self._nodes[dag_hash] = None
        return self._nodes[dag_hash]

    @cached_property
    def providers(self) -> frozenset[tuple[str, str]]:
        """Each virtual package with each package that provides it on some edge of the index."""
        nodes = filter(None, map(self.node, self._records))
        return frozenset(
            (virtual, edge.name)
            for node in nodes
            for edge in node.edges
            for virtual in edge.virtuals
        )

    def satisfies(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node satisfies a spec."""
        return self._is_like(node, query) and all(
            self._has_edge(node, edge) for edge in query.dependencies
        )

    def _has_edge(self, node: Node, asked: Dependency) -> bool:
        """Return whether a node has an edge as asked, or the edge's condition does not hold."""
        if asked.when is not None and not self.satisfies(node, asked.when):
            return True
        for end in self._ends(node, asked):
            return all(self._has_edge(end, below) for below in asked.node.dependencies)
        return False

    def _ends(self, node: Node, asked: Dependency) -> Iterator[Node]:
        """Yield the ends of the edges that are as asked, in the order in which Spack tries them."""
        for edge in node.edges:
            yield from self._end(edge, asked)
        if node.compiler is not None:
            name, version = node.compiler
            compiler = Node(name, version or "")
            edge = Edge(name, "", frozenset(("build",)), frozenset(LANGUAGES))
            yield from self._end(edge, asked, compiler)
        if asked.direct:
            return
        waiting = deque(edge for edge in node.edges if edge.types & _AT_RUN_TIME)
        seen = {edge.hash for edge in waiting}
        while waiting:
            edge = waiting.popleft()
            yield from self._end(edge, asked)
            below = self.node(edge.hash)
            for deeper in below.edges if below else ():
                if deeper.types & _AT_RUN_TIME and deeper.hash not in seen:
                    seen.add(deeper.hash)
                    waiting.append(deeper)

    def _end(self, edge: Edge, asked: Dependency, end: Node | None = None) -> Iterator[Node]:
        """Yield the end of an edge if the edge is as asked."""
        name = _package(asked.node.name)
        is_virtual = name is not None and name != edge.name
        if is_virtual and name not in edge.virtuals:
            return
        if not edge.virtuals.issuperset(asked.virtuals) or not edge.types.issuperset(
            asked.deptypes
        ):
            return
        found = end or self.node(edge.hash) or Node(edge.name, "")
        if is_virtual:
            _require_no_version(asked.node)
            yield found
        elif self._is_like(found, asked.node):
            yield found

    def _is_like(self, node: Node, query: SpecQuery) -> bool:
        """Return whether a node is as asked, dependencies left aside."""
        name = _package(query.name)
        if name not in (None, node.name):
            if (name, node.name) in self.providers:
                _require_no_version(query)
                return True
            return False
        arch = node.arch
        return (
            (query.namespace in (None, node.namespace) or node.namespace is None)
            and node.hash.startswith(query.hash or "")
            and version_matches(query.versions, node.version)
            and (arch is not None or (query.platform, query.os, query.target) == (None, None, None))
            and (arch is None or _is_for(arch, query))
            and flags_match(query.flags, node.parameters)
            and all(self._has_variant(node, each) for each in query.variants)
        )

    def _has_variant(self, node: Node, asked: VariantConstraint) -> bool:
        if not asked.propagate:
            return asked.name in node.variants and variant_matches(asked, node.variants[asked.name])
        return all(
            variant_matches(asked, each.variants[asked.name])
            for each in self._all_below(node)
            if asked.name in each.variants
        )

    def _all_below(self, node: Node) -> Iterator[Node]:
        """Yield a node and all its dependencies, of every type."""
        waiting, seen = [node], {node.hash}
        while waiting:
            each = waiting.pop()
            yield each
            new = {edge.hash for edge in each.edges} - seen
            seen |= new
            waiting += filter(None, map(self.node, new))


class BinaryFilter(NamedTuple):
    """The specs whose binaries a mirror takes, all if there are none, and those it leaves out."""

    include: tuple[SpecQuery, ...] = ()
    exclude: tuple[SpecQuery, ...] = ()

    @classmethod
    def parsed(cls, address: Address) -> BinaryFilter:
        """Return the filter in the address of a mirror; `IndexFault` if a spec cannot be read."""
        try:
            return cls(parse_filter(address.include_binary), parse_filter(address.exclude_binary))
        except ValueError as error:
            raise IndexFault(str(error)) from None

    def leaves_out(self, graph: Graph, dag_hash: str) -> bool:
        """Return whether a binary of an index is left out."""
        node = graph.node(dag_hash)
        if node is None:
            return False
        if self.include and not any(graph.satisfies(node, each) for each in self.include):
            return True
        return any(graph.satisfies(node, each) for each in self.exclude)


def node_of(node: SpecNode) -> Node:
    """Return the record of a node as it is compared; `BROKEN` if it cannot be read."""
    compiler: tuple[str, str | None] | None = None
    if node.compiler is not UNSET:
        compiler = node.compiler.name, node.compiler.version
    elif node.annotations is not UNSET and node.annotations.compiler is not UNSET:
        compiler = split_compiler(node.annotations.compiler)
    edges = []
    for each in node.edges:
        use = use_of(each.type if each.parameters is UNSET else bytes(each.parameters))
        edges.append(Edge(each.name, each.hash, frozenset(use.types), frozenset(use.virtuals)))
    parameters, variants = _parameters(bytes(node.parameters))
    return Node(
        node.name,
        node.version,
        node.hash,
        node.namespace,
        read_arch(bytes(node.arch)),
        parameters,
        variants,
        compiler and (LEGACY_COMPILERS.get(compiler[0], compiler[0]), compiler[1]),
        tuple(edges),
    )


@lru_cache(maxsize=65536)
def _parameters(text: bytes) -> tuple[Mapping[str, Any], Mapping[str, Variant]]:
    values = _PARAMETERS.decode(text)
    return values, {name: _variant(name, value) for name, value in values.items()}


def _variant(name: str, value: bool | str | tuple[str, ...]) -> Variant:
    if isinstance(value, bool):
        return Variant(name, (str(value),), "bool")
    if isinstance(value, str):
        return Variant(name, (value,), "single")
    return Variant(name, tuple(sorted(value)), "multi")


def _require_no_version(query: SpecQuery) -> None:
    """Raise `IndexFault` if a version is asked of a virtual package."""
    if query.versions is not None:
        words = f"{query.name}@{query.versions.text} asks for a version of a virtual package"
        raise IndexFault(f"{words}, which no index has: leave the version out")


def _package(name: str | None) -> str | None:
    return None if name is None else LEGACY_COMPILERS.get(name, name)


def _is_for(arch: Arch, query: SpecQuery) -> bool:
    target = arch.target if isinstance(arch.target, str) else arch.target.name
    return (
        query.platform in (None, arch.platform)
        and query.os in (None, arch.platform_os)
        and target_matches(query.target, target)
    )
