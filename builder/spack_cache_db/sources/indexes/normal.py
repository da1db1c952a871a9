"""A node's words in the normal form that pages have, so that both meet in one configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from spack_cache_db.sources.indexes.records import Arch, Node
from spack_cache_db.spack.concrete import LANGUAGES, NO_COMPILER, Value, printed_variants
from spack_cache_db.spack.variants import normal_compiler

Parameters = Mapping[str, Value]
"""A node's variants and compiler flags by name."""

_ARCH = msgspec.json.Decoder(Arch)
_PARAMETERS = msgspec.json.Decoder(dict[str, bool | str | tuple[str, ...]])


@lru_cache(maxsize=4096)
def parse_arch(text: bytes) -> Arch:
    """Return an `arch` object; `msgspec.DecodeError` if it is none."""
    return _ARCH.decode(text)


@lru_cache(maxsize=65536)
def parse_parameters(text: bytes) -> dict[str, Any]:
    """Return a `parameters` object; `msgspec.DecodeError` if it is none."""
    return _PARAMETERS.decode(text)


def target_name(arch: Arch) -> str:
    """Return the name of the CPU target, which may stand in a description of it."""
    return arch.target if isinstance(arch.target, str) else arch.target.name


@lru_cache(maxsize=65536)
def variants_of(text: bytes) -> tuple[str, ...]:
    """Return the variants of a `parameters` object in normal form, sorted, without flags."""
    return printed_variants(parse_parameters(text))


def compiler_of(node: Node, version_of: Callable[[str], str]) -> str:
    """Return the compiler that a page prints for a node, in normal form.

    Up to specfile 4 a node names it. Since then it is the dependency that provides C, or else C++,
    or else Fortran (Spack 1.1 `spec.py`, `DeprecatedCompilerSpec.factory`).

    Args:
        version_of: the version of the spec with this hash; raises `KeyError` if there is none.
    """
    if node.compiler is not UNSET:
        return normal_compiler(f"{node.compiler.name}@{node.compiler.version}")
    if node.annotations is not UNSET and node.annotations.compiler is not UNSET:
        return normal_compiler(node.annotations.compiler)
    for language in LANGUAGES:
        for edge in node.dependencies:
            if edge.parameters is not UNSET and language in edge.parameters.virtuals:
                return normal_compiler(f"{edge.name}@{version_of(edge.hash)}")
    return NO_COMPILER
