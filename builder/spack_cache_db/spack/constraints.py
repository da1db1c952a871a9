"""A spec query as frozen records: its text, and what each constraint means.

`parser` makes the records, and `intersection` makes one of two. What a constraint means follows
Spack 1.2's `Spec._satisfies_node`, `VariantValue.satisfies` and `FlagMap.satisfies`;
docs/spack-semantics.md lists the differences.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spack_cache_db.spack.lexer import WORD, is_package
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, VariantKind, split_compiler
from spack_cache_db.spack.versions import VersionRanges

_BARE = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""What a value may be made of without quotes."""
_WORD = re.compile(WORD)
_PROVIDED = re.compile(rf"{WORD}=[a-zA-Z0-9_]")
_PATCH_FULL = 64
_SHA256_START = re.compile(rf"[0-9a-f]{{0,{_PATCH_FULL}}}")

DEPTYPES = frozenset({"build", "link", "run", "test"})

LEGACY_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "rocmcc": "llvm-amdgpu",
    "intel": "intel-oneapi-compilers-classic",
    "arm": "acfl",
}
"""The package of each compiler that had another name before Spack 1.0."""


@dataclass(frozen=True, slots=True)
class VariantConstraint:
    """What a query asks of one variant.

    Attributes:
        name: the variant's name.
        values: the values asked for, sorted; `('True',)` or `('False',)` for a bool; none where
            any value will do (`k=*`).
        kind: bool for `+x`, `~x`, `x=True`; multi for the rest, since the syntax cannot tell.
        exact: written `k:=a,b`, these values and no others; bools are always exact.
        propagate: written `++x` or `k==v`, asked of all dependencies too.
        column: where it stands in the query.
    """

    name: str
    values: tuple[str, ...]
    kind: VariantKind
    exact: bool = False
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """What `%gcc@13` asks of the compiler that Spack prints of a spec; a None asks nothing."""

    name: str | None
    versions: VersionRanges | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A compiler flag option, such as `cflags=-g`; the value is kept as written, unquoted."""

    name: str
    value: str
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class SpecQuery:
    """One node of a query: each part that is None or empty asks nothing."""

    name: str | None = None
    namespace: str | None = None
    versions: VersionRanges | None = None
    variants: tuple[VariantConstraint, ...] = ()
    flags: tuple[Flag, ...] = ()
    os: str | None = None
    platform: str | None = None
    target: str | None = None
    hash: str | None = None
    dependencies: tuple["Dependency", ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dependency:
    """An edge of a query: `%gcc`, `%c,cxx=gcc`, `^hdf5+mpi`, `%[deptypes=build] cmake`.

    Attributes:
        node: what is asked of the dependency; a `^dep` may carry `%` dependencies of its own.
        direct: written with `%`, not `^`.
        virtuals: the virtual packages that the edge must provide.
        deptypes: the types of dependency asked for.
        when: the condition of the edge.
        propagate: written `%%`.
        column: where the sigil stands in the query.
    """

    node: SpecQuery
    direct: bool
    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()
    when: "SpecQuery | None" = None
    propagate: bool = False
    column: int = 0


def spec_text(query: SpecQuery) -> str:
    """Return a query as one would type it; `*` for one that asks nothing.

    What is asked of the package stands before the first `%` or `^`, and each `%` before the first
    `^`, for what follows one of them is asked of the dependency.
    """
    edges = sorted(query.dependencies, key=lambda edge: not edge.direct)
    return " ".join((*own_texts(query), *map(dependency_text, edges))) or "*"


def own_texts(query: SpecQuery) -> Iterator[str]:
    """Yield what is asked of the package itself, one condition each; name and version are one."""
    if head := name_text(query) + version_text(query):
        yield head
    if query.namespace is not None and not _is_qualified(query):
        yield f"namespace={_value(query.namespace)}"
    yield from map(variant_text, query.variants)
    for flag in query.flags:
        yield f"{flag.name}{'==' if flag.propagate else '='}{_value(flag.value)}"
    for key in ("platform", "os", "target"):
        if value := getattr(query, key):
            yield f"{key}={_value(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def name_text(query: SpecQuery) -> str:
    """Return the name, with its namespace if that can stand before it; nothing for any package."""
    return f"{query.namespace}.{query.name}" if _is_qualified(query) else query.name or ""


def _is_qualified(query: SpecQuery) -> bool:
    """Return whether the namespace can stand before the name, as in `builtin.zlib`."""
    if query.name is None or not query.namespace:
        return False
    return is_package(f"{query.namespace}.{query.name}")


def version_text(query: SpecQuery) -> str:
    """Return `@` and the versions; nothing for any."""
    return f"@{query.versions.text}" if query.versions else ""


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`; doubled signs for what is propagated."""
    if variant.kind == "bool":
        sign = "+" if variant.values == ("True",) else "~"
        return f"{sign * (1 + variant.propagate)}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = _value(",".join(variant.values)) if variant.values else "*"
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi`, `%[deptypes=build] cmake` with what is asked of it."""
    sign = "%" * (1 + edge.propagate) if edge.direct else "^"
    node = spec_text(edge.node)
    # `^k=v` asks for v, which provides k; `^* k=v` asks for any package with k=v.
    node = f"* {node}" if edge.node.name is None and _PROVIDED.match(node) else node
    # `%c,cxx=gcc` is read so only where words stand on both sides of the sign.
    is_short = edge.node.name is not None and all(map(_WORD.fullmatch, edge.virtuals))
    if not edge.deptypes and edge.when is None and (is_short or not edge.virtuals):
        named = f"{','.join(edge.virtuals)}=" if edge.virtuals else ""
        return f"{sign}{named}{node}"
    attributes = [f"deptypes={_value(','.join(edge.deptypes))}"] if edge.deptypes else []
    attributes += [f"virtuals={_value(','.join(edge.virtuals))}"] if edge.virtuals else []
    attributes += [f"when={_value(spec_text(edge.when))}"] if edge.when is not None else []
    return f"{sign}[{' '.join(attributes)}] {node}"


def _value(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, chr(92) + quote)}{quote}"


def version_matches(ranges: VersionRanges | None, version: str) -> bool:
    """Return whether a version lies in the ranges, or any will do."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a compiler as Spack prints it (`gcc@13.2.0`, `none`) is the one asked for.

    Names from before Spack 1.0 and today's names are the same: `clang` is `llvm`, `oneapi` is
    `intel-oneapi-compilers`.
    """
    name, version = split_compiler(compiler)
    asked = constraint.name
    if asked is not None and _package_name(name) != _package_name(asked):
        return False
    if constraint.versions is None:
        return asked is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def _package_name(compiler: str) -> str:
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
        What Spack 1.2 answers for the variant alone.
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
    found: list[str] = []
    for word in value.split():
        if found and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return tuple(found)


def flags_match(asked: Iterable[Flag], flags: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a spec has each flag asked for, in any order.

    Args:
        asked: the options of a query; of a doubled sign Spack asks no more than of a single one.
        flags: what the spec was built with, by the name of the option.
    """
    return all(set(flag_words(flag.value)) <= set(flags.get(flag.name, ())) for flag in asked)
