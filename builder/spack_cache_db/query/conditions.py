"""Conditions: the common form of a query, an option, a page's filter and a line of an environment.

All of these become a tuple of conditions, and what satisfies the tuple satisfies each of them. What
a condition on a word of a configuration means stands here alone. What Spack decides by recipes or
by the machine that asks is no condition: it is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    spec_text,
    variant_matches,
    variant_text,
    version_matches,
)
from spack_cache_db.spack.normal_forms import LANGUAGES, PATCH_PRINTED, Variant, readable_variant
from spack_cache_db.spack.targets import runs_on, target_matches, unknown_bounds
from spack_cache_db.spack.versions import is_git_version

# The packages that Spack 1.1 knows as compilers, and the names that only old releases print.
_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())

# A binary is never named for a virtual package: which packages provide one is in recipes only.
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
"""A query that asks more beyond configurations is answered as a whole."""

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
"""The kinds of conditions that a word of a configuration decides, and the column of that word."""

PLACES = ("release", "stack", "hash", "specs")
"""The kinds that differ between specs of one configuration: where they are, what they depend on."""
ANYWHERE: Conditions = ()
"""Nothing that narrows an answer."""


@dataclass(frozen=True, slots=True)
class Word:
    """The very word that a condition asks for, in place of a constraint in Spack's syntax."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words of which any will do: the packages that provide a virtual one."""

    words: frozenset[str]


# As large as the file: two of them are compared by identity.
@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What is known of a condition; of the specs that are in neither set, it does not hold.

    Attributes:
        holds: the specs that satisfy it.
        unknown: those of which nothing says whether they do.
    """

    holds: Set[int]
    unknown: Set[int] = frozenset()

    def __and__(self, other: Verdict) -> Verdict:
        """Return where both hold."""
        holds = self.holds & other.holds
        return Verdict(holds, (self._possible() & other._possible()) - holds)

    def __or__(self, other: Verdict) -> Verdict:
        """Return where one of them holds."""
        holds = self.holds | other.holds
        return Verdict(holds, (self.unknown | other.unknown) - holds)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return where it does not hold, among `every` spec."""
        return Verdict(every - self.holds - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        return self.holds | self.unknown if self.unknown else self.holds


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is asked.

    Attributes:
        kind: a key of `COLUMNS`, one of `PLACES`, or `words`: what full-text search looks for.
        text: the condition as one types it: `@1.14:`, `+mpi`, `%gcc@13`, `target=zen3`; of a
            release, a stack and a host the name.
        asked: a `Word`, a `OneOf` of packages, or what Spack's syntax asks of this kind; of a
            release and a stack the id; of `words` a full-text query; of the kind `specs` what a
            query asks beyond configurations, and once a file was asked, a `Verdict` on it.
    """

    kind: str
    text: str
    asked: Any

    def holds(self, word: Any) -> bool:
        """Return whether a word satisfies the condition.

        Args:
            word: of the condition's column; for variants the texts of one or more, one of which
                has to satisfy it.
        """
        if isinstance(self.asked, Word):
            return self.asked.text in word if self.kind == "variant" else self.asked.text == word
        if isinstance(self.asked, OneOf):
            return word in self.asked.words
        return _HOLDS[self.kind](self.asked, word)


Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a file; `notes` say how it is understood."""

    conditions: Conditions
    notes: tuple[str, ...] = ()


def asked(conditions: Conditions, kind: str) -> Any:
    """Return what the first condition of a kind asks; None where there is none.

    Of the kind `specs`, which may be there several times, it is the verdict on all of them.
    """
    found = [each.asked for each in conditions if each.kind == kind]
    if kind == "specs" and found:
        return reduce(and_, found)
    return found[0] if found else None


def without(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of other kinds."""
    return tuple(each for each in conditions if each.kind not in kinds)


def is_of_specs(conditions: Conditions) -> bool:
    """Return whether specs of one configuration in one place may differ in the answer."""
    return any(each.kind in ("hash", "specs") for each in conditions)


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


def record_conditions(query: SpecQuery) -> Conditions:
    """Return what a query asks beyond configurations, one thing in each condition."""
    beyond = beyond_configurations(query)
    parts = [
        *([SpecQuery(namespace=beyond.namespace)] if beyond.namespace is not None else []),
        *([SpecQuery(flags=beyond.flags)] if beyond.flags else []),
        *(SpecQuery(variants=(each,)) for each in beyond.variants),
        *(SpecQuery(dependencies=(each,)) for each in beyond.dependencies),
    ]
    parts = parts if len(parts) <= MOST_PARTS else [beyond]
    return tuple(Condition("specs", spec_text(part), part) for part in parts)


def beyond_configurations(query: SpecQuery) -> SpecQuery:
    """Return what a query asks that configurations do not show, or do not show in full."""
    return SpecQuery(
        namespace=query.namespace,
        variants=tuple(
            each for each in query.variants if each.propagate or needs_whole_patches(each)
        ),
        flags=query.flags,
        dependencies=query.dependencies,
    )


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


def _has_variant(constraint: VariantConstraint, texts: Iterable[str]) -> bool:
    variants = readable_variants(texts, constraint.name)
    return any(variant_matches(constraint, variant) for variant in variants)


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "version": version_matches,
    "variant": _has_variant,
    "compiler": compiler_matches,
    "target": target_matches,
    "host": lambda host, target: runs_on(target, host),
}


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a file cannot answer; its text says why."""


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

    Args:
        query: what is asked.
        hint: returns what to say of a dependency by its name, after the reason.

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

    Args:
        query: what is asked.
        is_virtual: whether a name is that of a virtual package.

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
