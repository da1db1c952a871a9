"""Reads the concrete specs of indexes, spec files and lockfiles.

A concrete spec is one node of a graph, whose edges are its dependencies. Spack writes a
node as an object of JSON, and the forms that Spack 0.12 to 1.2 have written (`spec.py`,
`Spec.to_node_dict`) all become one `Node`. Spack calls a form a specfile version:

1. Specfile 1 keys a node by its name, `{"zlib": {"version": "1.3", ...}}`, and has an
   object of dependencies by name.
2. Since specfile 2 (Spack 0.17), nodes have a `name`, and dependencies are a list.
3. Specfile 3 (Spack 0.18) adds the hash of the recipe.
4. Specfile 4 (Spack 0.21) has an object `parameters` in each dependency.
5. Specfile 5 (Spack 1.0) has compilers as dependencies, and no `compiler`.
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

# The keys that each object may have in one of the forms. Others are reported.
_NODE_KEYS = {
    "name", "version", "arch", "compiler", "namespace", "parameters", "external", "patches",
    "package_hash", "full_hash", "build_hash", "dependencies", "build_spec", "annotations", "hash",
}  # fmt: skip
_ARCH_KEYS = {"platform", "platform_os", "target"}
_TARGET_KEYS = {"name", "vendor", "features", "generation", "parents", "cpupart"}
_COMPILER_KEYS = {"name", "version"}
_ANNOTATION_KEYS = {"original_specfile_version", "compiler"}
_EDGE_KEYS = {"name", "hash", "build_hash", "type", "parameters"}
_EDGE_PARAMETER_KEYS = {"deptypes", "virtuals", "direct"}
_BUILD_SPEC_KEYS = {"name", "hash", "build_hash"}


class Use(NamedTuple):
    """How a dependency is used.

    Attributes:
        types: such as build, link and run; sorted.
        virtuals: the virtual packages as which it is used, such as mpi for openmpi;
            sorted.
        direct: the key `direct` of its record; None if the record has none.
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
        hash: its hash, 32 characters.
        parameters: variants and compiler flags, by name.
        edges: its dependencies, in the order of the file.
        compiler: the compiler that the node itself names, such as `gcc@13.2.0`; None
            if it names none, as in all nodes that Spack 1.0 and later concretize.
        namespace: the repository of its recipe, such as `builtin`.
        package_hash: the hash of its recipe.
        build_hash: its hash in the edges of specfile 1, if they use another one.
        external: the record of an external, which the system provides; None for a
            package that Spack built.
        build_spec: the name and hash of the spec from which it was spliced, which means
            made from that spec's binary with other dependencies.
        spec_format: the specfile version in which Spack first wrote it; None if the
            node does not record it.
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
    """Return the node of a decoded JSON object.

    Args:
        data: the object.
        unknown: a set to which the paths of unknown keys are added, such as
            `spec.dependencies[].odd`.
        key: the hash of a node that does not record it.

    Raises:
        ValueError: it is not a node of Spack's. The message has its first fault.
    """
    # In specfile 1, the name is the only key, and the node is its value.
    is_named = isinstance(data, dict) and isinstance(data.get("name"), str)
    if isinstance(data, dict) and not is_named:
        if len(data) != 1:
            raise ValueError(f"the node {key} has {len(data)} names, expected one")
        name, fields = next(iter(data.items()))
        data = {**_object(fields, "spec"), "name": name}
    require_known(data, _NODE_KEYS, "spec", unknown)

    # A target is a name, or an object with a name for a processor.
    arch = require_known(data.get("arch"), _ARCH_KEYS, "spec.arch", unknown)
    target = arch.get("target")
    if not isinstance(target, str):
        processor = require_known(target, _TARGET_KEYS, "spec.arch.target", unknown)
        target = _text(processor, "name")

    parameters = _object(data.get("parameters", {}), "spec.parameters")
    external = data.get("external")
    # The order of these calls decides which fault of a node is its first.
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
        namespace=_optional_text(data, "namespace"),
        package_hash=_optional_text(data, "package_hash"),
        build_hash=_optional_text(data, "build_hash"),
        external=None if external is None else _object(external, "external"),
        build_spec=_build_spec(data.get("build_spec"), unknown),
        spec_format=_original_format(data),
    )


def require_known(
    value: Any, known_keys: set[str], path: str, unknown: set[str]
) -> Mapping[str, Any]:
    """Return a JSON object, and add its unknown keys to `unknown`.

    Args:
        value: the decoded JSON.
        known_keys: the keys that the object may have.
        path: where the object is, such as `spec.arch`; empty for the outermost one.
        unknown: the set of paths of unknown keys.

    Raises:
        ValueError: the value is not an object.
    """
    entries = _object(value, path)
    # Nearly all objects have known keys only, and this test is fast.
    if not known_keys.issuperset(entries):
        for key in entries.keys() - known_keys:
            unknown.add(f"{path}.{key}".lstrip("."))
    return entries


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{path.lstrip('.') or 'it'} is not an object")
    return value


