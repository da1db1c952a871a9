"""Compares one value of a concrete spec with one constraint of a query.

For example, `libs=static` of a query is compared with `libs=shared,static` of a spec.
`satisfying` combines these comparisons for a spec of an index, and `query/` for all
specs of a database.

The rules are those of Spack 1.2's `Spec._satisfies_node`, `VariantValue.satisfies` and
`FlagMap.satisfies`; docs/spack-semantics.md lists the differences. CPU targets are
compared in `targets`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from spack_cache_db.spack.facts import LEGACY_COMPILERS, PATCHES
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, split_compiler
from spack_cache_db.spack.queries import CompilerConstraint, Flag, VariantConstraint
from spack_cache_db.spack.versions import VersionRanges

_CHECKSUM_LENGTH = 64
"""Characters of the sha256 of a patch."""

_CHECKSUM_START = re.compile(rf"[0-9a-f]{{0,{_CHECKSUM_LENGTH}}}")


def version_matches(ranges: VersionRanges | None, version: str) -> bool:
    """Return whether a version lies in the ranges; None is any version."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a printed compiler satisfies a constraint.

    Names from before Spack 1.0 equal those of today: `clang` is `llvm`.

    Args:
        constraint: the constraint, such as `%gcc@13`.
        compiler: a compiler as Spack prints it: `gcc@13.2.0`, or `none` for a spec that
            uses no compiler.
    """
    name, version = split_compiler(compiler)
    if constraint.name is not None:
        package = LEGACY_COMPILERS.get(name, name)
        expected_package = LEGACY_COMPILERS.get(constraint.name, constraint.name)
        if package != expected_package:
            return False
        if constraint.versions is None:
            return True
    # `none` has no version. So it satisfies neither a version nor a bare `%`, which
    # means any compiler.
    if version is None:
        return False
    return version_matches(constraint.versions, version)


def variant_matches(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether a variant of a concrete spec satisfies a constraint.

    The values of `k=a,b` must include a and b, and those of `k:=a,b` must be a and b.
    A variant of another name never satisfies it.
    """
    if constraint.name != variant.name:
        return False
    # `k=*` is any value.
    if not constraint.values:
        return True
    # `+k` is not the text `k=true`.
    is_bool = variant.kind == "bool"
    if is_bool != (constraint.kind == "bool"):
        return False
    if constraint.name == PATCHES:
        return _patches_match(constraint, variant)
    required = set(constraint.values)
    values = set(variant.values)
    if constraint.exact:
        return required == values
    return required <= values


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether the patches of a spec satisfy `patches=` or `patches:=`.

    A query may name a patch by the beginning of its checksum. Only `:=`, these patches
    and no others, needs whole checksums.
    """
    required = constraint.values
    for start in required:
        if not any(_may_start_with(patch, start) for patch in variant.values):
            return False
    if not constraint.exact:
        return True
    are_whole = all(len(start) == _CHECKSUM_LENGTH for start in required)
    return are_whole and len(required) == len(variant.values)


def _may_start_with(patch: str, start: str) -> bool:
    """Return whether the checksum of a patch starts with a text, as far as is known.

    Many sources have only the first seven characters of the checksum, because Spack
    prints no more.
    """
    is_cut = len(patch) == PATCH_PRINTED
    if is_cut and _CHECKSUM_START.fullmatch(start):
        return start.startswith(patch[: len(start)])
    return patch.startswith(start)


def flag_words(value: str) -> tuple[str, ...]:
    """Return the flags in the value of an option.

    A word without a dash is the value of the flag before it: `-O2 -I /usr` has two
    flags, `-O2` and `-I /usr`.
    """
    flags: list[str] = []
    for word in value.split():
        if flags and not word.startswith("-"):
            flags[-1] += f" {word}"
        else:
            flags.append(word)
    return tuple(flags)


def flags_match(options: Iterable[Flag], flags: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the flags of a spec include those of a query, in any order.

    A doubled sign (`cflags==-g`) changes nothing for a concrete spec, as in Spack.

    Args:
        options: the flags of the query, such as `cflags="-O2 -g"`.
        flags: the flags of the spec by option: `{"cflags": ["-O2", "-g"]}`.
    """
    for option in options:
        required = set(flag_words(option.value))
        if not required <= set(flags.get(option.name, ())):
            return False
    return True
