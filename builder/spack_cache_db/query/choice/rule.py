"""The one rule that chooses the build to propose among the matches of a question.

A question such as `hdf5` or `hdf5 +mpi target=:zen3` often has many matches. These are
compared step by step, and the first step in which they differ decides:

1. an installed spec, first one that was installed explicitly;
2. a binary that a branch or a release lists, not only an old snapshot; for which
   mirrors have everything that it needs; that needs nothing of the system; and whose
   mirrors have known addresses;
3. of several packages, the one with most binaries;
4. a build for a usual machine: not for a Cray, of the commonest platform and, if no
   machine is chosen, for any processor of a family, the commonest family first;
5. the version that Spack prefers: not deprecated, a number before a branch or a commit;
6. the default options of the package, or else the commonest options of that version;
7. the newest version of the compiler that most packages of the release use;
8. the operating system that most packages of the release use;
9. the nearest target for the chosen machine, or else the one that runs on most
   machines;
10. the first release that lists it, and the hash.

Step 2 needs the dependencies of a binary, which take time to read. So it is applied
last: the matches are put into the order of the other steps, and the first that passes
is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from spack_cache_db.query.match.candidates import KEY_POSITIONS, Candidate
from spack_cache_db.spack.facts import CRAY_COMPILERS
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import ancestors, is_generic
from spack_cache_db.spack.versions import is_git_version, preference

USUAL = {"platform": "linux", "family": "x86_64"}
"""The words that come first among words that equally many packages use, by facet."""
UNNAMED = frozenset({"build_system", "patches"})
"""Variants that no user chooses."""


class Reason(StrEnum):
    """A step of the rule, in the order of the steps."""

    INSTALLED = "installed"
    CURRENT = "current"
    COMPLETE = "complete"
    PORTABLE = "portable"
    ADDRESS = "address"
    PACKAGE = "package"
    MACHINE = "machine"
    VERSION = "version"
    OPTIONS = "options"
    COMPILER = "compiler"
    OS = "os"
    TARGET = "target"
    ORDER = "order"


class Uses(NamedTuple):
    """How many packages use a word: in the release of the question, and in all
    releases.
    """

    in_release: int = 0
    anywhere: int = 0


class Usage(NamedTuple):
    """A rank: how many packages use a word, and whether it is one of `USUAL`."""

    uses: Uses
    is_usual: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the rule uses beside the matches.

    Attributes:
        words: the words of each column of a configuration, by id (`Lookups.words`).
        families: the family of each target.
        uses: how many packages use a word, by facet (`compiler` names, `os`,
            `platform`, `family`).
        option_uses: returns for the id of a version how many binaries it has with each
            set of variants, by the ids of sets.
        package_counts: the number of binaries of each package; empty if there is one
            package.
        host: the CPU target of the chosen machine; None if none is chosen.
        latest: the version that the package's recipe prefers; None if unknown.
        deprecated: versions that the recipe calls deprecated.
        defaults: the values of each variant by default; empty without package data.
        named_variants: names of the variants that the question names.
        installed: configurations with an installed spec; 2 for an explicit one,
            otherwise 1.
    """

    words: Mapping[str, Mapping[int, Any]]
    families: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, Mapping[str, Uses]] = field(default_factory=dict)
    option_uses: Callable[[int], Mapping[int, int]] = lambda version: {}
    package_counts: Mapping[str, int] = field(default_factory=dict)
    host: str | None = None
    latest: str | None = None
    deprecated: frozenset[str] = frozenset()
    defaults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named_variants: frozenset[str] = frozenset()
    installed: Mapping[int, int] = field(default_factory=dict)

    def usage(self, facet: str, word: str) -> Usage:
        """Return a rank that is largest for the word that most packages use."""
        uses = self.uses.get(facet, {}).get(word, Uses())
        return Usage(uses, is_usual=word == USUAL.get(facet))

    def is_default(self, variant: str) -> bool:
        """Return whether a variant has its default value, or has none that counts.

        Variants that the question names do not count, and neither do those without a
        known default.
        """
        parsed = readable_variant(variant)
        if (
            parsed is None
            or parsed.name in UNNAMED
            or parsed.name in self.named_variants
        ):
            return True
        return parsed.values == self.defaults.get(parsed.name, parsed.values)

    def has_defaults(self, variants: Iterable[str]) -> bool:
        """Return whether all variants have their defaults; False without package
        data.
        """
        if not self.defaults:
            return False
        return all(self.is_default(variant) for variant in variants)


