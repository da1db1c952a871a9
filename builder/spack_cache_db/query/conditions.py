"""Conditions: the common form of a query, an option, a page's filter and a line of an environment.

A configuration satisfies a tuple of conditions if it satisfies every one. Queries that Spack
answers from recipes, or from the machine it runs on, raise `UnsupportedQuery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from typing import Any, Literal, overload

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.facts import LANGUAGES
from spack_cache_db.spack.matching import compiler_matches, variant_matches
from spack_cache_db.spack.normal_forms import PATCH_PRINTED, Variant, readable_variant
from spack_cache_db.spack.printing import variant_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import runs_on, target_matches, unknown_bounds
from spack_cache_db.spack.versions import VersionRanges, is_git_version

# Packages that are compilers in Spack 1.1, and names that only old releases print.
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
OF_SPECS = ("hash", "specs")
"""Kinds of conditions on single specs."""
PLACES = ("release", "stack", *OF_SPECS)
"""Kinds of conditions that specs of one configuration may differ in."""
MOST_PARTS = 8
"""A query with more parts that need records is evaluated as one condition."""
_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a database cannot answer; the message says why."""


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
    """The specs that satisfy a condition, and those for which the database lacks the data.

    `query` is the part of the query that the records of indexes answer; `named` are the specs that
    an explanation names, for a requirement of `packages:`.
    """

    holds: Set[int]
    unknown: Set[int] = frozenset()
    query: SpecQuery | None = None
    named: Set[int] | None = None

    def __and__(self, other: Verdict) -> Verdict:
        """Return the verdict on both conditions together."""
        holds = self.holds & other.holds
        return Verdict(holds, (self._possible() & other._possible()) - holds)

    def __or__(self, other: Verdict) -> Verdict:
        """Return the verdict on either condition."""
        holds = self.holds | other.holds
        return Verdict(holds, (self.unknown | other.unknown) - holds)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return the verdict on the opposite condition, among the specs `every`."""
        return Verdict(every - self.holds - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        return self.holds | self.unknown if self.unknown else self.holds


Asked = Word | OneOf | VersionRanges | VariantConstraint | CompilerConstraint | Verdict | str | int
"""The types of a condition's value.

A text is a range of targets, a host, the beginning of a hash or a full-text query; a number is the
id of a release or a stack. A constraint on specs, not on configurations, is a `Verdict`.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on configurations or specs.

    `kind` is a key of `COLUMNS`, one of `PLACES`, or `words` for full-text search; `text` is what a
    user types, such as `@1.14:` or the name of a release.
    """

    kind: str
    text: str
    asked: Asked

    def holds(self, word: Any) -> bool:
        """Return whether a word satisfies the condition; for variants, whether one of them does."""
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
                variants = readable_variants(word, self.asked.name)
                return any(variant_matches(self.asked, variant) for variant in variants)
            case str() if self.kind == "host":
                return runs_on(word, self.asked)
            case str():
                return target_matches(self.asked, word)
        raise TypeError(f"a condition on a {self.kind} is not one on words")


Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The conditions of a query, notes on how it was read, and the query with canonical names."""

    conditions: Conditions
    notes: tuple[str, ...] = ()
    query: SpecQuery = field(default_factory=SpecQuery)


@overload
def asked(conditions: Conditions, kind: Literal["release", "stack"]) -> int | None: ...
@overload
def asked(conditions: Conditions, kind: Literal["hash", "host", "words"]) -> str | None: ...
@overload
def asked(conditions: Conditions, kind: Literal["specs"]) -> Verdict | None: ...
@overload
def asked(conditions: Conditions, kind: str) -> Asked | None: ...
def asked(conditions: Conditions, kind: str) -> Any:
    """Return the value of the first condition of a kind, or None; verdicts are combined."""
    answers: list[Any] = [condition.asked for condition in conditions if condition.kind == kind]
    return (reduce(and_, answers) if kind == "specs" else answers[0]) if answers else None


