"""The words of nodes and edges as the columns have them, each spelling looked at once.

Architecture, parameters and edges are long texts of which few differ, so numbers stand for their
bytes. Configurations are in the normal form of pages, so that both kinds of source meet in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from spack_cache_db.records import Configuration
from spack_cache_db.sources.columns import Interned, NodeFacts, Texts, Use
from spack_cache_db.sources.indexes.spack_json import (
    Arch,
    EdgeParameters,
    NodeDependency,
    Record,
    SpecNode,
)
from spack_cache_db.sources.strictness import (
    as_json,
    decode_once,
    name,
    read_strictly,
    require_bounded,
    require_name,
)
from spack_cache_db.spack.compilers import LANGUAGES, NO_COMPILER, normal_compiler
from spack_cache_db.spack.variants import printed_variants

NO_LANGUAGE = len(LANGUAGES)

_EDGE = msgspec.json.Decoder(EdgeParameters)


class Uses(dict[bytes | tuple[str, ...] | UnsetType, int]):
    """Numbers of uses by what an edge says: the text of its `parameters`, or its `type`.

    `language[number]` is the place in `LANGUAGES` of the first that the use provides, or
    `NO_LANGUAGE`. Asking for what is no `parameters` object raises `msgspec.DecodeError`.
    """

    def __init__(self, uses: Interned[Use]) -> None:
        super().__init__()
        self._uses = uses
        self.language: dict[int, int] = {}

    def __missing__(self, said: bytes | tuple[str, ...] | UnsetType) -> int:
        use = use_of(said)
        number = self[said] = self._uses[use]
        provided = [at for at, each in enumerate(LANGUAGES) if each in use.virtuals]
        self.language[number] = min(provided, default=NO_LANGUAGE)
        return number

    def of(self, dependencies: tuple[NodeDependency, ...]) -> list[int]:
        """Return the number of each edge's use; raise as asking for one does."""
        return [
            self[each.type if each.parameters is UNSET else bytes(each.parameters)]
            for each in dependencies
        ]


def use_of(said: bytes | tuple[str, ...] | UnsetType) -> Use:
    """Return a use from what an edge says (see `Uses`)."""
    if isinstance(said, bytes):
        parameters = decode_once(said, _EDGE)
        direct = None if parameters.direct is UNSET else parameters.direct
        return Use(_set(parameters.deptypes), _set(parameters.virtuals), direct)
    return Use(_set(() if said is UNSET else said), (), None)


