"""Tests of one value against one constraint of a query.

The tests follow Spack 1.2's `Spec._satisfies_node`, `VariantValue.satisfies` and
`FlagMap.satisfies`; docs/spack-semantics.md lists the differences. `satisfying`
combines them for a node of an index, and `query/` for the rows of a database.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from spack_cache_db.spack.facts import LEGACY_COMPILERS, PATCHES
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, split_compiler
from spack_cache_db.spack.queries import CompilerConstraint, Flag, VariantConstraint
from spack_cache_db.spack.versions import VersionRanges

_PATCH_FULL = 64
"""Characters of the whole sha256 of a patch."""
_SHA256_START = re.compile(rf"[0-9a-f]{{0,{_PATCH_FULL}}}")


def version_matches(ranges: VersionRanges | None, version: str) -> bool:
    """Return whether a version lies in the ranges; None is any version."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a compiler as Spack prints it (`gcc@13.2.0`, `none`) meets a
    constraint.

    Names from before Spack 1.0 equal today's: `clang` is `llvm`.
    """
    name, version = split_compiler(compiler)
    if constraint.name is not None:
        package = LEGACY_COMPILERS.get(name, name)
        expected = LEGACY_COMPILERS.get(constraint.name, constraint.name)
        if package != expected:
            return False
    if constraint.versions is None:
        # A bare `%` is any compiler; `none` has no version, and is not one.
        return constraint.name is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def variant_matches(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether a variant of a concrete spec meets a constraint, as in Spack 1.2.

    `k=a,b` needs at least a and b, `k:=a,b` these and no others; other names never
    match.
    """
    if constraint.name != variant.name:
        return False
    # `k=*` is any value.
    if not constraint.values:
        return True
    if (constraint.kind == "bool") != (variant.kind == "bool"):
        return False
    if constraint.name == PATCHES:
        return _patches_match(constraint, variant)
    expected = set(constraint.values)
    if constraint.exact:
        return expected == set(variant.values)
    return expected <= set(variant.values)


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether printed prefixes match the patches; `:=` needs full checksums."""
    for patch in constraint.values:
        if not any(_is_patch(patch, printed) for printed in variant.values):
            return False
    if not constraint.exact:
        return True
    are_full = all(len(patch) == _PATCH_FULL for patch in constraint.values)
    return are_full and len(constraint.values) == len(variant.values)


def _is_patch(beginning: str, printed: str) -> bool:
    """Return whether a patch begins so, as far as its printed form shows."""
    if len(printed) == PATCH_PRINTED and _SHA256_START.fullmatch(beginning):
        return beginning.startswith(printed[: len(beginning)])
    return printed.startswith(beginning)


def flag_words(value: str) -> tuple[str, ...]:
    """Split the value of an option in flags: `-O2 -I /usr` is `-O2` and `-I /usr`.

    A word without a dash is the value of the flag before it.
    """
    flags: list[str] = []
    for word in value.split():
        if flags and not word.startswith("-"):
            flags[-1] += f" {word}"
        else:
            flags.append(word)
    return tuple(flags)


def flags_match(options: Iterable[Flag], flags: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a spec's flags, by option, include those of a query, in any order.

    Spack treats `cflags==-g` as `cflags=-g` here.
    """
    for option in options:
        expected = set(flag_words(option.value))
        if not expected <= set(flags.get(option.name, ())):
            return False
    return True
