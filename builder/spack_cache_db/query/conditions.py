"""Conditions: the common form of a query, an option, a page's filter and a line of an environment.

A configuration satisfies a tuple of conditions if it satisfies every condition. This module defines
the meaning of a condition on a word of a configuration. Queries that Spack answers from recipes, or
from the machine it runs on, raise `UnsupportedQuery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Literal, overload

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    variant_matches,
)
from spack_cache_db.spack.normal_forms import Variant, readable_variant
from spack_cache_db.spack.targets import runs_on, target_matches
from spack_cache_db.spack.versions import VersionRanges

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

PLACES = ("release", "stack", "hash", "specs")
"""Kinds of conditions that specs of one configuration may differ in."""
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
        unknown: the specs for which the database lacks the data.
        query: the part of the query that the records of indexes answer.
        named: the specs that an explanation names, for a requirement of `packages:`.
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

    Attributes:
        kind: a key of `COLUMNS`, one of `PLACES`, or `words` for full-text search.
        text: the condition as a user types it: `@1.14:`, `+mpi`, `%gcc@13`, `target=zen3`; the name
            of a release, a stack or a host.
        asked: the value that is required.
    """

    kind: str
    text: str
    asked: Asked

    def holds(self, word: Any) -> bool:
        """Return whether a word satisfies the condition.

        Args:
            word: a word of the condition's column; for variants the texts of one or more variants,
                of which one must satisfy the condition.
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
    """Return the value of the first condition of a kind, or None; verdicts are combined."""
    answers: list[Any] = [condition.asked for condition in conditions if condition.kind == kind]
    return (reduce(and_, answers) if kind == "specs" else answers[0]) if answers else None


def without(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of other kinds."""
    return tuple(condition for condition in conditions if condition.kind not in kinds)


def only(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of these kinds."""
    return tuple(condition for condition in conditions if condition.kind in kinds)


def is_of_specs(conditions: Conditions) -> bool:
    """Return whether conditions are on single specs, not on whole configurations."""
    return any(condition.kind in ("hash", "specs") for condition in conditions)


def readable_variants(texts: Iterable[str], name: str) -> list[Variant]:
    """Return the variants of a name; texts that Spack cannot read as a variant are left out."""
    variants = (readable_variant(text) for text in texts if name in text)
    return [variant for variant in variants if variant is not None and variant.name == name]


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a database cannot answer; the message says why."""
