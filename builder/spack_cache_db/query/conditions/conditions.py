"""Conditions: the common form of a query, an option, a page's filter and a line of an
environment.

The query `hdf5@1.14: +mpi` with the option `--release develop` becomes four conditions:
on the package, the version, the variants and the release. A configuration satisfies a
tuple of conditions if it satisfies every one.

Most conditions are on one word of a configuration, such as its version. Others are on
its specs, each of which has a hash and is listed by releases and stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

from spack_cache_db.spack.matching import compiler_matches, variant_matches
from spack_cache_db.spack.normal_forms import Variant, readable_variant
from spack_cache_db.spack.printing import variant_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import has_platform, runs_on, target_matches
from spack_cache_db.spack.versions import VersionRanges, is_stable

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "package": ("package",),
    "version": ("version",),
    "stable": ("version",),
    "variant": ("variants",),
    "compiler": ("compiler",),
    "os": ("os",),
    "platform": ("platform",),
    "target": ("target",),
    # A machine runs some targets, and has some platforms.
    "host": ("target", "platform"),
}
"""Kinds of conditions on words of a configuration, and the columns of these words.

A condition on several columns is satisfied if the word of each column satisfies it.
"""
OF_SPECS = ("hash", "specs")
"""Kinds of conditions on single specs."""
PLACE_KINDS = ("release", "stack", *OF_SPECS)
"""Kinds of conditions that one spec of a configuration may satisfy, and another not."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that must be equal, such as the name of a package.

    In Spack's syntax, `target=zen3:` is a range; as a word, it would be a name.
    """

    text: str


@dataclass(frozen=True, slots=True)
class StableVersions:
    """Versions that do not move: no branches, and none of git (`is_stable`)."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Alternative words: the packages that provide a virtual package."""

    words: frozenset[str]