class Criterion(NamedTuple):
    """A step of the rule: the match with the largest rank is best.

    Attributes:
        keys_of: returns the ids in a row that the step reads.
        rank_of: returns the rank of a row with these ids.
    """

    reason: Reason
    keys_of: Callable[[Candidate], Hashable]
    rank_of: Callable[[Any], Any]

    def rank(self, row: Candidate) -> Any:
        """Return the rank of a row."""
        return self.rank_of(self.keys_of(row))

    def by_rank(self, rows: Iterable[Candidate]) -> Mapping[Any, Sequence[Candidate]]:
        """Return rows by their ranks."""
        # Many rows have the same ids, so the rank of each group of ids is computed
        # once.
        rows_of_keys = defaultdict(list)
        for row in rows:
            rows_of_keys[self.keys_of(row)].append(row)
        rows_of_rank: dict[Any, list[Candidate]] = defaultdict(list)
        for keys, group in rows_of_keys.items():
            rows_of_rank[self.rank_of(keys)] += group
        return rows_of_rank


class MachineRank(NamedTuple):
    """The rank of a machine: the fields are compared in their order.

    Attributes:
        is_usual: whether it is not a Cray.
        is_generic: whether the target is a family, such as `x86_64`.
    """

    is_usual: bool
    is_generic: bool
    platform: Usage
    family: Usage


class VersionRank(NamedTuple):
    """The rank of a version.

    Attributes:
        is_latest: whether it is the one that the recipe prefers.
        is_supported: whether it is not deprecated.
        is_numbered: whether it is not a branch or a commit.
        preference: Spack's order of versions (`versions.preference`).
    """

    is_latest: bool
    is_supported: bool
    is_numbered: bool
    preference: Any


class CompilerRank(NamedTuple):
    """The rank of a compiler; `version` is in Spack's order of versions."""

    usage: Usage
    name: str
    version: Any


class OptionRank(NamedTuple):
    """The rank of a set of variants, and how many binaries of the version have it."""

    has_defaults: bool
    spec_count: int


def criteria_of(facts: Facts) -> tuple[Criterion, ...]:
    """Return the steps of the rule that compare configurations, in order.

    Each function below returns the rank of the words that a step compares; the largest
    is best.
    """

    def rank_of_package(package: str) -> tuple[int, str]:
        return facts.package_counts.get(package, 0), package

    def rank_of_machine(compiler: str, platform: str, target: str) -> MachineRank:
        compiler_name, _, _ = compiler.partition("@")
        is_usual = compiler_name not in CRAY_COMPILERS
        platform_usage = facts.usage("platform", platform)
        if facts.host is not None:
            # The chosen machine has one family; the step on targets compares the rest.
            return MachineRank(is_usual, True, platform_usage, Usage(Uses(), False))
        family = facts.families.get(target, target)
        family_usage = facts.usage("family", family)
        return MachineRank(is_usual, is_generic(target), platform_usage, family_usage)

    def rank_of_version(version: str) -> VersionRank:
        return VersionRank(
            is_latest=version == facts.latest,
            is_supported=version not in facts.deprecated,
            is_numbered=not is_git_version(version),
            preference=preference(version),
        )

    def rank_of_compiler(compiler: str) -> CompilerRank:
        name, _, version = compiler.partition("@")
        return CompilerRank(facts.usage("compiler", name), name, preference(version))

    def rank_of_os(name: str) -> Usage:
        return facts.usage("os", name)

    def rank_of_target(target: str) -> int:
        if facts.host is None:
            # A target with few ancestors runs on most machines.
            return -len(ancestors(target))
        nearest_first = (facts.host, *ancestors(facts.host))
        distance = len(nearest_first)
        if target in nearest_first:
            distance = nearest_first.index(target)
        return -distance

    def rank_of_installed(configuration: int) -> int:
        return facts.installed.get(configuration, 0)

    words = facts.words
    criteria = []
    # Most questions need neither of these two steps.
    if facts.installed:
        criteria.append(
            Criterion(Reason.INSTALLED, attrgetter("id"), rank_of_installed)
        )
    if facts.package_counts:
        criteria.append(_on_word(Reason.PACKAGE, rank_of_package, words, "package"))
    criteria += [
        _on_words(
            Reason.MACHINE, rank_of_machine, words, ("compiler", "platform", "target")
        ),
        _on_word(Reason.VERSION, rank_of_version, words, "version"),
        _on_options(facts),
        _on_word(Reason.COMPILER, rank_of_compiler, words, "compiler"),
        _on_word(Reason.OS, rank_of_os, words, "os"),
        _on_word(Reason.TARGET, rank_of_target, words, "target"),
    ]
    return tuple(criteria)


