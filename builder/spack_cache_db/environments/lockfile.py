"""A `spack.lock` → the nodes of its graph, with names as build caches print them.

The format of each version is that of Spack 1.2's `environment/__init__.py`: nodes are keyed by
their names in versions 1 and 2, by a hash of their builds in 2 and 3, which is not the one under
which binaries are known, and by that one in the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from spack_cache_db.environments import Environment, LockedSpec, decoded
from spack_cache_db.errors import LineFault
from spack_cache_db.records import Configuration
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.normal_forms import (
    LANGUAGES,
    NO_COMPILER,
    normal_compiler,
    printed_variants,
)

RUN_TIME = ("link", "run")
"""The types of edges to what a spec needs to run."""

VERSIONS = range(1, 8)
"""The versions of lockfiles that Spack 0.12 to 1.2 write."""

_NAMED = (1, 2)

_BROKEN = (
    "is not among its concrete_specs: the lockfile is broken; make it anew with 'spack concretize'"
)


class _Node(NamedTuple):
    """A node as the lockfile has it, its name, and the hash under which a binary is known."""

    name: str
    hash: str
    said: Mapping[str, Any]


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
    nodes: dict[str, _Node] = {}
    roots: list[str] = []
    for graph in _graphs(data):
        for key, node in _mapping(graph.get("concrete_specs"), "concrete_specs").items():
            nodes.setdefault(key, _node(key, node, version))
        roots += _roots(graph)
    if len(nodes) > most:
        raise LineFault(0, f"has {len(nodes):,} specs, expected at most {most:,}")
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
    if len(data) > most:
        raise LineFault(0, f"has {len(data):,} specs, expected at most {most:,}")
    said = {str(_mapping(each, "a spec").get("hash")): each for each in data}
    nodes = {key: _node(key, node, VERSIONS[-1]) for key, node in said.items()}
    return _lock(nodes, [*nodes])


def _check_edges(nodes: Mapping[str, _Node]) -> None:
    """Check that every dependency is a node, and that no node needs itself.

    Raises:
        LineFault: the lockfile is broken, and Spack cannot read it either.
    """
    known = _by_key_and_hash(nodes)
    needed: dict[str, list[str]] = {}
    for node in nodes.values():
        edges = [(edge.name or "", edge.key) for edge in _edges(node)]
        build = node.said.get("build_spec")
        if build is not None:
            said = _mapping(build, f"build_spec of {node.name}")
            edges.append((str(said.get("name")), str(said.get("hash"))))
        for name, key in edges:
            if key not in known:
                missing = f"{name} /{key}".strip()
                raise LineFault(0, f"{node.name} needs {missing}, which {_BROKEN}")
        needed[node.hash] = [known[edge.key].hash for edge in _edges(node)]
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        raise LineFault(
            0, f"the spec {error.args[1][0]} needs itself: the lockfile is broken"
        ) from None


def _by_key_and_hash(nodes: Mapping[str, _Node]) -> dict[str, _Node]:
    """Return the nodes by what may name them: before Spack 0.18, their keys or their hashes."""
    return {node.hash: node for node in nodes.values()} | {**nodes}


def _lock(nodes: Mapping[str, _Node], roots: list[str]) -> Environment:
    if missing := [key for key in roots if key not in nodes]:
        raise LineFault(0, f"has the root /{missing[0]}, which {_BROKEN}")
    asked = dict.fromkeys(nodes[key].hash for key in roots)
    kept = {node.hash: node for node in nodes.values() if not node.said.get("external")}
    order = {key: place for place, key in enumerate(asked)}
    ordered = sorted(
        kept.values(), key=lambda each: (order.get(each.hash, len(order)), each.name, each.hash)
    )
    known = _by_key_and_hash(nodes)
    specs = tuple(_locked(each, known, is_root=each.hash in asked) for each in ordered)
    external = len({node.hash for node in nodes.values()}) - len(kept)
    notes = [f"{external:,} externals need no binary, and are left out"] if external > 1 else []
    notes += ["one external needs no binary, and is left out"] if external == 1 else []
    return Environment((), tuple(notes), specs, is_lock=True)


def _node(key: str, node: Any, version: int) -> _Node:
    said = _mapping(node, f"the spec {key}")
    name = said.get("name")
    if version in _NAMED:
        if len(said) != 1:
            raise LineFault(0, f"the spec {key} has {len(said)} names, expected one")
        ((name, inner),) = said.items()
        said = _mapping(inner, f"the spec {key}")
    dag_hash = said.get("hash", key)
    if not isinstance(name, str) or not is_hash(str(dag_hash)):
        expected = "a name, and a hash of 32 characters of a-z and 2-7"
        raise LineFault(0, f"the spec {key} lacks its name or hash, expected {expected}")
    return _Node(name, str(dag_hash), said)


def _roots(graph: Mapping[str, Any]) -> Iterator[str]:
    roots = graph.get("roots", [])
    if not isinstance(roots, list):
        raise LineFault(0, "roots is no list, expected one of hashes and specs")
    for root in roots:
        yield str(_mapping(root, "a root").get("hash"))


def _locked(node: _Node, nodes: Mapping[str, _Node], *, is_root: bool) -> LockedSpec:
    needed = {each.hash: each for each in _needed(node, nodes)}
    externals = {key: each for key, each in needed.items() if each.said.get("external")}
    return LockedSpec(
        node.hash,
        _configuration(node, nodes),
        is_root,
        tuple(key for key in needed if key not in externals),
        tuple((each.name, str(each.said.get("version"))) for each in externals.values()),
    )


class _LockedEdge(NamedTuple):
    """An edge of the graph: the name and the key of what is needed, its types and virtuals."""

    name: str | None
    key: str
    types: Sequence[Any]
    virtuals: Sequence[Any]


def _edges(node: _Node) -> Iterator[_LockedEdge]:
    """Yield the edges of a node; before Spack 0.17, they are keyed by names."""
    edges = node.said.get("dependencies", [])
    if not isinstance(edges, dict | list):
        raise LineFault(0, f"{node.name} has dependencies that are not a list")
    named = edges.items() if isinstance(edges, dict) else ((None, edge) for edge in edges)
    for name, edge in named:
        said = _mapping(edge, f"a dependency of {node.name}")
        parameters = _mapping(said.get("parameters", said), f"parameters in {node.name}")
        types = parameters.get("deptypes", parameters.get("type"))
        virtuals = parameters.get("virtuals")
        yield _LockedEdge(
            name or said.get("name"),
            str(said.get("build_hash", said.get("hash"))),
            types if isinstance(types, list) else (),
            virtuals if isinstance(virtuals, list) else (),
        )


def _needed(node: _Node, nodes: Mapping[str, _Node]) -> Iterator[_Node]:
    """Yield the nodes that one links or runs."""
    for edge in _edges(node):
        if edge.key in nodes and any(each in RUN_TIME for each in edge.types):
            yield nodes[edge.key]


def _configuration(node: _Node, nodes: Mapping[str, _Node]) -> Configuration:
    try:
        return _printed(node, nodes)
    except ValueError as error:
        raise LineFault(0, f"{node.name}: {error}") from None


def _printed(node: _Node, nodes: Mapping[str, _Node]) -> Configuration:
    arch = _mapping(node.said.get("arch"), f"arch of {node.name}")
    target = arch.get("target")
    words = (
        node.name,
        _text(node.said, "version", node),
        _compiler(node, nodes),
        _text(arch, "platform_os", node),
        _text(arch, "platform", node),
        target if isinstance(target, str) else _text(_mapping(target, "a target"), "name", node),
    )
    parameters = _mapping(node.said.get("parameters", {}), f"parameters of {node.name}")
    values = {key: _value(value, node) for key, value in parameters.items()}
    return Configuration(*words, printed_variants(values))


def _value(value: Any, node: _Node) -> bool | str | tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    if isinstance(value, bool | str):
        return value
    raise LineFault(0, f"{node.name} has the parameter {value!r}, expected text, a bool or a list")


def _compiler(node: _Node, nodes: Mapping[str, _Node]) -> str:
    """Return the compiler that is printed for a node; see `spack.normal_forms`."""
    said = node.said.get("compiler")
    if said is not None:
        named = _mapping(said, f"compiler of {node.name}")
        return normal_compiler(f"{_text(named, 'name', node)}@{_text(named, 'version', node)}")
    kept = _mapping(node.said.get("annotations", {}), f"annotations of {node.name}").get("compiler")
    if kept is not None:
        return normal_compiler(str(kept))
    edges = [edge for edge in _edges(node) if edge.key in nodes]
    for language in LANGUAGES:
        for edge in edges:
            if language in edge.virtuals:
                compiler = nodes[edge.key]
                version = _text(compiler.said, "version", compiler)
                return normal_compiler(f"{compiler.name}@{version}")
    return NO_COMPILER


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LineFault(0, f"{what} is no object, expected a spack.lock as Spack writes it")
    return value


def _text(said: Mapping[str, Any], key: str, node: _Node) -> str:
    value = said.get(key)
    if not isinstance(value, str):
        raise LineFault(0, f"{node.name} has no {key}, expected a spack.lock as Spack writes it")
    return value
