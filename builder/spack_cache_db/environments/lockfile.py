"""Reads the nodes of a `spack.lock`, with names as build caches print them.

A lockfile lists every spec of an environment with its dependencies:

    {"_meta": {"lockfile-version": 6},
     "roots": [{"hash": "nekvq6z…", "spec": "hdf5+mpi"}],
     "concrete_specs": {"nekvq6z…": {"name": "hdf5", "version": "1.14.5", …}, …}}

The formats are those of Spack 1.2's `environment/__init__.py`. Nodes are keyed by the
hash of their binaries, and in versions 2 and 3 by another hash of their builds. Faults
have the line 0, because decoded JSON has no line numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spack_cache_db.environments.decoding import decoded
from spack_cache_db.environments.model import Environment, LockedSpec
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.facts import RUN_TIME
from spack_cache_db.spack.nodes import (
    Node,
    compiler_of,
    configuration_of,
    read_node,
    require_hash,
)

VERSIONS = range(1, 8)
"""The versions of lockfiles that Spack 0.12 to 1.2 write."""

_BROKEN = (
    "is not among its concrete_specs: the lockfile is broken; "
    "make it again with 'spack concretize'"
)

Nodes = Mapping[str, Node]
"""Nodes by their keys in the lockfile, and by their hashes as well.

Before Spack 0.18, these differ, and an edge names its node by either.
"""


def read_lock_file(data: bytes, path: str, max_nodes: int) -> Environment:
    """Return the content of an included lockfile; `LineFault` if it cannot be read.

    Args:
        data: its bytes.
        path: its path in messages.
        max_nodes: the maximum number of its nodes.
    """
    try:
        lock = _mapping(json.loads(decoded(data, path)), "it")
        return read_lock(lock, max_nodes)
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None
    except (ValueError, RecursionError):
        raise LineFault(0, "broken JSON, expected a whole spack.lock", path) from None


def read_lock(data: Mapping[str, Any], max_nodes: int) -> Environment:
    """Return the content of a decoded lockfile.

    Raises:
        LineFault: its version is unknown, or it is not as Spack writes it.
    """
    version = _mapping(data.get("_meta"), "_meta").get("lockfile-version")
    if not isinstance(version, int) or version not in VERSIONS:
        versions = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        message = f"has the lockfile version {version!r}, expected one of {versions}"
        raise LineFault(0, message)

    # Included lockfiles may repeat a spec; the record of the including one counts.
    records: dict[str, Any] = {}
    root_keys: list[str] = []
    for graph in _graphs(data):
        specs = _mapping(graph.get("concrete_specs"), "concrete_specs")
        records = {**specs, **records}
        root_keys.extend(_root_keys(graph))

    nodes = _read_nodes(records, max_nodes)
    _check_edges(nodes)
    return _locked_environment(nodes, root_keys)


def read_nodes(data: Sequence[Any], max_nodes: int) -> Environment:
    """Return the nodes of `spack find --json` or `spack spec --json` as an environment.

    Each is a root. Edges to nodes that the output lacks, such as the compiler, are left
    out.

    Raises:
        LineFault: one of them is not a node, or there are too many.
    """
    records: dict[str, Any] = {}
    for record in data:
        dag_hash = _mapping(record, "a spec").get("hash")
        records[str(dag_hash)] = record
    nodes = _read_nodes(records, max_nodes)
    return _locked_environment(nodes, list(records))


def _graphs(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a lockfile, then the lockfiles that it includes, recursively."""
    yield data
    included = _mapping(data.get("include_concrete", {}), "include_concrete")
    for path, graph in included.items():
        yield from _graphs(_mapping(graph, f"include_concrete of {path}"))


