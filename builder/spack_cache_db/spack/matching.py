"""Tests of one value against one constraint of a query.

The tests follow Spack 1.2's `Spec._satisfies_node`, `VariantValue.satisfies` and
`FlagMap.satisfies`; docs/spack-semantics.md lists the differences.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from spack_cache_db.spack.facts import LEGACY_COMPILERS
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, split_compiler
from spack_cache_db.spack.queries import CompilerConstraint, Flag, VariantConstraint
from spack_cache_db.spack.versions import VersionRanges

_PATCH_FULL = 64
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
    expected, aliases = constraint.name, LEGACY_COMPILERS
    if expected is not None and aliases.get(name, name) != aliases.get(
        expected, expected
    ):
        return False
    if constraint.versions is None:
        return expected is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether printed prefixes match the patches; `:=` needs full checksums."""
    patches, printed = constraint.values, variant.values
    if not all(
        any(_is_patch(patch, prefix) for prefix in printed) for patch in patches
    ):
        return False
    are_full = all(len(patch) == _PATCH_FULL for patch in patches)
    return not constraint.exact or (are_full and len(patches) == len(printed))


def _is_patch(beginning: str, printed: str) -> bool:
    """Return whether a patch begins so, as far as its printed form shows."""
    if len(printed) == PATCH_PRINTED and _SHA256_START.fullmatch(beginning):
        return beginning.startswith(printed[: len(beginning)])
    return printed.startswith(beginning)


def variant_matches(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether a variant of a concrete spec meets a constraint, as in Spack 1.2.

    `k=a,b` needs at least a and b, `k:=a,b` these and no others; other names never
    match.
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


def flag_words(value: str) -> tuple[str, ...]:
    """Split the value of an option in flags: `-O2 -I /usr` is `-O2` and `-I /usr`.

    A word without a dash is the value of the flag before it.
    """
    words_of_flags: list[str] = []
    for word in value.split():
        if words_of_flags and not word.startswith("-"):
            words_of_flags[-1] += f" {word}"
        else:
            words_of_flags.append(word)
    return tuple(words_of_flags)


def flags_match(options: Iterable[Flag], flags: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a spec's flags, by option, include those of a query, in any order.

    Spack treats `cflags==-g` as `cflags=-g` here.
    """
    return all(
        set(flag_words(flag.value)) <= set(flags.get(flag.name, ())) for flag in options
    )
