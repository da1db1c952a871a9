"""Reads the concrete specs of indexes, spec files and lockfiles.

The keys are those of Spack 0.12 to 1.2 (`spec.py`, `Spec.to_node_dict`): a node is
keyed by its name in specfile 1, edges by names before Spack 0.17, and types are under
`parameters` since specfile 4. All forms become one `Node`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.model import NO_COMPILER, Configuration, is_name
from spack_cache_db.spack.facts import LANGUAGES
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.normal_forms import (
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
    """How a dependency is used: sorted types and virtuals; `direct` is None if not
    recorded.
    """

    types: tuple[str, ...]
    virtuals: tuple[str, ...]
    direct: bool | None = None


class Edge(NamedTuple):
    """A dependency of a node: its name, its hash in this file, and its use."""

    name: str
    hash: str
    use: Use


class Node(NamedTuple):
    """A concrete spec.

    Attributes:
        parameters: variants and compiler flags.
        compiler: the compiler that the node itself names, in normal form.
        namespace: the repository of its recipe.
        package_hash: the hash of its recipe.
        build_hash: its hash in the edges of old files.
        external: the record of an external; None for a package that Spack built.
        build_spec: the name and hash of the spec from which it was spliced.
        spec_format: the format in which Spack first wrote it; None if the node does not
            record it.
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
    spec_format: int | None = None


def read_node(data: Any, unknown: set[str], key: str = "") -> Node:
    """Return the node of a decoded JSON object; `ValueError` if it is not a node of
    Spack's.

    Unknown keys, such as `spec.dependencies[].odd`, are added to `unknown`; `key` is
    the hash of a node that does not record it.
    """
    # Specfile 1 has the name of a node as its only key.
    if isinstance(data, dict) and not isinstance(data.get("name"), str):
        if len(data) != 1:
            raise ValueError(f"the node {key} has {len(data)} names, expected one")
        ((name, inner),) = data.items()
        data = {**_object(inner, "spec"), "name": name}
    require_known(data, _NODE, "spec", unknown)

    # A target is a name, or an object for one that archspec describes.
    arch = require_known(data.get("arch"), _ARCH, "spec.arch", unknown)
    target = arch.get("target")
    if not isinstance(target, str):
        described = require_known(target, _TARGET, "spec.arch.target", unknown)
        target = _text(described, "name")

    # The first fault of a node is raised, in this order.
    parameters = _object(data.get("parameters", {}), "spec.parameters")
    external = data.get("external")
    return Node(
        name=data["name"],
        version=_text(data, "version"),
        hash=_text(data, "hash", key),
        platform=_text(arch, "platform"),
        os=_text(arch, "platform_os"),
        target=target,
        parameters={name: _value(name, value) for name, value in parameters.items()},
        edges=tuple(_edges(data.get("dependencies", ()), unknown)),
        compiler=_compiler(data, unknown),
        namespace=_optional(data, "namespace"),
        package_hash=_optional(data, "package_hash"),
        build_hash=_optional(data, "build_hash"),
        external=None if external is None else _object(external, "external"),
        build_spec=_build_spec(data.get("build_spec"), unknown),
        spec_format=_original_format(
            _object(data.get("annotations", {}), "spec.annotations")
        ),
    )


def require_known(
    value: Any, known_keys: set[str], path: str, unknown: set[str]
) -> Mapping[str, Any]:
    """Return a JSON object, and add its unknown keys to `unknown`; `ValueError` if it
    is none.
    """
    entries = _object(value, path)
    if not known_keys.issuperset(entries):
        for key in entries.keys() - known_keys:
            unknown.add(f"{path}.{key}".lstrip("."))
    return entries


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{path.lstrip('.') or 'it'} is not an object")
    return value


def _text(entries: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = entries.get(key, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"has no {key}, expected a text")
    return value


def _optional(entries: Mapping[str, Any], key: str) -> str | None:
    value = entries.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"has the {key} {value!r:.60}, expected a text")
    return value