def _root_keys(graph: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of the nodes that are roots: specs of the environment itself."""
    roots = graph.get("roots", [])
    if not isinstance(roots, list):
        raise LineFault(0, "roots is not a list, expected one of hashes and specs")
    for root in roots:
        yield str(_mapping(root, "a root").get("hash"))


def _read_nodes(records: Mapping[str, Any], max_nodes: int) -> Nodes:
    if len(records) > max_nodes:
        message = f"has {len(records):,} specs, expected at most {max_nodes:,}"
        raise LineFault(0, message)
    node_of_key: dict[str, Node] = {}
    for key, record in records.items():
        # Unknown keys are reported for build caches, not for lockfiles.
        unknown_keys: set[str] = set()
        try:
            node = read_node(record, unknown_keys, key)
            require_hash(node.hash)
        except ValueError as error:
            raise LineFault(0, f"the spec {key:.60}: {error}") from None
        node_of_key[key] = node
    node_of_hash = {node.hash: node for node in node_of_key.values()}
    return node_of_hash | node_of_key


def _check_edges(nodes: Nodes) -> None:
    """Raise `LineFault` if a dependency is not a node, or a node depends on itself."""
    dependencies: dict[str, list[str]] = {}
    for node in nodes.values():
        needed = [(edge.name, edge.hash) for edge in node.edges]
        # A spliced node was made from another spec, which is recorded as well, but is
        # not a dependency.
        if node.build_spec is not None:
            needed.append(node.build_spec)
        for name, key in needed:
            if key not in nodes:
                raise LineFault(0, f"{node.name} needs {name} /{key}, which {_BROKEN}")
        # An edge of an old lockfile may name its node by the key.
        dependencies[node.hash] = [nodes[edge.hash].hash for edge in node.edges]
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        # The second argument of the exception is the list of nodes in the cycle.
        cycle = error.args[1]
        message = f"the spec {cycle[0]} needs itself: the lockfile is broken"
        raise LineFault(0, message) from None


def _locked_environment(nodes: Nodes, root_keys: Sequence[str]) -> Environment:
    """Return the nodes that need a binary: first the roots, then the others by name."""
    for key in root_keys:
        if key not in nodes:
            raise LineFault(0, f"has the root /{key}, which {_BROKEN}")

    # The roots keep their order. Two keys of an old lockfile may be one root.
    root_hashes = dict.fromkeys(nodes[key].hash for key in root_keys)
    position_of_root = {
        root_hash: position for position, root_hash in enumerate(root_hashes)
    }
    behind_roots = len(position_of_root)

    def sort_key(node: Node) -> tuple[int, str, str]:
        position = position_of_root.get(node.hash, behind_roots)
        return position, node.name, node.hash

    # Externals are installed outside of Spack, so they need no binary.
    distinct = {node.hash: node for node in nodes.values()}.values()
    built = [node for node in distinct if node.external is None]
    specs = []
    for node in sorted(built, key=sort_key):
        is_root = node.hash in position_of_root
        specs.append(_locked_spec(node, nodes, is_root=is_root))

    # Count the externals in a note.
    notes: tuple[str, ...] = ()
    external_count = len(distinct) - len(built)
    if external_count == 1:
        notes = ("one external needs no binary; left out",)
    elif external_count > 1:
        notes = (f"{external_count:,} externals need no binary; left out",)
    return Environment((), notes, tuple(specs), is_lock=True)


def _locked_spec(node: Node, nodes: Nodes, *, is_root: bool) -> LockedSpec:
    # The nodes that it links or runs. Output of `spack find` may lack some of them.
    run_time: dict[str, Node] = {}
    for edge in node.edges:
        is_run_time = not RUN_TIME.isdisjoint(edge.use.types)
        if is_run_time and edge.hash in nodes:
            dependency = nodes[edge.hash]
            run_time[dependency.hash] = dependency

    # Externals among them are known by name and version, the others by hash.
    needs = []
    externals = []
    for dependency in run_time.values():
        if dependency.external is None:
            needs.append(dependency.hash)
        else:
            externals.append((dependency.name, dependency.version))

    # Since Spack 1.0, the compiler is another node.
    try:
        compiler = compiler_of(node, nodes.get)
        configuration = configuration_of(node, compiler)
    except ValueError as error:
        raise LineFault(0, f"{node.name}: {error}") from None
    return LockedSpec(
        hash=node.hash,
        configuration=configuration,
        is_root=is_root,
        needs=tuple(needs),
        externals=tuple(externals),
    )


def _mapping(value: Any, subject: str) -> Mapping[str, Any]:
    """Return a value that must be a JSON object; `subject` is its name in messages."""
    if not isinstance(value, dict):
        raise LineFault(
            0, f"{subject} is not an object, expected a spack.lock as Spack writes it"
        )
    return value