# Compared by identity, because the sets are as large as the database.
@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The specs that satisfy a condition, and those for which the database lacks the
    data.

    Attributes:
        matching: the ids of the specs that satisfy it.
        unknown: the ids of those that may.
        query: the part of the query that is the condition, such as `^zlib@1.3`; None
            for conditions that are no part of a query.
        named: None, unless the condition is a requirement of `packages:`. Then the ids
            of the specs that an explanation may name.
    """

    matching: Set[int]
    unknown: Set[int] = frozenset()
    query: SpecQuery | None = None
    named: Set[int] | None = None

    def __and__(self, other: Verdict) -> Verdict:
        """Return the verdict on both conditions together.

        A spec may satisfy both if it may satisfy each of them.
        """
        matching = self.matching & other.matching
        possible = self._possible() & other._possible()
        return Verdict(matching, possible - matching)

    def __or__(self, other: Verdict) -> Verdict:
        """Return the verdict on either condition."""
        matching = self.matching | other.matching
        unknown = self.unknown | other.unknown
        return Verdict(matching, unknown - matching)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return the verdict on the opposite condition, among the specs `every`."""
        return Verdict(every - self.matching - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        """Return the specs that satisfy the condition, or may."""
        # The sets are large, and `unknown` is usually empty.
        if not self.unknown:
            return self.matching
        return self.matching | self.unknown


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on several conditions together; at least one."""
    together = verdicts[0]
    for verdict in verdicts[1:]:
        together = together & verdict
    return together


ConditionValue = (
    Word
    | OneOf
    | StableVersions
    | VersionRanges
    | VariantConstraint
    | CompilerConstraint
    | Verdict
    | str
    | int
)
"""The types of a condition's value.

A text is a range of targets (`:zen3`), a host, the beginning of a hash or a full-text
query, according to the kind of the condition; a number is the id of a release or a
stack. A constraint on the dependencies and flags of specs is a `Verdict`.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on configurations or specs.

    Attributes:
        kind: a key of `COLUMNS`, one of `PLACE_KINDS`, or `words` for a full-text
            search.
        text: what a user types, such as `@1.14:` or the name of a release.
        value: what is compared.
    """

    kind: str
    text: str
    value: ConditionValue

    def is_met_by(self, column: str, word: Any) -> bool:
        """Return whether a word of one of the condition's columns satisfies it.

        The word of the column `variants` is a tuple of variants, one of which must
        satisfy the condition.
        """
        match self.value:
            case Word(text) if self.kind == "variant":
                return text in word
            case Word(text):
                return bool(text == word)
            case OneOf(words):
                return word in words
            case StableVersions():
                return is_stable(word)
            case VersionRanges():
                return self.value.contains(word)
            case CompilerConstraint():
                return compiler_matches(self.value, word)
            case VariantConstraint():
                variants = readable_variants(word, self.value.name)
                return any(variant_matches(self.value, variant) for variant in variants)
            case str() if self.kind == "host" and column == "platform":
                return has_platform(self.value, word)
            case str() if self.kind == "host":
                # The word is the target of a binary, the value that of a machine.
                return runs_on(word, self.value)
            case str():
                # The value is a target, a range or a list.
                return target_matches(self.value, word)
        raise TypeError(f"a condition on a {self.kind} is not one on words")


Conditions = tuple[Condition, ...]
"""Conditions that must all be satisfied."""
STABLE = Condition("stable", "stable versions", StableVersions())
"""The condition that leaves out branches such as `develop`, and versions of git."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The conditions of a spec, and notes on how it was read."""

    conditions: Conditions
    notes: tuple[str, ...] = ()


@overload
def condition_value(
    conditions: Conditions, kind: Literal["release", "stack"]
) -> int | None: ...
@overload
def condition_value(
    conditions: Conditions, kind: Literal["hash", "host", "words"]
) -> str | None: ...
@overload
def condition_value(
    conditions: Conditions, kind: Literal["specs"]
) -> Verdict | None: ...
@overload
def condition_value(conditions: Conditions, kind: str) -> ConditionValue | None: ...
def condition_value(conditions: Conditions, kind: str) -> Any:
    """Return the value of the first condition of a kind; None if there is none.

    Of several conditions on `specs`, the value is the verdict on all of them together.
    """
    values: list[Any] = [
        condition.value for condition in conditions if condition.kind == kind
    ]
    if not values:
        return None
    return all_of(values) if kind == "specs" else values[0]


def without(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of all other kinds."""
    return tuple(condition for condition in conditions if condition.kind not in kinds)


def only(conditions: Conditions, *kinds: str) -> Conditions:
    """Return the conditions of these kinds."""
    return tuple(condition for condition in conditions if condition.kind in kinds)


def within_release(conditions: Conditions, release: int) -> Conditions:
    """Return conditions with this release instead of theirs; `release` is its id."""
    return (Condition("release", "", release), *without(conditions, "release"))


def readable_variants(texts: Iterable[str], name: str) -> list[Variant]:
    """Return the variants of a name among texts such as `+mpi` and `libs=shared`.

    Texts that Spack cannot read as a variant are left out.
    """
    variants = []
    for text in texts:
        # Most texts are of other variants, and need not be read.
        if name in text:
            variant = readable_variant(text)
            if variant is not None and variant.name == name:
                variants.append(variant)
    return variants


def configuration_conditions(query: SpecQuery) -> Conditions:
    """Return a query's conditions on configurations and on the hash.

    Its other parts are on dependencies, flags and namespaces, which a configuration
    does not have.
    """
    conditions = []
    if query.name is not None:
        conditions.append(Condition("package", query.name, Word(query.name)))
    if query.versions is not None:
        text = f"@{query.versions.text}"
        conditions.append(Condition("version", text, query.versions))
    for variant in query.variants:
        # A doubled sign (`++mpi`) is about dependencies too.
        if not variant.propagate:
            conditions.append(variant_condition(variant))
    if query.platform is not None:
        text = f"platform={query.platform}"
        conditions.append(Condition("platform", text, Word(query.platform)))
    if query.os is not None:
        conditions.append(Condition("os", f"os={query.os}", Word(query.os)))
    if query.target is not None:
        # The text may be a range of targets.
        text = f"target={query.target}"
        conditions.append(Condition("target", text, query.target))
    if query.hash is not None:
        conditions.append(Condition("hash", f"/{query.hash}", query.hash))
    # A condition that is written twice counts once.
    return tuple(dict.fromkeys(conditions))


def variant_condition(variant: VariantConstraint) -> Condition:
    """Return the condition on a variant.

    It is the same wherever the variant stands in the text of a query (`column`).
    """
    return Condition("variant", variant_text(variant), replace(variant, column=0))


def compiler_condition(compiler: CompilerConstraint) -> Condition:
    """Return the condition on the one compiler of a configuration."""
    text = f"%{compiler.name}"
    if compiler.versions:
        text += f"@{compiler.versions.text}"
    return Condition("compiler", text, compiler)
