"""What a constraint means: whether a version, compiler, target or variant is as asked.

The rules are those of Spack 1.1's `Spec.satisfies` and `VariantValue.satisfies`;
docs/spack-semantics.md lists the differences.
"""

import re
from dataclasses import dataclass

from spack_cache_db.spack.query import LEGACY_COMPILERS, VariantConstraint
from spack_cache_db.spack.targets import target_matches
from spack_cache_db.spack.variants import Variant, split_compiler
from spack_cache_db.spack.versions import VersionRanges

__all__ = [
    "PATCH_PRINTED",
    "CompilerConstraint",
    "compiler_matches",
    "target_matches",
    "variant_matches",
    "version_matches",
]

# Spack prints seven characters of a patch's sha256 since 0.18, all 64 before.
PATCH_PRINTED = 7
_PATCH_FULL = 64
_SHA256_START = re.compile(rf"[0-9a-f]{{0,{_PATCH_FULL}}}")


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """What `%gcc@13` asks of the one compiler that Spack prints of a spec; None is any name."""

    name: str | None
    versions: VersionRanges | None = None


def version_matches(ranges: VersionRanges | None, version: str) -> bool:
    """Return whether a version lies in the ranges, or any will do."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a compiler as Spack prints it (`gcc@13.2.0`, `none`) is the one asked for.

    Names of before Spack 1.0 and of now are the same: `clang` is `llvm`, `oneapi` is
    `intel-oneapi-compilers`.
    """
    name, version = split_compiler(compiler)
    asked = constraint.name
    if asked is not None and _name_of_today(name) != _name_of_today(asked):
        return False
    if constraint.versions is None:
        return asked is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def _name_of_today(compiler: str) -> str:
    return LEGACY_COMPILERS.get(compiler, compiler)


def _is_patch(asked: str, printed: str) -> bool:
    """Return whether a patch begins as asked, as far as its printed form goes."""
    if len(printed) == PATCH_PRINTED and _SHA256_START.fullmatch(asked):
        return asked.startswith(printed[: len(asked)])
    return printed.startswith(asked)


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether patches are as asked, by printed prefixes; `:=` needs full checksums."""
    asked, printed = constraint.values, variant.values
    found = all(any(_is_patch(value, patch) for patch in printed) for value in asked)
    if not constraint.exact:
        return found
    full = all(len(value) == _PATCH_FULL for value in asked)
    return full and found and len(asked) == len(printed)


def variant_matches(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether one variant of a spec is as asked.

    Args:
        constraint: `+x`, `k=a,b` (at least a and b), `k:=a,b` (those and no others), `k=*`.
        variant: a variant of a concrete spec; names that differ never match.

    Returns:
        What Spack 1.1 answers for the variant alone.
    """
    if constraint.name != variant.name:
        return False
    if not constraint.values:
        return True
    if (constraint.kind == "bool") != (variant.kind == "bool"):
        return False
    if constraint.name == "patches":
        return _patches_match(constraint, variant)
    if constraint.exact:
        return set(constraint.values) == set(variant.values)
    return set(constraint.values) <= set(variant.values)
