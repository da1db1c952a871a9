"""Reads the nodes of a `spack.lock`, with names as build caches print them.

The formats are those of Spack 1.2's `environment/__init__.py`. Nodes are keyed by the
hash of their binaries, and in versions 2 and 3 by another hash of their builds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spack_cache_db.environments.decoding import decoded
from spack_cache_db.environments.model import Environment, LockedSpec
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.nodes import (
    Node,
    compiler_of,
    configuration_of,
    read_node,
    require_hash,
)

RUN_TIME = ("link", "run")
"""The types of dependencies that a spec needs to run."""

VERSIONS = range(1, 8)
"""The versions of lockfiles that Spack 0.12 to 1.2 write."""

_BROKEN = (
    "is not among its concrete_specs: the lockfile is broken; "
    "make it again with 'spack concretize'"
)

Nodes = Mapping[str, Node]
"""Nodes by key and by hash: before Spack 0.18, edges use either."""


def read_lock_file(data: bytes, path: str, max_nodes: int) -> Environment:
    """Return the content of an included lockfile; `LineFault` if it cannot be read."""
    try:
        return read_lock(_mapping(json.loads(decoded(data, path)), "it"), max_nodes)
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None
    except (ValueError, RecursionError):
        raise LineFault(0, "broken JSON, expected a whole spack.lock", path) from None


def read_lock(data: Mapping[str, Any], max_nodes: int) -> Environment:
    """Return the content of a lockfile; `LineFault` if its version is unknown or it is
    faulty.
    """
    version = _mapping(data.get("_meta"), "_meta").get("lockfile-version")
    if not isinstance(version, int) or version not in VERSIONS:
        versions = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise LineFault(
            0, f"has the lockfile version {version!r}, expected one of {versions}"
        )
    records: dict[str, Any] = {}
    roots: list[str] = []
    for graph in _graphs(data):
        records = {**_mapping(graph.get("concrete_specs"), "concrete_specs"), **records}
        roots += _roots(graph)
    nodes = _read(records, max_nodes)
    _check_edges(nodes)
    return _lock(nodes, roots)


def _graphs(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a graph and its included graphs, recursively."""
    yield data
    for path, graph in _mapping(
        data.get("include_concrete", {}), "include_concrete"
    ).items():
        yield from _graphs(_mapping(graph, f"include_concrete of {path}"))


def read_nodes(data: Sequence[Any], max_nodes: int) -> Environment:
    """Return the nodes of `spack find --json` or `spack spec --json` as an environment.

    Edges to other nodes, such as the compiler, are left out.

    Raises:
        LineFault: one of them is not a node.
    """
    records = {str(_mapping(record, "a spec").get("hash")): record for record in data}
    return _lock(_read(records, max_nodes), [*records])


def _read(records: Mapping[str, Any], max_nodes: int) -> Nodes:
    if len(records) > max_nodes:
        raise LineFault(
            0, f"has {len(records):,} specs, expected at most {max_nodes:,}"
        )
    nodes: dict[str, Node] = {}
    for key, record in records.items():
        try:
            nodes[key] = read_node(record, set(), key)
            require_hash(nodes[key].hash)
        except ValueError as error:
            raise LineFault(0, f"the spec {key:.60}: {error}") from None
    return {record.hash: record for record in nodes.values()} | nodes


def _check_edges(nodes: Nodes) -> None:
    """Raise `LineFault` if a dependency is not a node, or a node depends on itself."""
    dependencies: dict[str, list[str]] = {}
    for node in nodes.values():
        edges = [(edge.name, edge.hash) for edge in node.edges]
        for name, key in (*edges, *([node.build_spec] if node.build_spec else ())):
            if key not in nodes:
                raise LineFault(0, f"{node.name} needs {name} /{key}, which {_BROKEN}")
        dependencies[node.hash] = [nodes[key].hash for _, key in edges]
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        message = f"the spec {error.args[1][0]} needs itself: the lockfile is broken"
        raise LineFault(0, message) from None


def _lock(nodes: Nodes, roots: Sequence[str]) -> Environment:
    if missing := [key for key in roots if key not in nodes]:
        raise LineFault(0, f"has the root /{missing[0]}, which {_BROKEN}")
    root_hashes = [*dict.fromkeys(nodes[key].hash for key in roots)]
    order = {dag_hash: index for index, dag_hash in enumerate(root_hashes)}
    distinct = {node.hash: node for node in nodes.values()}
    built = [node for node in distinct.values() if node.external is None]
    built.sort(
        key=lambda node: (order.get(node.hash, len(order)), node.name, node.hash)
    )
    specs = tuple(_locked(node, nodes, is_root=node.hash in order) for node in built)
    count = len(distinct) - len(built)
    externals = f"{count:,} externals need" if count > 1 else "one external needs"
    notes = (f"{externals} no binary; left out",) if count else ()
    return Environment((), notes, specs, is_lock=True)


def _roots(graph: Mapping[str, Any]) -> Iterator[str]:
    roots = graph.get("roots", [])
    if not isinstance(roots, list):
        raise LineFault(0, "roots is not a list, expected one of hashes and specs")
    for root in roots:
        yield str(_mapping(root, "a root").get("hash"))


def _locked(node: Node, nodes: Nodes, *, is_root: bool) -> LockedSpec:
    run_time = {
        nodes[edge.hash].hash: nodes[edge.hash]
        for edge in node.edges
        if edge.hash in nodes and not set(RUN_TIME).isdisjoint(edge.use.types)
    }
    externals = [needed for needed in run_time.values() if needed.external is not None]
    try:
        configuration = configuration_of(node, compiler_of(node, nodes.get))
    except ValueError as error:
        raise LineFault(0, f"{node.name}: {error}") from None
    return LockedSpec(
        node.hash,
        configuration,
        is_root,
        tuple(key for key, needed in run_time.items() if needed.external is None),
        tuple((needed.name, needed.version) for needed in externals),
    )


def _mapping(value: Any, subject: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LineFault(
            0, f"{subject} is not an object, expected a spack.lock as Spack writes it"
        )
    return value