def _set(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words sorted; `ValueError` for one that cannot stand in a list with commas."""
    for word in words:
        if not word or "," in word:
            raise ValueError(f"{name(word)!r} is no type or virtual, expected a word")
        require_name("type or virtual", word)
    return tuple(sorted(words))


_ARCH = msgspec.json.Decoder(Arch)
_PARAMETERS = msgspec.json.Decoder(dict[str, bool | str | tuple[str, ...]])


@lru_cache(maxsize=4096)
def parse_arch(text: bytes) -> Arch:
    """Return an `arch` object (raises as `parse_parameters`)."""
    return decode_once(text, _ARCH)


@lru_cache(maxsize=65536)
def parse_parameters(text: bytes) -> dict[str, Any]:
    """Return a `parameters` object.

    Raises:
        msgspec.DecodeError: it is none.
        ValueError: a key stands twice.
    """
    return decode_once(text, _PARAMETERS)


def target_name(arch: Arch) -> str:
    """Return the name of the CPU target, which may stand in a description of it."""
    return arch.target if isinstance(arch.target, str) else arch.target.name


@lru_cache(maxsize=65536)
def variants_of(text: bytes) -> tuple[str, ...]:
    """Return the variants of a `parameters` object in normal form, sorted, without flags."""
    return printed_variants(parse_parameters(text))


def compiler_of(node: SpecNode) -> str:
    """Return the compiler that a node names itself, as nodes did up to specfile 4."""
    if node.compiler is not UNSET:
        return normal_compiler(f"{node.compiler.name}@{node.compiler.version}")
    if node.annotations is not UNSET and node.annotations.compiler is not UNSET:
        return normal_compiler(node.annotations.compiler)
    return NO_COMPILER


def provider_of(node: SpecNode, languages: Sequence[int]) -> NodeDependency | None:
    """Return the dependency that a page prints as a node's compiler; None if it is none.

    Since specfile 5 it is the one that provides C, or else C++, or else Fortran (Spack 1.1
    `spec.py`, `DeprecatedCompilerSpec.factory`).

    Args:
        languages: the place in `LANGUAGES` of what each dependency provides (see `Uses`).
    """
    first = min(languages, default=NO_LANGUAGE)
    is_named = node.compiler is not UNSET or (
        node.annotations is not UNSET and node.annotations.compiler is not UNSET
    )
    return None if first == NO_LANGUAGE or is_named else node.edges[languages.index(first)]


def compiler_name(provider: NodeDependency, version: str | None) -> str:
    """Return a compiler that is a spec, in the normal form of pages; None is no known version."""
    return provider.name if version is None else normal_compiler(f"{provider.name}@{version}")


NODE_REST = ("compiler", "patches", "annotations")
"""The keys of a node that are kept as they are, beside those that have columns."""

_node_rest = attrgetter(*NODE_REST)


class Spellings:
    """Numbers of configurations and of `NodeFacts` by what nodes of an index say."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._said = Interned[bytes]()
        self._configurations: dict[object, int] = {}
        self._nodes: dict[object, int] = {}

    def numbers(self, node: SpecNode, compiler: str) -> tuple[int, int]:
        """Return the number of a node's configuration, and that of the node.

        Raises:
            msgspec.DecodeError: a part of it is none of Spack's.
            ValueError: a text of it is too long.
        """
        arch, parameters = self._said[bytes(node.arch)], self._said[bytes(node.parameters)]
        key = (node.name, node.version, compiler, arch, parameters)
        configuration = self._configurations.get(key)
        if configuration is None:
            configuration = self._configuration(node, compiler)
            self._configurations[key] = configuration
        external = None if node.external is UNSET else bytes(node.external)
        rest = (node.namespace, node.package_hash, arch, parameters, _node_rest(node), external)
        facts = self._nodes.get(rest)
        if facts is None:
            facts = self._nodes[rest] = self._texts.nodes[_facts(node)]
        return configuration, facts

    def _configuration(self, node: SpecNode, compiler: str) -> int:
        arch = parse_arch(bytes(node.arch))
        configuration = Configuration(
            node.name,
            node.version,
            compiler,
            arch.platform_os,
            arch.platform,
            target_name(arch),
            variants_of(bytes(node.parameters)),
        )
        require_bounded(configuration)
        return self._texts.configurations[configuration]


def _facts(node: SpecNode) -> NodeFacts:
    target = parse_arch(bytes(node.arch)).target
    require_name("namespace", node.namespace)
    external = None if node.external is UNSET else read_strictly(bytes(node.external))
    if node.external is not UNSET and not isinstance(external, dict):
        raise ValueError("external is no object")
    return NodeFacts(
        namespace=node.namespace,
        package_hash=None if node.package_hash is UNSET else node.package_hash,
        parameters=as_json(read_strictly(bytes(node.parameters))),
        target=None if isinstance(target, str) else as_json(msgspec.to_builtins(target)),
        external=None if external is None else as_json(external),
        rest=as_json(said_of(node, NODE_REST)),
    )


def said_of(record: Record | SpecNode, keys: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a record says something of, as plain values."""
    values = {key: getattr(record, key) for key in keys}
    said = {key: value for key, value in values.items() if value is not UNSET}
    plain: dict[str, Any] = msgspec.to_builtins(said)
    return plain