def _compiler(entries: Mapping[str, Any], unknown: set[str]) -> str | None:
    """Return the compiler of a node up to specfile 4, or the one in specfile 5's
    annotations.
    """
    if "compiler" in entries:
        compiler = entries["compiler"]
        require_known(compiler, _COMPILER, "spec.compiler", unknown)
        name = _text(compiler, "name")
        version = _text(compiler, "version")
        return normal_compiler(f"{name}@{version}")
    annotations = entries.get("annotations", {})
    require_known(annotations, _ANNOTATIONS, "spec.annotations", unknown)
    original = _optional(annotations, "compiler")
    # Spack writes the word None for an old node without a compiler (Spack 1.2
    # `to_node_dict`).
    if original in (None, "None"):
        return None
    return normal_compiler(original)


def _original_format(annotations: Mapping[str, Any]) -> int | None:
    """Return the spec format that Spack 1.0 records of specs that an older Spack
    concretized.
    """
    version = annotations.get("original_specfile_version")
    if not isinstance(version, int | None) or isinstance(version, bool):
        expected = "expected a number"
        raise ValueError(f"has original_specfile_version {version!r:.60}, {expected}")
    return version


def _edges(edges: Any, unknown: set[str]) -> Iterator[Edge]:
    path = "spec.dependencies[]"
    # Before Spack 0.17, an object by names.
    if isinstance(edges, dict):
        edges = [{"name": name, **_object(edge, path)} for name, edge in edges.items()]
    if not isinstance(edges, list | tuple):
        raise ValueError("dependencies is not a list")
    for entry in edges:
        require_known(entry, _EDGE, path, unknown)
        # Since specfile 4, the use of a dependency is an object of its own.
        parameters = entry.get("parameters", entry)
        if parameters is not entry:
            require_known(parameters, _EDGE_PARAMETERS, f"{path}.parameters", unknown)
        types = parameters.get("deptypes", entry.get("type", ()))
        virtuals = parameters.get("virtuals", ())
        direct = parameters.get("direct")
        if not isinstance(direct, bool | None):
            raise ValueError(
                f"dependencies has direct {direct!r:.60}, expected true or false"
            )
        if isinstance(virtuals, str):
            raise ValueError(
                f"dependencies has virtuals {virtuals!r:.60}, expected a list of words"
            )
        try:
            use = _use(tuple(types), tuple(virtuals), direct)
        except TypeError:
            raise ValueError(
                "dependencies has types that are not a list of words"
            ) from None
        name = _text(entry, "name")
        dag_hash = _text(entry, "hash", entry.get("build_hash"))
        yield Edge(name, dag_hash, use)


@lru_cache(maxsize=4096)
def _use(types: tuple[str, ...], virtuals: tuple[str, ...], direct: bool | None) -> Use:
    """Return a use; `ValueError` for a type or virtual that is not a plain word."""
    for word in (*types, *virtuals):
        if not isinstance(word, str) or "," in word or not is_name(word):
            raise ValueError(
                f"{word!r:.60} is not a type or a virtual, expected a word"
            )
    return Use(tuple(sorted(types)), tuple(sorted(virtuals)), direct)


def _build_spec(data: Any, unknown: set[str]) -> tuple[str, str] | None:
    if data is None:
        return None
    require_known(data, _BUILD_SPEC, "spec.build_spec", unknown)
    return _text(data, "name"), _text(data, "hash", data.get("build_hash"))


def require_hash(text: str) -> None:
    """Raise `ValueError` if a text is not a hash of Spack's: 20 bytes in base32."""
    if not is_hash(text):
        raise ValueError(
            f"{text!r:.60} is not a hash, expected 32 characters of a-z and 2-7"
        )


def compiler_of(node: Node, node_of: Callable[[str], Node | None]) -> str:
    """Return the compiler that Spack prints for a node.

    Since specfile 5 it is the dependency that provides C, or else C++, or else Fortran
    (Spack 1.1 `spec.py`, `DeprecatedCompilerSpec.factory`). `node_of` returns the node
    with a hash.
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
    """Return the configuration of a node; `ValueError` if a parameter is not a
    variant.
    """
    return Configuration(
        package=node.name,
        version=node.version,
        compiler=compiler,
        os=node.os,
        platform=node.platform,
        target=node.target,
        variants=printed_variants(node.parameters),
    )


def _value(name: str, value: Any) -> VariantValue:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, bool | str):
        return value
    expected = "expected a text, true, false or a list of texts"
    raise ValueError(f"has the parameter {name!r:.60} {value!r:.60}, {expected}")
