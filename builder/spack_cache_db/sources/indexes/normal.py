"""A node's words in the normal form that pages have, so that both meet in one configuration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from spack_cache_db.sources.indexes.records import Arch, Dependency, Node
from spack_cache_db.sources.indexes.uses import NO_LANGUAGE
from spack_cache_db.spack.compilers import NO_COMPILER, normal_compiler
from spack_cache_db.spack.variants import printed_variants

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


def compiler_of(node: Node) -> str:
    """Return the compiler that a node names itself, as nodes did up to specfile 4."""
    if node.compiler is not UNSET:
        return normal_compiler(f"{node.compiler.name}@{node.compiler.version}")
    if node.annotations is not UNSET and node.annotations.compiler is not UNSET:
        return normal_compiler(node.annotations.compiler)
    return NO_COMPILER


def provider_of(node: Node, languages: Sequence[int]) -> Dependency | None:
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
    return None if first == NO_LANGUAGE or is_named else node.dependencies[languages.index(first)]


def compiler_name(provider: Dependency, version: str) -> str:
    """Return a compiler that is a spec, in the normal form of pages."""
    return normal_compiler(f"{provider.name}@{version}")
