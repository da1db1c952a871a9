"""Reads concrete specs as indexes, spec files and lockfiles write them.

The keys are those of Spack 0.12 to 1.2 (`spec.py`, `Spec.to_node_dict`): a node is keyed by its
name in specfile 1, edges by names before Spack 0.17, and types stand under `parameters` since
specfile 4. All of them become one `Node`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.records import Configuration, is_name
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.normal_forms import (
    LANGUAGES,
    NO_COMPILER,
    VariantValue,
    normal_compiler,
    printed_variants,
)

_NODE = {
    "name", "version", "arch", "compiler", "namespace", "parameters", "external", "patches",
    "package_hash", "full_hash", "build_hash", "dependencies", "build_spec", "annotations", "hash",
}  # fmt: skip
_ARCH = {"platform", "platform_os", "target"}
_TARGET = {"name", "vendor", "features", "generation", "parents", "cpupart"}
_COMPILER = {"name", "version"}
_ANNOTATIONS = {"original_specfile_version", "compiler"}
_EDGE = {"name", "hash", "build_hash", "type", "parameters"}
_EDGE_PARAMETERS = {"deptypes", "virtuals", "direct"}
_BUILD_SPEC = {"name", "hash", "build_hash"}


class Use(NamedTuple):
    """How a dependency is used: sorted types and virtuals; `direct` where the edge says so."""

    types: tuple[str, ...]
    virtuals: tuple[str, ...]
    direct: bool | None = None


class Edge(NamedTuple):
    """A dependency of a node: its name, the hash that the file calls it by, and its use."""

    name: str
    hash: str
    use: Use


class Node(NamedTuple):
    """A concrete spec.

    Attributes:
        name: the package.
        version: the version.
        hash: the hash by which its binary is known.
        platform: the platform.
        os: the operating system.
        target: the name of the CPU target.
        parameters: variants and compiler flags.
        edges: what it depends on.
        compiler: the compiler that the node itself names, in normal form.
        namespace: the repository of its recipe, where the node says it.
        package_hash: the hash of its recipe, where the node says it.
        build_hash: the hash by which edges of old files call it.
        external: how the system provides it; None for what Spack built.
        build_spec: the name and hash of the spec from which it was spliced.
    """

    name: str
    version: str
    hash: str
    platform: str
    os: str
    target: str
    parameters: Mapping[str, VariantValue]
    edges: tuple[Edge, ...] = ()
    compiler: str | None = None
    namespace: str | None = None
    package_hash: str | None = None
    build_hash: str | None = None
    external: Mapping[str, Any] | None = None
    build_spec: tuple[str, str] | None = None


def read_node(said: Any, unknown: set[str], key: str = "") -> Node:
    """Return a node from its decoded JSON.

    Args:
        said: the decoded JSON.
        unknown: keys that are not known are added, such as `spec.dependencies[].odd`.
        key: the hash of a node that does not say it.

    Raises:
        ValueError: it is not a node of Spack's.
    """
    if isinstance(said, dict) and not isinstance(said.get("name"), str):
        if len(said) != 1:
            raise ValueError(f"the node {key} has {len(said)} names, expected one")
        ((name, inner),) = said.items()
        said = {**_object(inner, "spec"), "name": name}
    require_known(said, _NODE, "spec", unknown)
    arch = require_known(said.get("arch"), _ARCH, "spec.arch", unknown)
    target = arch.get("target")
    if not isinstance(target, str):
        target = _text(require_known(target, _TARGET, "spec.arch.target", unknown), "name")
    external = said.get("external")
    return Node(
        said["name"],
        _text(said, "version"),
        _text(said, "hash", key),
        _text(arch, "platform"),
        _text(arch, "platform_os"),
        target,
        {
            name: _value(name, value)
            for name, value in _object(said.get("parameters", {}), "spec.parameters").items()
        },
        tuple(_edges(said.get("dependencies", ()), unknown)),
        _compiler(said, unknown),
        _optional(said, "namespace"),
        _optional(said, "package_hash"),
        _optional(said, "build_hash"),
        None if external is None else _object(external, "external"),
        _build_spec(said.get("build_spec"), unknown),
    )


def require_known(value: Any, known: set[str], place: str, unknown: set[str]) -> Mapping[str, Any]:
    """Return an object of JSON; its keys that are not known are added to `unknown`.

    Raises:
        ValueError: it is not an object.
    """
    found = _object(value, place)
    if not known.issuperset(found):
        unknown.update(f"{place}.{key}".lstrip(".") for key in found.keys() - known)
    return found


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what.lstrip('.') or 'it'} is not an object")
    return value


def _text(said: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = said.get(key, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"has no {key}, expected a text")
    return value


def _optional(said: Mapping[str, Any], key: str) -> str | None:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"has the {key} {value!r:.60}, expected a text")
    return value


def _compiler(said: Mapping[str, Any], unknown: set[str]) -> str | None:
    """Return the compiler that a node names, as up to specfile 4, or as specfile 5 notes it."""
    if "compiler" in said:
        named = require_known(said["compiler"], _COMPILER, "spec.compiler", unknown)
        return normal_compiler(f"{_text(named, 'name')}@{_text(named, 'version')}")
    noted = said.get("annotations", {})
    require_known(noted, _ANNOTATIONS, "spec.annotations", unknown)
    kept = _optional(noted, "compiler")
    return None if kept is None else normal_compiler(kept)


def _edges(edges: Any, unknown: set[str]) -> Iterator[Edge]:
    place = "spec.dependencies[]"
    if isinstance(edges, dict):
        edges = [{"name": name, **_object(edge, place)} for name, edge in edges.items()]
    if not isinstance(edges, list | tuple):
        raise ValueError("dependencies is not a list")
    for said in edges:
        require_known(said, _EDGE, place, unknown)
        how = said.get("parameters", said)
        if how is not said:
            require_known(how, _EDGE_PARAMETERS, f"{place}.parameters", unknown)
        types, virtuals = how.get("deptypes", said.get("type", ())), how.get("virtuals", ())
        direct = how.get("direct")
        if not isinstance(direct, bool | None):
            raise ValueError(f"dependencies has direct {direct!r:.60}, expected true or false")
        try:
            use = _use(tuple(types), tuple(virtuals), direct)
        except TypeError:
            raise ValueError("dependencies has types that are not a list of words") from None
        yield Edge(_text(said, "name"), _text(said, "hash", said.get("build_hash")), use)


@lru_cache(maxsize=4096)
def _use(types: tuple[str, ...], virtuals: tuple[str, ...], direct: bool | None) -> Use:
    """Return a use; `ValueError` for a word that cannot stand in a list with commas."""
    for word in (*types, *virtuals):
        if not isinstance(word, str) or "," in word or not is_name(word):
            raise ValueError(f"{word!r:.60} is not a type or a virtual, expected a word")
    return Use(tuple(sorted(types)), tuple(sorted(virtuals)), direct)


def _build_spec(said: Any, unknown: set[str]) -> tuple[str, str] | None:
    if said is None:
        return None
    require_known(said, _BUILD_SPEC, "spec.build_spec", unknown)
    return _text(said, "name"), _text(said, "hash", said.get("build_hash"))


def require_hash(text: str) -> None:
    """Raise `ValueError` unless a text is a hash of Spack's: 20 bytes in base32."""
    if not is_hash(text):
        raise ValueError(f"{text!r:.60} is not a hash, expected 32 characters of a-z and 2-7")


def compiler_of(node: Node, node_of: Callable[[str], Node | None]) -> str:
    """Return the compiler that Spack prints for a node.

    Since specfile 5 it is the dependency that provides C, or else C++, or else Fortran (Spack 1.1
    `spec.py`, `DeprecatedCompilerSpec.factory`).

    Args:
        node: the node.
        node_of: returns the node that an edge names by its hash, None if it is not known.
    """
    if node.compiler is not None:
        return node.compiler
    for language in LANGUAGES:
        for edge in node.edges:
            if language in edge.use.virtuals:
                provider = node_of(edge.hash)
                version = f"@{provider.version}" if provider else ""
                return normal_compiler(f"{edge.name}{version}")
    return NO_COMPILER


def configuration_of(node: Node, compiler: str) -> Configuration:
    """Return the configuration of a node; `ValueError` if a parameter is not a variant."""
    return Configuration(
        node.name,
        node.version,
        compiler,
        node.os,
        node.platform,
        node.target,
        printed_variants(node.parameters),
    )


def _value(name: str, value: Any) -> VariantValue:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if isinstance(value, bool | str):
        return value
    expected = "expected a text, true, false or a list of texts"
    raise ValueError(f"has the parameter {name!r:.60} {value!r:.60}, {expected}")