def _on_word(
    reason: Reason,
    rank_of_word: Callable[[str], Any],
    words: Mapping[str, Mapping[int, Any]],
    column: str,
) -> Criterion:
    """Return a step that ranks the words of a column; each word is ranked once."""
    words_of_column = words[column]

    @cache
    def rank_of(word_id: int) -> Any:
        return rank_of_word(words_of_column[word_id])

    return Criterion(reason, _ids_in((column,)), rank_of)


def _on_words(
    reason: Reason,
    rank_of_words: Callable[..., Any],
    words: Mapping[str, Mapping[int, Any]],
    columns: Sequence[str],
) -> Criterion:
    """Return a step that ranks the words of several columns together."""

    @cache
    def rank_of(word_ids: tuple[int, ...]) -> Any:
        pairs = zip(columns, word_ids, strict=True)
        return rank_of_words(*(words[column][word_id] for column, word_id in pairs))

    return Criterion(reason, _ids_in(columns), rank_of)


def _on_options(facts: Facts) -> Criterion:
    """Return the step that ranks a version's variants: defaults first, then the
    commonest.
    """
    is_default = cache(facts.is_default)
    uses_of = cache(facts.option_uses)

    @cache
    def are_defaults(variant_set: int) -> bool:
        if not facts.defaults:
            return False
        return all(is_default(text) for text in facts.words["variants"][variant_set])

    @cache
    def rank_of(keys: tuple[int, int]) -> OptionRank:
        version, variant_set = keys
        spec_count = uses_of(version).get(variant_set, 0)
        return OptionRank(are_defaults(variant_set), spec_count)

    return Criterion(Reason.OPTIONS, _ids_in(("version", "variants")), rank_of)


def _ids_in(columns: Sequence[str]) -> Callable[[Candidate], Any]:
    """Return a function that returns the id of a row in one column, or the ids in
    several as a tuple.
    """
    # `itemgetter` is quicker than a loop, and there are many rows.
    ids_in_columns = itemgetter(*(KEY_POSITIONS[column] for column in columns))
    return lambda row: ids_in_columns(row.keys)


def in_order(
    rows: Sequence[Candidate], criteria: Sequence[Criterion]
) -> Iterator[Sequence[Candidate]]:
    """Yield groups of rows that are equal in all criteria, the best group first.

    A caller that takes only the first groups saves the comparisons of the others.
    """
    if not criteria or len(rows) == 1:
        yield rows
        return
    first, *others = criteria
    groups = first.by_rank(rows)
    for rank in sorted(groups, reverse=True):
        yield from in_order(groups[rank], others)


class Step(NamedTuple):
    """A step of the rule, and the rows that it excluded."""

    reason: Reason
    excluded: Sequence[Candidate]


def decisive_steps(
    rows: Sequence[Candidate], criteria: Sequence[Criterion], chosen: Candidate
) -> list[Step]:
    """Return the steps in which `chosen` was better than a row that was equal until
    then.

    Rows that are better than `chosen` have no usable binary, and are left out.
    """
    steps = []
    for criterion in criteria:
        groups = criterion.by_rank(rows)
        chosen_rank = criterion.rank(chosen)
        excluded: list[Candidate] = []
        for rank, group in groups.items():
            if rank < chosen_rank:
                excluded += group
        if excluded:
            steps.append(Step(criterion.reason, excluded))
        rows = groups[chosen_rank]
    return steps
