"""Conditions: the common form of a query, an option, a page's filter and a line of an environment.

Each of these becomes a tuple of conditions; a configuration satisfies the tuple if it satisfies
every condition. This module defines the meaning of a condition on a word of a configuration.
Queries that Spack answers from recipes, or from the machine it runs on, are refused with the
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Literal, overload

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    variant_matches,
    variant_text,
)
from spack_cache_db.spack.normal_forms import LANGUAGES, PATCH_PRINTED, Variant, readable_variant
from spack_cache_db.spack.targets import runs_on, target_matches, unknown_bounds
from spack_cache_db.spack.versions import VersionRanges, is_git_version

# Packages that Spack 1.1 calls compilers, and names that only old releases print.
_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())

# No binary has the name of a virtual package; only recipes know the providers.
_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libifcore
    libllvm libosmesa lua-lang luajit mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa
    pbs pil pkgconfig qmake rpc scalapack sycl szip tbb unwind uuid wasi-sdk xkbdata-api xxd yacc
    ziglang zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())

_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)

MOST_PARTS = 8
"""A query with more parts beyond configurations is answered as a whole."""

COLUMNS: Mapping[str, str] = {
    "package": "package",
    "version": "version",
    "variant": "variants",
    "compiler": "compiler",
    "os": "os",
    "platform": "platform",
    "target": "target",
    "host": "target",
}
"""Kinds of conditions on a word of a configuration, and the column of that word."""

PLACES = ("release", "stack", "hash", "specs")
"""Kinds that differ between specs of one configuration: where they are, what they depend on."""
ANYWHERE: Conditions = ()
"""No conditions."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that must be equal, in place of a constraint in Spack's syntax."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Alternative words: the packages that provide a virtual package."""

    words: frozenset[str]


# Compared by identity, because the sets are as large as the database.
@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The specs that satisfy a condition; it does not hold for specs in neither set.

    Attributes:
        holds: the specs that satisfy it.
        unknown: the specs for which the database does not show it.
        query: what the condition asks of the records of indexes.
        named: of a requirement of `packages:`, the specs that an explanation names.
    """

    holds: Set[int]
    unknown: Set[int] = frozenset()
    query: SpecQuery | None = None
    named: Set[int] | None = None

    def __and__(self, other: Verdict) -> Verdict:
        """Return the verdict that both hold."""
        holds = self.holds & other.holds
        return Verdict(holds, (self._possible() & other._possible()) - holds)

    def __or__(self, other: Verdict) -> Verdict:
        """Return the verdict that one of them holds."""
        holds = self.holds | other.holds
        return Verdict(holds, (self.unknown | other.unknown) - holds)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return the verdict that it does not hold, among `every` spec."""
        return Verdict(every - self.holds - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        return self.holds | self.unknown if self.unknown else self.holds


Asked = Word | OneOf | VersionRanges | VariantConstraint | CompilerConstraint | Verdict | str | int
"""The types of a condition's question, the same from the query to the answer.

A text is a range of targets, a host, the beginning of a hash or a full-text query; a number is the
id of a release or a stack. What is asked beyond configurations is a `Verdict`.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a query.

    Attributes:
        kind: a key of `COLUMNS`, one of `PLACES`, or `words` for full-text search.
        text: the condition as a user types it: `@1.14:`, `+mpi`, `%gcc@13`, `target=zen3`; the name
            of a release, a stack or a host.
        asked: what it asks.
    """

    kind: str
    text: str
    asked: Asked

    def holds(self, word: Any) -> bool:
        """Return whether a word satisfies the condition.

        Args:
            word: a word of the condition's column; for variants the texts of one or more variants;
                it is enough if one of the texts satisfies the condition.
        """
        match self.asked:
            case Word(text):
                return text in word if self.kind == "variant" else text == word
            case OneOf(words):
                return word in words
            case VersionRanges():
                return self.asked.contains(word)
            case CompilerConstraint():
                return compiler_matches(self.asked, word)
            case VariantConstraint():
                found = readable_variants(word, self.asked.name)
                return any(variant_matches(self.asked, variant) for variant in found)
            case str() if self.kind == "host":
                return runs_on(word, self.asked)
            case str():
                return target_matches(self.asked, word)
        raise TypeError(f"a condition on a {self.kind} is not one on words")


Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The conditions of a query, and notes on how it was read."""

    conditions: Conditions
    notes: tuple[str, ...] = ()


