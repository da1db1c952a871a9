"""Conditions: what a query, an option, a filter of a page or a line of an environment asks.

All of these become a tuple of conditions, and what satisfies the tuple satisfies each of them. What
a condition on a word of a configuration means stands here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
    compiler_matches,
    variant_matches,
    variant_text,
    version_matches,
)
from spack_cache_db.spack.normal_forms import Variant, parse_variant
from spack_cache_db.spack.targets import runs_on, target_matches

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


@dataclass(frozen=True, slots=True)
class Word:
    """The very word that a condition asks for, in place of a constraint in Spack's syntax."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words of which any will do: the packages that provide a virtual one."""

    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is asked.

    Attributes:
        kind: a key of `COLUMNS`, one of `PLACES`, or `words`: what full-text search looks for.
        text: the condition as one types it: `@1.14:`, `+mpi`, `%gcc@13`, `target=zen3`; of a
            release, a stack and a host the name.
        asked: a `Word`, a `OneOf` of packages, or what Spack's syntax asks of this kind; of a
            release and a stack the id; of the kind `specs` a `Verdict` on all that is asked beyond
            configurations; of `words` a full-text query.
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

ANYWHERE: Conditions = ()
"""Nothing that narrows an answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a file; `notes` say how it is understood."""

    conditions: Conditions
    notes: tuple[str, ...] = ()

    def within(self, scope: Conditions) -> Question:
        """Return the question narrowed by more conditions."""
        return Question((*self.conditions, *scope), self.notes)


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
            found.append(Condition(kind, f"{kind}={value}", value))
    if query.hash is not None:
        found.append(Condition("hash", f"/{query.hash}", query.hash))
    return tuple(dict.fromkeys(found))


def compiler_condition(compiler: CompilerConstraint) -> Condition:
    """Return what is asked of the one compiler of a configuration."""
    versions = f"@{compiler.versions.text}" if compiler.versions else ""
    return Condition("compiler", f"%{compiler.name}{versions}", compiler)


def readable_variants(texts: Iterable[str], name: str) -> list[Variant]:
    """Return the variants of a name, without texts that Spack would not read as a variant."""
    found = []
    for text in texts:
        if name not in text:
            continue
        try:
            variant = parse_variant(text)
        except ValueError:
            continue
        if variant.name == name:
            found.append(variant)
    return found


def _has_variant(constraint: VariantConstraint, texts: Iterable[str]) -> bool:
    variants = readable_variants(texts, constraint.name)
    return any(variant_matches(constraint, variant) for variant in variants)


def _equals(asks: str, word: str) -> bool:
    return asks == word


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "version": version_matches,
    "variant": _has_variant,
    "compiler": compiler_matches,
    "os": _equals,
    "platform": _equals,
    "target": target_matches,
    "host": lambda host, target: runs_on(target, host),
}