def _text(entries: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return the text of a key, or the default if the key is missing."""
    value = entries.get(key, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"has no {key}, expected a text")
    return value


def _value(name: str, value: Any) -> VariantValue:
    """Return the value of a parameter, a list as a tuple."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, bool | str):
        return value
    expected = "expected a text, true, false or a list of texts"
    raise ValueError(f"has the parameter {name!r:.60} {value!r:.60}, {expected}")


def _edges(edges: Any, unknown: set[str]) -> Iterator[Edge]:
    path = "spec.dependencies[]"
    # In specfile 1, an object by names; since then, a list of objects with names.
    if isinstance(edges, dict):
        edges = [{"name": name, **_object(edge, path)} for name, edge in edges.items()]
    if not isinstance(edges, list | tuple):
        raise ValueError("dependencies is not a list")
    for entry in edges:
        require_known(entry, _EDGE_KEYS, path, unknown)
        # Since specfile 4, the use of a dependency is an object of its own.
        parameters = entry.get("parameters", entry)
        if parameters is not entry:
            require_known(
                parameters, _EDGE_PARAMETER_KEYS, f"{path}.parameters", unknown
            )
        use = _use_of(entry, parameters)
        name = _text(entry, "name")
        # Specfile 1 may have `build_hash` instead of `hash`.
        dag_hash = _text(entry, "hash", entry.get("build_hash"))
        yield Edge(name, dag_hash, use)


def _use_of(entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> Use:
    """Return the use of a dependency from the object that describes it."""
    types = parameters.get("deptypes", entry.get("type", ()))
    virtuals = parameters.get("virtuals", ())
    direct = parameters.get("direct")
    if not isinstance(direct, bool | None):
        raise ValueError(
            f"dependencies has direct {direct!r:.60}, expected true or false"
        )
    # A text would be read as a list of its characters.
    if isinstance(virtuals, str):
        raise ValueError(
            f"dependencies has virtuals {virtuals!r:.60}, expected a list of words"
        )
    try:
        return _use(tuple(types), tuple(virtuals), direct)
    # Raised for a number in place of a list, or a list in place of a word.
    except TypeError:
        raise ValueError(
            "dependencies has types that are not a list of words"
        ) from None


@lru_cache(maxsize=4096)
def _use(types: tuple[str, ...], virtuals: tuple[str, ...], direct: bool | None) -> Use:
    """Return a checked use; cached, because an index has few distinct ones."""
    for word in (*types, *virtuals):
        if not isinstance(word, str) or "," in word or not is_name(word):
            raise ValueError(
                f"{word!r:.60} is not a type or a virtual, expected a word"
            )
    return Use(tuple(sorted(types)), tuple(sorted(virtuals)), direct)


def _compiler(entries: Mapping[str, Any], unknown: set[str]) -> str | None:
    """Return the compiler that a node names, in normal form.

    Up to specfile 4, it is the object `compiler`. Spack 1.0 writes an older node in
    specfile 5 with the compiler as a text in its `annotations`.
    """
    if "compiler" in entries:
        compiler = entries["compiler"]
        require_known(compiler, _COMPILER_KEYS, "spec.compiler", unknown)
        name = _text(compiler, "name")
        version = _text(compiler, "version")
        return normal_compiler(f"{name}@{version}")
    annotations = entries.get("annotations", {})
    require_known(annotations, _ANNOTATION_KEYS, "spec.annotations", unknown)
    original = _optional_text(annotations, "compiler")
    # Spack writes the word None for an old node without a compiler (Spack 1.2
    # `to_node_dict`).
    if original is None or original == "None":
        return None
    return normal_compiler(original)


def _optional_text(entries: Mapping[str, Any], key: str) -> str | None:
    value = entries.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"has the {key} {value!r:.60}, expected a text")
    return value


def _build_spec(data: Any, unknown: set[str]) -> tuple[str, str] | None:
    """Return the name and hash of the spec from which a node was spliced."""
    if data is None:
        return None
    require_known(data, _BUILD_SPEC_KEYS, "spec.build_spec", unknown)
    name = _text(data, "name")
    dag_hash = _text(data, "hash", data.get("build_hash"))
    return name, dag_hash


def _original_format(entries: Mapping[str, Any]) -> int | None:
    """Return the specfile version in which an older Spack first wrote a node."""
    annotations = _object(entries.get("annotations", {}), "spec.annotations")
    version = annotations.get("original_specfile_version")
    # `True` is an int in Python.
    if not isinstance(version, int | None) or isinstance(version, bool):
        expected = "expected a number"
        raise ValueError(f"has original_specfile_version {version!r:.60}, {expected}")
    return version


def require_hash(text: str) -> None:
    """Raise `ValueError` if a text is not a hash of Spack's: 20 bytes in base32."""
    if not is_hash(text):
        raise ValueError(
            f"{text!r:.60} is not a hash, expected 32 characters of a-z and 2-7"
        )


def compiler_of(node: Node, node_of: Callable[[str], Node | None]) -> str:
    """Return the compiler that Spack prints for a node, such as `gcc@13.2.0`.

    An old node names it. Since specfile 5, it is the dependency that provides C, or
    else C++, or else Fortran (Spack 1.1 `spec.py`, `DeprecatedCompilerSpec.factory`).

    Args:
        node: the node.
        node_of: returns the node with a hash, which has the compiler's version; None
            if there is none.
    """
    if node.compiler is not None:
        return node.compiler
    for language in LANGUAGES:
        for edge in node.edges:
            if language in edge.use.virtuals:
                compiler = node_of(edge.hash)
                version = "" if compiler is None else f"@{compiler.version}"
                return normal_compiler(f"{edge.name}{version}")
    return NO_COMPILER


def configuration_of(node: Node, compiler: str) -> Configuration:
    """Return what people see of a node: its version, variants and so on.

    Args:
        node: the node.
        compiler: the compiler that Spack prints for it.

    Raises:
        ValueError: a parameter is not a variant.
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