def without(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of other kinds."""
    return tuple(condition for condition in conditions if condition.kind not in kinds)


def only(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of these kinds."""
    return tuple(condition for condition in conditions if condition.kind in kinds)


def within_release(conditions: Conditions, release: int) -> Conditions:
    """Return conditions with this release instead of theirs; `release` is its id."""
    return (Condition("release", "", release), *without(conditions, "release"))


def readable_variants(texts: Iterable[str], name: str) -> list[Variant]:
    """Return the variants of a name; texts that Spack cannot read as a variant are left out."""
    variants = (readable_variant(text) for text in texts if name in text)
    return [variant for variant in variants if variant is not None and variant.name == name]


def configuration_conditions(query: SpecQuery) -> Conditions:
    """Return a query's conditions on configurations and on the hash."""
    conditions = []
    if query.name is not None:
        conditions.append(Condition("package", query.name, Word(query.name)))
    if query.versions is not None:
        conditions.append(Condition("version", f"@{query.versions.text}", query.versions))
    for variant in query.variants:
        if not variant.propagate:
            conditions.append(variant_condition(variant))
    for kind in ("platform", "os", "target"):
        if (value := getattr(query, kind)) is not None:
            word = value if kind == "target" else Word(value)
            conditions.append(Condition(kind, f"{kind}={value}", word))
    if query.hash is not None:
        conditions.append(Condition("hash", f"/{query.hash}", query.hash))
    return tuple(dict.fromkeys(conditions))


def variant_condition(variant: VariantConstraint) -> Condition:
    """Return the condition on a variant, wherever it stands in the text of a query."""
    return Condition("variant", variant_text(variant), replace(variant, column=0))


def question_of_pages(
    query: SpecQuery, hint: Callable[[str | None], str], *, is_package: bool
) -> Question:
    """Return the conditions of a query that pages can answer; see `check_answerable`.

    Args:
        is_package: the database has a package of this name, even if it is virtual in Spack.
    """
    check_answerable(replace(query, name=None) if is_package else query, hint)
    compilers = (compiler_condition(compiler_of_pages(edge)) for edge in query.dependencies)
    conditions = (*configuration_conditions(query), *dict.fromkeys(compilers))
    return Question(conditions, notes_on_pages(query.dependencies))


def conditions_beside_records(query: SpecQuery, is_virtual: Callable[[str], bool]) -> Conditions:
    """Return the conditions of a query on configurations, if records answer the rest of it."""
    check_recorded(query, is_virtual)
    variants = tuple(variant for variant in query.variants if not needs_whole_patches(variant))
    return configuration_conditions(replace(query, variants=variants))


def compiler_condition(compiler: CompilerConstraint) -> Condition:
    """Return the condition on the one compiler of a configuration."""
    versions = f"@{compiler.versions.text}" if compiler.versions else ""
    return Condition("compiler", f"%{compiler.name}{versions}", compiler)


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return the parts of a query that need records; more than `MOST_PARTS` as one."""
    variants = tuple(
        variant for variant in query.variants if variant.propagate or needs_whole_patches(variant)
    )
    parts = [
        *([SpecQuery(namespace=query.namespace)] if query.namespace is not None else []),
        *([SpecQuery(flags=query.flags)] if query.flags else []),
        *(SpecQuery(variants=(variant,)) for variant in variants),
        *(SpecQuery(dependencies=(dependency,)) for dependency in query.dependencies),
    ]
    if len(parts) <= MOST_PARTS:
        return parts
    dependencies = query.dependencies
    beyond = SpecQuery(namespace=query.namespace, variants=variants, dependencies=dependencies)
    return [replace(beyond, flags=query.flags)]


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether a constraint needs more of patch checksums than Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == "patches" and (constraint.exact or longest > PATCH_PRINTED)


def notes_on_pages(edges: Sequence[Dependency]) -> tuple[str, ...]:
    """Return notes on the compilers of an answer from pages."""
    notes = (
        "pages show one compiler per binary, for C if C is used; other compilers, and gcc or llvm "
        "used as a library, are not matched",
        "this database does not show which languages a package uses: "
        "%c,cxx=… is answered as % with the compiler alone",
    )
    return notes[: 2 if any(edge.virtuals for edge in edges) else len(edges[:1])]


def _refuse(reasons: Mapping[str, object]) -> None:
    """Raise UnsupportedQuery with the first reason that applies."""
    for reason, applies in reasons.items():
        if applies:
            raise UnsupportedQuery(reason)


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return a dependency as a constraint on the one compiler that a page shows.

    Raises UnsupportedQuery if it is a constraint on something else.
    """
    node, name, what = edge.node, edge.node.name, f"%{edge.node.name or ''}"
    unknown = ", ".join(virtual for virtual in edge.virtuals if virtual not in LANGUAGES)
    more = replace(node, name=None, versions=None, text="") != SpecQuery()
    _refuse(
        {
            f"'%{what}' only guides Spack's solver; write {what!r}": edge.propagate,
            f"this database does not show how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered": edge.deptypes or edge.when is not None,
            "this database has no dependency data; name a compiler after '%'": name is None,
            f"this database does not have the providers of {unknown}": unknown,
            "this database has the compiler for C, not the one for Fortran": {*edge.virtuals}
            == {"fortran"},
            f"this database does not show which languages a package uses ({what!r})": name
            in LANGUAGES,
            f"this database has no dependency data, and {name} is not known as a compiler": not (
                edge.virtuals or name in COMPILERS
            ),
            f"constraints after {what} apply to {name}, and this database has only its version; "
            "write constraints on the package itself before the '%'": more,
        }
    )
    _check_node(node)
    return CompilerConstraint(name, node.versions)


def _check_node(query: SpecQuery) -> None:
    """Raise UnsupportedQuery for names that depend on a machine, and unknown git versions."""
    for part in query.versions.text.split(",") if query.versions else ():
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"only a git repository has the version of {bare!r}: write '@{bare}=<version>'"
            )
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(f"{value!r} depends on a machine: write the name itself")
    if unknown := unknown_bounds(query.target or ""):
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def check_answerable(query: SpecQuery, hint: Callable[[str | None], str] = lambda _: "") -> None:
    """Raise UnsupportedQuery for constraints that pages cannot answer.

    `hint` returns the advice on a dependency, given its name.
    """
    needed = next((edge.node.name or "" for edge in query.dependencies if not edge.direct), None)
    instead = "" if needed is None else hint(needed or None)
    doubled = next((variant.name for variant in query.variants if variant.propagate), None)
    flags = ", ".join(flag.name for flag in query.flags)
    check_recorded(replace(query, dependencies=()), VIRTUALS.__contains__)
    _refuse(
        {
            "this database has no namespaces; write the package's name alone": query.namespace
            is not None,
            f"this database has no compiler flags ({flags}=)": query.flags,
            f"the doubled sign of {doubled!r} is about dependencies too, and this database has no "
            "dependency data; write the sign once": doubled is not None,
            f"this database has no dependency data for {f'^{needed}'!r}; build it from an index or "
            f"a mirror{instead}": needed is not None,
        }
    )
    for edge in query.dependencies:
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    _refuse({"this database has one compiler per binary; write only one": len(names) > 1})


def check_recorded(query: SpecQuery, is_virtual: Callable[[str], bool]) -> None:
    """Raise UnsupportedQuery for constraints that the records of indexes cannot answer."""
    if query.name is not None and is_virtual(query.name):
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: its providers are in Spack's recipes, not in pages"
            " or indexes; ask for a provider by name"
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
        for part in (node, edge.when):
            if part is not None:
                check_recorded(part, is_virtual)
