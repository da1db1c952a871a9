"""Spec queries as frozen records, their text, and the test of each constraint.

`parser` makes the records, and `intersection` combines them. The tests follow Spack 1.2's
`Spec._satisfies_node`, `VariantValue.satisfies` and `FlagMap.satisfies`;
docs/spack-semantics.md lists the differences.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spack_cache_db.spack.lexer import WORD, is_package
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, VariantKind, split_compiler
from spack_cache_db.spack.versions import VersionRanges

_BARE = re.compile(r"[a-zA-Z0-9_\-+*.,:=%^~/\\]+")
"""A value that needs no quotes."""
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
    """A constraint on one variant.

    Attributes:
        values: the values, sorted; `('true',)` or `('false',)` for a bool, empty for `k=*`.
        kind: bool for `+x`, `~x`, `x=True`; multi otherwise, because the syntax cannot tell.
        exact: written `k:=a,b`, these values and no others; bools are always exact.
        propagate: written `++x` or `k==v`, a constraint on all dependencies as well.
    """

    name: str
    values: tuple[str, ...]
    kind: VariantKind
    exact: bool = False
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class CompilerConstraint:
    """`%gcc@13`, a constraint on the compiler that Spack prints for a spec; None is any."""

    name: str | None
    versions: VersionRanges | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A compiler flag option, such as `cflags=-g`; the value is as written, without quotes."""

    name: str
    value: str
    propagate: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class SpecQuery:
    """The constraints on one package; a part that is None or empty is not constrained."""

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
        node: the constraints on the dependency; a `^dep` may have `%` dependencies.
        direct: written with `%`, not `^`.
        virtuals: the virtual packages that the edge must provide.
        propagate: written `%%`.
        column: the column of the sigil in the query.
    """

    node: SpecQuery
    direct: bool
    virtuals: tuple[str, ...] = ()
    deptypes: tuple[str, ...] = ()
    when: "SpecQuery | None" = None
    propagate: bool = False
    column: int = 0


def spec_text(query: SpecQuery) -> str:
    """Return a query as you would type it; `*` for one without constraints.

    Constraints on the package come first, then each `%`, then each `^`, because a constraint
    behind a sigil belongs to the dependency.
    """
    edges = sorted(query.dependencies, key=lambda edge: not edge.direct)
    return " ".join((*constraint_texts(query), *map(dependency_text, edges))) or "*"


def constraint_texts(query: SpecQuery) -> Iterator[str]:
    """Yield the constraints on the package itself, one by one; name and version are one."""
    qualified = f"{query.namespace}.{query.name}"
    is_qualified = bool(query.name and query.namespace) and is_package(qualified)
    name = qualified if is_qualified else query.name or ""
    if head := name + (f"@{query.versions.text}" if query.versions else ""):
        yield head
    if query.namespace is not None and not is_qualified:
        yield f"namespace={_value(query.namespace)}"
    yield from map(variant_text, query.variants)
    for flag in query.flags:
        yield f"{flag.name}{'==' if flag.propagate else '='}{_value(flag.value)}"
    for key in ("platform", "os", "target"):
        if value := getattr(query, key):
            yield f"{key}={_value(value)}"
    if query.hash is not None:
        yield f"/{query.hash}"


def variant_text(variant: VariantConstraint) -> str:
    """Return `+x`, `~x`, `k=a,b`, `k:=a,b` or `k=*`; with a doubled sign if it is propagated."""
    if variant.kind == "bool":
        sign = "+" if variant.values == ("true",) else "~"
        return f"{sign * (1 + variant.propagate)}{variant.name}"
    colon = ":" if variant.exact else ""
    equals = "==" if variant.propagate else "="
    value = _value(",".join(variant.values)) if variant.values else "*"
    return f"{variant.name}{colon}{equals}{value}"


def dependency_text(edge: Dependency) -> str:
    """Return `%gcc@13`, `^mpi=openmpi` or `%[deptypes=build] cmake` with its constraints."""
    sign = "%" * (1 + edge.propagate) if edge.direct else "^"
    node = spec_text(edge.node)
    # `^k=v` is the package v as provider of k; `^* k=v` is any package with k=v.
    node = f"* {node}" if edge.node.name is None and _PROVIDED.match(node) else node
    # Spack reads `%c,cxx=gcc` only if both sides of the sign are plain words.
    is_short = edge.node.name is not None and all(map(_WORD.fullmatch, edge.virtuals))
    if not edge.deptypes and edge.when is None and (is_short or not edge.virtuals):
        assigned = f"{','.join(edge.virtuals)}=" if edge.virtuals else ""
        return f"{sign}{assigned}{node}"
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
    """Return whether a version lies in the ranges; None is any version."""
    return ranges is None or ranges.contains(version)


def compiler_matches(constraint: CompilerConstraint, compiler: str) -> bool:
    """Return whether a compiler as Spack prints it (`gcc@13.2.0`, `none`) meets a constraint.

    Names from before Spack 1.0 equal today's: `clang` is `llvm`.
    """
    name, version = split_compiler(compiler)
    expected, aliases = constraint.name, LEGACY_COMPILERS
    if expected is not None and aliases.get(name, name) != aliases.get(expected, expected):
        return False
    if constraint.versions is None:
        return expected is not None or version is not None
    return version is not None and constraint.versions.contains(version)


def _patches_match(constraint: VariantConstraint, variant: Variant) -> bool:
    """Return whether printed prefixes match the patches; `:=` needs full checksums."""
    patches, printed = constraint.values, variant.values
    if not all(any(_is_patch(patch, prefix) for prefix in printed) for patch in patches):
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

    `k=a,b` needs at least a and b, `k:=a,b` these and no others; other names never match.
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
    return all(set(flag_words(flag.value)) <= set(flags.get(flag.name, ())) for flag in options)
