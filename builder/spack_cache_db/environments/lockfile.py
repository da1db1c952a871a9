"""A `spack.lock` → the nodes of its graph, with names as build caches print them.

The format of each version is that of Spack 1.2's `environment/__init__.py`: nodes are keyed by a
hash of their builds in versions 2 and 3, which is not the one under which binaries are known, and
by that one in the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spack_cache_db.environments import Environment, LockedSpec, decoded
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.nodes import (
    Node,
    compiler_of,
    configuration_of,
    read_node,
    require_hash,
)

RUN_TIME = ("link", "run")
"""The types of edges to what a spec needs to run."""

VERSIONS = range(1, 8)
"""The versions of lockfiles that Spack 0.12 to 1.2 write."""

_BROKEN = (
    "is not among its concrete_specs: the lockfile is broken; make it anew with 'spack concretize'"
)

Nodes = Mapping[str, Node]
"""Nodes by their keys and by their hashes: before Spack 0.18, edges name either."""


def read_lock_file(data: bytes, path: str, most: int) -> Environment:
    """Return what a lockfile asks for that an environment includes.

    Args:
        data: the file.
        path: its path, which messages name.
        most: the most nodes that it may have.

    Raises:
        LineFault: it is no lockfile of a version that is known.
    """
    try:
        return read_lock(_mapping(json.loads(decoded(data, path)), "it"), most)
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None
    except (ValueError, RecursionError):
        raise LineFault(0, "broken JSON, expected a whole spack.lock", path) from None


def read_lock(data: Mapping[str, Any], most: int) -> Environment:
    """Return what a lockfile asks for.

    Args:
        data: the decoded JSON.
        most: the most nodes that it may have.

    Raises:
        LineFault: it is no lockfile of a version that is known.
    """
    version = _mapping(data.get("_meta"), "_meta").get("lockfile-version")
    if not isinstance(version, int) or version not in VERSIONS:
        known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise LineFault(0, f"has the lockfile version {version!r}, expected one of {known}")
    said: dict[str, Any] = {}
    roots: list[str] = []
    for graph in _graphs(data):
        said = {**_mapping(graph.get("concrete_specs"), "concrete_specs"), **said}
        roots += _roots(graph)
    nodes = _read(said, most)
    _check_edges(nodes)
    return _lock(nodes, roots)


def _graphs(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a graph and those that it includes, which may include others."""
    yield data
    for path, graph in _mapping(data.get("include_concrete", {}), "include_concrete").items():
        yield from _graphs(_mapping(graph, f"include_concrete of {path}"))


def read_nodes(data: Sequence[Any], most: int) -> Environment:
    """Return what nodes ask for that `spack find --json` or `spack spec --json` prints.

    Edges to what is not among them, which may be the compiler, are left out.

    Args:
        data: the decoded nodes, each with its hash.
        most: the most nodes that there may be.

    Raises:
        LineFault: one of them is no node.
    """
    said = {str(_mapping(each, "a spec").get("hash")): each for each in data}
    return _lock(_read(said, most), [*said])


def _read(said: Mapping[str, Any], most: int) -> Nodes:
    if len(said) > most:
        raise LineFault(0, f"has {len(said):,} specs, expected at most {most:,}")
    nodes: dict[str, Node] = {}
    for key, node in said.items():
        try:
            nodes[key] = read_node(node, set(), key)
            require_hash(nodes[key].hash)
        except ValueError as error:
            raise LineFault(0, f"the spec {key:.60}: {error}") from None
    return {node.hash: node for node in nodes.values()} | nodes


def _check_edges(nodes: Nodes) -> None:
    """Check that every dependency is a node, and that no node needs itself.

    Raises:
        LineFault: the lockfile is broken, and Spack cannot read it either.
    """
    needed: dict[str, list[str]] = {}
    for node in nodes.values():
        edges = [(edge.name, edge.hash) for edge in node.edges]
        for name, key in (*edges, *([node.build_spec] if node.build_spec else ())):
            if key not in nodes:
                raise LineFault(0, f"{node.name} needs {name} /{key}, which {_BROKEN}")
        needed[node.hash] = [nodes[key].hash for _, key in edges]
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        raise LineFault(
            0, f"the spec {error.args[1][0]} needs itself: the lockfile is broken"
        ) from None


def _lock(nodes: Nodes, roots: Sequence[str]) -> Environment:
    if missing := [key for key in roots if key not in nodes]:
        raise LineFault(0, f"has the root /{missing[0]}, which {_BROKEN}")
    order = {
        dag_hash: at for at, dag_hash in enumerate(dict.fromkeys(nodes[key].hash for key in roots))
    }
    distinct = {node.hash: node for node in nodes.values()}
    kept = [node for node in distinct.values() if node.external is None]
    kept.sort(key=lambda each: (order.get(each.hash, len(order)), each.name, each.hash))
    specs = tuple(_locked(each, nodes, is_root=each.hash in order) for each in kept)
    external = len(distinct) - len(kept)
    notes = [f"{external:,} externals need no binary, and are left out"] if external > 1 else []
    notes += ["one external needs no binary, and is left out"] if external == 1 else []
    return Environment((), tuple(notes), specs, is_lock=True)


def _roots(graph: Mapping[str, Any]) -> Iterator[str]:
    roots = graph.get("roots", [])
    if not isinstance(roots, list):
        raise LineFault(0, "roots is no list, expected one of hashes and specs")
    for root in roots:
        yield str(_mapping(root, "a root").get("hash"))


def _locked(node: Node, nodes: Nodes, *, is_root: bool) -> LockedSpec:
    needed = {
        nodes[edge.hash].hash: nodes[edge.hash]
        for edge in node.edges
        if edge.hash in nodes and any(each in RUN_TIME for each in edge.use.types)
    }
    try:
        configuration = configuration_of(node, compiler_of(node, nodes.get))
    except ValueError as error:
        raise LineFault(0, f"{node.name}: {error}") from None
    return LockedSpec(
        node.hash,
        configuration,
        is_root,
        tuple(key for key, each in needed.items() if each.external is None),
        tuple((each.name, each.version) for each in needed.values() if each.external is not None),
    )


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LineFault(0, f"{what} is no object, expected a spack.lock as Spack writes it")
    return value
