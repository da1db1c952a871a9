"""What a spec query means for what a page shows of a spec.

Owns the predicates, one per dimension, and the decision of what pages can answer at all: they
show no dependencies, no flags, no namespace, and one compiler per binary. What they cannot
answer raises `UnsupportedQuery`, never a wrong answer. The rules are those of Spack 1.1's
`Spec.satisfies` and `VariantValue.satisfies`; docs/spack-semantics.md lists the differences.
"""

from dataclasses import dataclass
from functools import lru_cache

from builder.spack.answerable import UnsupportedQuery, check_answerable
from builder.spack.query import LEGACY_COMPILERS, SpecQuery, VariantConstraint
from builder.spack.targets import target_matches
from builder.spack.variants import Variant, parse_variant, split_compiler
from builder.spack.versions import VersionRanges

__all__ = [
    "CompilerConstraint",
    "Conditions",
    "SpecRecord",
    "UnsupportedQuery",
    "caveats",
    "compiler_matches",
    "conditions",
    "hash_matches",
    "matches",
    "name_matches",
    "target_matches",
    "variant_matches",
    "variant_text_matches",
    "variants_match",
    "version_matches",
]

# Pages print seven characters of a patch's sha256 since Spack 0.18, all 64 before.
_PATCH_PRINTED = 7
_PATCH_FULL = 64


@dataclass(frozen=True, slots=True)
class SpecRecord:
    """What a page shows of one spec; `variants` are printed texts in any era's form."""

    name: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """What `%gcc@13` asks of the compiler that a page shows."""

    name: str
    versions: VersionRanges | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """An answerable query, one field per dimension; None or empty asks nothing."""

    name: str | None
    versions: VersionRanges | None
    variants: tuple[VariantConstraint, ...]
    compilers: tuple[CompilerConstraint, ...]
    os: str | None
    platform: str | None
    target: str | None
    hash: str | None


@lru_cache(maxsize=1024)
def conditions(query: SpecQuery) -> Conditions:
    """Give what a query asks of each dimension of a page's specs.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
    """
    check_answerable(query)
    compilers = [
        CompilerConstraint(edge.node.name, edge.node.versions)
        for edge in query.dependencies
        if edge.node.name is not None
    ]
    return Conditions(
        name=query.name,
        versions=query.versions,
        variants=query.variants,
        compilers=tuple(compilers),
        os=query.os,
        platform=query.platform,
        target=query.target,
        hash=query.hash,
    )


def caveats(query: SpecQuery) -> tuple[str, ...]:
    """Give what a user should know about the answer: how pages read a compiler."""
    notes = []
    if query.dependencies:
        notes.append(
            "pages show one compiler per binary, the one for C where C is used; "
            "compilers of other languages, and gcc or llvm used as a library, are not seen"
        )
    if any(edge.virtuals for edge in query.dependencies):
        notes.append(
            "pages do not show which languages a package uses: "
            "%c,cxx=… is answered as % with the compiler alone"
        )
    return tuple(notes)


def name_matches(asked: str | None, name: str) -> bool:
    """Tell whether a name is the one asked for, or any will do; also for os and platform."""
    return asked is None or asked == name


def hash_matches(prefix: str | None, dag_hash: str) -> bool:
    """Tell whether a hash begins as asked."""
    return prefix is None or dag_hash.startswith(prefix)


def version_matches(ranges: VersionRanges | None, version: str) -> bool:
    """Tell whether a version lies in the ranges, or any will do."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Tell whether a compiler as a page prints it (`gcc@13.2.0`, `none`) is the one asked for.

    Names of before Spack 1.0 and of now are the same: `clang` is `llvm`, `oneapi` is
    `intel-oneapi-compilers`.
    """
    name, version = split_compiler(compiler)
    asked = LEGACY_COMPILERS.get(constraint.name, constraint.name)
    if LEGACY_COMPILERS.get(name, name) != asked:
        return False
    if constraint.versions is None:
        return True
    return version is not None and constraint.versions.contains(version)


def _is_patch(asked: str, printed: str) -> bool:
    if len(printed) == _PATCH_PRINTED and len(asked) > _PATCH_PRINTED:
        return asked.startswith(printed)
    return printed.startswith(asked)


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Compare patches by the prefixes that pages print; exactly means by full checksums."""
    asked, printed = constraint.values, variant.values
    found = all(any(_is_patch(value, patch) for patch in printed) for value in asked)
    if not constraint.exact:
        return found
    full = all(len(value) == _PATCH_FULL for value in asked)
    return full and found and len(asked) == len(printed)


def variant_matches(constraint: VariantConstraint, variant: Variant) -> bool:
    """Tell whether one variant of a spec is as asked.

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


def variant_text_matches(constraint: VariantConstraint, text: str) -> bool:
    """Tell whether one printed variant is as asked.

    Raises:
        ValueError: the text is no variant.
    """
    return variant_matches(constraint, parse_variant(text))


def variants_match(constraints: tuple[VariantConstraint, ...], texts: tuple[str, ...]) -> bool:
    """Tell whether each constraint has a printed variant that is as asked."""
    return all(
        any(variant_text_matches(constraint, text) for text in texts) for constraint in constraints
    )


def matches(query: SpecQuery, record: SpecRecord) -> bool:
    """Tell whether a spec, as far as a page shows it, satisfies a query.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
        ValueError: a text of the record is no variant or compiler.
    """
    asked = conditions(query)
    return (
        name_matches(asked.name, record.name)
        and hash_matches(asked.hash, record.hash)
        and name_matches(asked.os, record.os)
        and name_matches(asked.platform, record.platform)
        and target_matches(asked.target, record.target)
        and version_matches(asked.versions, record.version)
        and all(compiler_matches(compiler, record.compiler) for compiler in asked.compilers)
        and variants_match(asked.variants, record.variants)
    )