@overload
def asked(conditions: Conditions, kind: Literal["release", "stack"]) -> int | None: ...
@overload
def asked(conditions: Conditions, kind: Literal["hash", "host", "words"]) -> str | None: ...
@overload
def asked(conditions: Conditions, kind: Literal["specs"]) -> Verdict | None: ...
@overload
def asked(conditions: Conditions, kind: str) -> Asked | None: ...
def asked(conditions: Conditions, kind: str) -> Any:
    """Return what the first condition of a kind asks, or None; of `specs`, all verdicts as one."""
    found: list[Any] = [condition.asked for condition in conditions if condition.kind == kind]
    return (reduce(and_, found) if kind == "specs" else found[0]) if found else None


def without(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of other kinds."""
    return tuple(condition for condition in conditions if condition.kind not in kinds)


def only(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of these kinds."""
    return tuple(condition for condition in conditions if condition.kind in kinds)


def is_of_specs(conditions: Conditions) -> bool:
    """Return whether specs of one configuration and release may differ in the answer."""
    return any(condition.kind in ("hash", "specs") for condition in conditions)


def configuration_conditions(query: SpecQuery) -> Conditions:
    """Return what a query asks of configurations, and of the hash, in the order of its text."""
    found = []
    if query.name is not None:
        found.append(Condition("package", query.name, Word(query.name)))
    if query.versions is not None:
        found.append(Condition("version", f"@{query.versions.text}", query.versions))
    for variant in query.variants:
        if not variant.propagate:
            # The column is where it stands, which says nothing of what it asks.
            asks = replace(variant, column=0)
            found.append(Condition("variant", variant_text(variant), asks))
    for kind in ("platform", "os", "target"):
        if (value := getattr(query, kind)) is not None:
            word = value if kind == "target" else Word(value)
            found.append(Condition(kind, f"{kind}={value}", word))
    if query.hash is not None:
        found.append(Condition("hash", f"/{query.hash}", query.hash))
    return tuple(dict.fromkeys(found))


def compiler_condition(compiler: CompilerConstraint) -> Condition:
    """Return what is asked of the one compiler of a configuration."""
    versions = f"@{compiler.versions.text}" if compiler.versions else ""
    return Condition("compiler", f"%{compiler.name}{versions}", compiler)


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return what a query asks that configurations do not show in full, in parts.

    Each part is one condition; a query with more than `MOST_PARTS` of them is one part.
    """
    whole = SpecQuery(
        namespace=query.namespace,
        variants=tuple(
            each for each in query.variants if each.propagate or needs_whole_patches(each)
        ),
        flags=query.flags,
        dependencies=query.dependencies,
    )
    parts = [
        *([SpecQuery(namespace=whole.namespace)] if whole.namespace is not None else []),
        *([SpecQuery(flags=whole.flags)] if whole.flags else []),
        *(SpecQuery(variants=(each,)) for each in whole.variants),
        *(SpecQuery(dependencies=(each,)) for each in whole.dependencies),
    ]
    return parts if len(parts) <= MOST_PARTS else [whole]


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether more is asked of patches than the characters of each that Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == "patches" and (constraint.exact or longest > PATCH_PRINTED)


def notes_on_pages(query: SpecQuery) -> tuple[str, ...]:
    """Return what a user should know of an answer from pages: how they read a compiler."""
    notes = []
    if query.dependencies:
        notes.append(
            "one compiler per binary is known, the one for C where C is used; "
            "compilers of other languages, and gcc or llvm used as a library, are not seen"
        )
    if any(edge.virtuals for edge in query.dependencies):
        notes.append(
            "this file does not say which languages a package uses: "
            "%c,cxx=… is answered as % with the compiler alone"
        )
    return tuple(notes)


def readable_variants(texts: Iterable[str], name: str) -> list[Variant]:
    """Return the variants of a name, without texts that Spack would not read as a variant."""
    found = (readable_variant(text) for text in texts if name in text)
    return [each for each in found if each is not None and each.name == name]


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a database cannot answer; the message says why."""


def _refuse(reasons: Mapping[str, object]) -> None:
    """Raise UnsupportedQuery with the first reason that applies."""
    for reason, applies in reasons.items():
        if applies:
            raise UnsupportedQuery(reason)


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return what a dependency asks of the one compiler that a page shows.

    Raises:
        UnsupportedQuery: it asks for something else.
    """
    node, name, what = edge.node, edge.node.name, f"%{edge.node.name or ''}"
    unknown = ", ".join(each for each in edge.virtuals if each not in LANGUAGES)
    more = replace(node, name=None, versions=None, text="") != SpecQuery()
    _refuse(
        {
            f"'%{what}' only guides Spack's solver; write {what!r}": edge.propagate,
            f"this file does not say how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered": edge.deptypes or edge.when is not None,
            "this file has no dependency data; name a compiler after '%'": name is None,
            f"this file does not say what provides {unknown}": unknown,
            "this file has the compiler for C, not the one for Fortran": {*edge.virtuals}
            == {"fortran"},
            f"this file does not say which languages a package uses ({what!r})": name in LANGUAGES,
            f"this file has no dependency data, and {name} is not known as a compiler": not (
                edge.virtuals or name in COMPILERS
            ),
            f"what follows {what} is asked of {name}, of which the version is in this file; "
            "write what the package itself must have before the '%'": more,
        }
    )
    _check_node(node)
    return CompilerConstraint(name, node.versions)


def _check_node(query: SpecQuery) -> None:
    """Refuse what depends on a machine, a git repository or an unknown target."""
    for part in query.versions.text.split(",") if query.versions else ():
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"the version of {bare!r} is known to its git repository only: "
                f"write '@{bare}=<version>'"
            )
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(f"{value!r} depends on a machine: write the name itself")
    if unknown := unknown_bounds(query.target or ""):
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def check_answerable(query: SpecQuery, hint: Callable[[str | None], str] = lambda _: "") -> None:
    """Refuse what pages cannot answer.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead if there is something.
    """
    needed = next((edge.node.name or "" for edge in query.dependencies if not edge.direct), None)
    instead = "" if needed is None else hint(needed or None)
    doubled = next((each.name for each in query.variants if each.propagate), None)
    check_recorded(replace(query, dependencies=()), VIRTUALS.__contains__)
    _refuse(
        {
            "this file has no namespaces; write the package's name alone": query.namespace
            is not None,
            f"this file has no compiler flags ({', '.join(each.name for each in query.flags)}=)": (
                query.flags
            ),
            f"the doubled sign of {doubled!r} asks its dependencies too, which are not in this "
            "file; write the sign once to ask the package itself": doubled is not None,
            f"this file has no dependency data for {f'^{needed}'!r}; build it from an index or a "
            f"mirror{instead}": needed is not None,
        }
    )
    for edge in query.dependencies:
        compiler_of_pages(edge)
    if len({edge.node.name for edge in query.dependencies}) > 1:
        raise UnsupportedQuery("this file has one compiler per binary; write only one")


def check_recorded(query: SpecQuery, is_virtual: Callable[[str], bool]) -> None:
    """Refuse what the records of indexes cannot answer.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead if there is something.
    """
    if query.name is not None and is_virtual(query.name):
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: which packages provide it is in Spack's recipes, "
            "not in pages or indexes; ask for a provider by name"
        )
    _check_node(query)
    for edge in query.dependencies:
        name, node = edge.node.name, edge.node
        if name is not None and is_virtual(name):
            if node.versions is not None:
                raise UnsupportedQuery(
                    f"{name} is a virtual package: its versions are in Spack's recipes, not in "
                    f"indexes; ask for a provider: '{'%' if edge.direct else '^'}{name}=<package>'"
                )
            node = replace(node, name=None)
        check_recorded(node, is_virtual)
        if edge.when is not None:
            check_recorded(edge.when, is_virtual)
