"""The rule that chooses the build to propose among the matches of a question.

A question such as `hdf5` or `hdf5 +mpi target=:zen3` often has many matches. These are
compared step by step, and the first step in which they differ decides:

1. an installed spec, first one that was installed explicitly;
2. a binary that a branch or a release lists, not only an old snapshot; for which
   mirrors have everything that it needs; that needs nothing of the system; and whose
   mirrors have known addresses;
3. of several packages, the one with most binaries;
4. a build for a usual machine: not for a Cray, of the commonest platform and, if no
   machine is chosen, for a generic target such as `x86_64_v3` of the commonest family;
5. the version that Spack prefers: not deprecated, a number before a branch or a commit;
6. the default options of the package, or else the commonest options of that version;
7. the newest version of the compiler that most packages of the release use;
8. the operating system that most packages of the release use;
9. the nearest target for the chosen machine, or else the one that runs on most
   machines;
10. the first release that lists it, and the hash.

The matches are configurations (`Candidate`), called rows here. A row has an id in place
of each of its words, such as its version or its compiler. The steps that compare words
are criteria here (`criteria_of`), and `in_order` sorts rows by them.

The other two steps compare single specs, and `options` applies them. Step 2 needs the
dependencies of a spec, which take time to read, so it is applied last: of the rows in
order, the first that passes is chosen. Step 10 is the order of the specs of equal rows.
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
"""The platform and the family of CPUs that come first where others are as common."""
UNNAMED = frozenset({"build_system", "patches"})
"""Variants that no user chooses."""


class Reason(StrEnum):
    """A step of the rule, in the order of the steps."""

    INSTALLED = "installed"
    # The four parts of step 2: a branch or a release lists the binary, mirrors have all
    # that it needs, the system need not provide anything, the mirrors have URLs.
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
    """How many packages use a word, such as the compiler `gcc`.

    Compared as tuples: the numbers of all releases count only if those of the release
    are equal.

    Attributes:
        in_release: the number of packages in the release of the question, or else in
            the first release of the database.
        anywhere: the number of packages in all releases.
    """

    in_release: int = 0
    anywhere: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rule knows beside the rows.

    Attributes:
        words: for each column of a configuration, such as `version`, its words by their
            ids; a word of `variants` is a tuple of variants.
        families: the family of each target, such as `x86_64` of `zen3`.
        uses: how many packages use a word, for each kind of word: the name of a
            `compiler`, an `os`, a `platform` or a `family` of targets.
        option_uses: returns for a version, given by id, how many of its binaries have
            each set of variants, by the ids of the sets.
        package_counts: the number of binaries of each package; empty if all rows are of
            one package.
        host: the CPU target of the chosen machine; None if none is chosen.
        latest: the version that the package's recipe prefers; None if unknown.
        deprecated: the versions that the recipe calls deprecated.
        defaults: the values of each variant by default; empty without package data.
        named_variants: the names of the variants that the question names.
        installed: the configurations with an installed spec, by id: 2 if one was
            installed explicitly, otherwise 1.
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

    def has_defaults(self, variants: Iterable[str]) -> bool:
        """Return whether all variants have their defaults; False without package
        data.
        """
        if not self.defaults:
            return False
        return all(self.is_default(variant) for variant in variants)

    def is_default(self, variant: str) -> bool:
        """Return whether a variant such as `+mpi` has its default value.

        True for variants that do not count: those that the question or nobody chooses,
        and those without a known default.
        """
        parsed = readable_variant(variant)
        if parsed is None or parsed.name in UNNAMED:
            return True
        if parsed.name in self.named_variants:
            return True
        default = self.defaults.get(parsed.name)
        return default is None or parsed.values == default


# The ranks of words. Records are compared as tuples: an earlier field counts more than
# all later ones, and the largest rank is best.


class Usage(NamedTuple):
    """The rank of a word by how many packages use it.

    Attributes:
        is_usual: whether it is one of `USUAL`.
    """

    uses: Uses
    is_usual: bool


class MachineRank(NamedTuple):
    """The rank of a kind of machine.

    Attributes:
        is_usual: whether it is not a Cray.
        is_generic: whether the target is a family or a level of it, such as
            `x86_64_v3`, not a processor, such as `zen3`.
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
        is_numbered: whether it is not a version of git, such as a commit.
        preference: Spack's order, in which branches come behind numbers
            (`versions.preference`).
    """

    is_latest: bool
    is_supported: bool
    is_numbered: bool
    preference: Any


class OptionRank(NamedTuple):
    """The rank of a set of variants.

    Attributes:
        has_defaults: whether all variants have their defaults.
        spec_count: how many binaries of the version have this set.
    """

    has_defaults: bool
    spec_count: int


class CompilerRank(NamedTuple):
    """The rank of a compiler; `version` is a key in Spack's order of versions."""

    usage: Usage
    name: str
    version: Any


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The ranks of words: each method ranks the words that one step compares."""

    facts: Facts

    def of_installed(self, configuration: int) -> int:
        """Explicitly installed configurations first, then other installed ones."""
        return self.facts.installed.get(configuration, 0)

    def of_package(self, package: str) -> tuple[int, str]:
        """The package with most binaries first; of equal ones, the last by name."""
        return self.facts.package_counts.get(package, 0), package

    def of_machine(self, compiler: str, platform: str, target: str) -> MachineRank:
        """Usual machines first; without a chosen machine, then generic targets and the
        commonest family.
        """
        compiler_name, _, _ = compiler.partition("@")
        is_usual = compiler_name not in CRAY_COMPILERS
        platform_usage = self._usage("platform", platform)
        if self.facts.host is not None:
            # All rows are equal in the other fields: the machine has one family, and
            # `of_target` compares the targets in it.
            return MachineRank(
                is_usual,
                is_generic=True,
                platform=platform_usage,
                family=Usage(Uses(), is_usual=False),
            )
        family = self.facts.families.get(target, target)
        return MachineRank(
            is_usual,
            is_generic=is_generic(target),
            platform=platform_usage,
            family=self._usage("family", family),
        )

    def of_version(self, version: str) -> VersionRank:
        """The version that Spack prefers first."""
        return VersionRank(
            is_latest=version == self.facts.latest,
            is_supported=version not in self.facts.deprecated,
            is_numbered=not is_git_version(version),
            preference=preference(version),
        )

    def of_compiler(self, compiler: str) -> CompilerRank:
        """The commonest compiler first, in any version; then its newest version."""
        name, _, version = compiler.partition("@")
        usage = self._usage("compiler", name)
        return CompilerRank(usage, name, preference(version))

    def of_os(self, name: str) -> Usage:
        """The commonest operating system first."""
        return self._usage("os", name)

    def of_target(self, target: str) -> int:
        """The nearest target for the chosen machine first, or else the target that runs
        on most machines.
        """
        host = self.facts.host
        if host is None:
            # A target runs on few machines if it extends many other targets.
            return -len(ancestors(target))
        nearest_first = (host, *ancestors(host))
        if target not in nearest_first:
            # It does not run on the machine, and comes last.
            return -len(nearest_first)
        return -nearest_first.index(target)

    def _usage(self, kind: str, word: str) -> Usage:
        uses_of_kind = self.facts.uses.get(kind, {})
        uses = uses_of_kind.get(word, Uses())
        return Usage(uses, is_usual=word == USUAL.get(kind))


class Criterion(NamedTuple):
    """A step of the rule: the row with the largest rank is best.

    Attributes:
        keys_of: returns the ids in a row that the step compares.
        rank_of: returns the rank of these ids.
    """

    reason: Reason
    keys_of: Callable[[Candidate], Hashable]
    rank_of: Callable[[Any], Any]

    def rank(self, row: Candidate) -> Any:
        """Return the rank of a row."""
        return self.rank_of(self.keys_of(row))

    def by_rank(self, rows: Iterable[Candidate]) -> Mapping[Any, Sequence[Candidate]]:
        """Return rows by their ranks."""
        # Many rows have the same ids, whose rank is computed once.
        rows_of_keys = defaultdict(list)
        for row in rows:
            rows_of_keys[self.keys_of(row)].append(row)
        # Different ids may have the same rank.
        rows_of_rank: dict[Any, list[Candidate]] = defaultdict(list)
        for keys, group in rows_of_keys.items():
            rows_of_rank[self.rank_of(keys)] += group
        return rows_of_rank


def criteria_of(facts: Facts) -> tuple[Criterion, ...]:
    """Return the steps of the rule that compare configurations, in order."""
    words = facts.words
    ranks = _Ranks(facts)
    criteria = []
    # Most questions need neither of these two steps.
    if facts.installed:
        criteria.append(
            Criterion(Reason.INSTALLED, attrgetter("id"), ranks.of_installed)
        )
    if facts.package_counts:
        criteria.append(_on_word(Reason.PACKAGE, ranks.of_package, words, "package"))
    machine = ("compiler", "platform", "target")
    criteria += [
        _on_words(Reason.MACHINE, ranks.of_machine, words, machine),
        _on_word(Reason.VERSION, ranks.of_version, words, "version"),
        _on_options(facts),
        _on_word(Reason.COMPILER, ranks.of_compiler, words, "compiler"),
        _on_word(Reason.OS, ranks.of_os, words, "os"),
        _on_word(Reason.TARGET, ranks.of_target, words, "target"),
    ]
    return tuple(criteria)


def _on_word(
    reason: Reason,
    rank_of_word: Callable[[str], Any],
    words: Mapping[str, Mapping[int, Any]],
    column: str,
) -> Criterion:
    """Return a step that compares the words of a column; each word is ranked once."""
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
    """Return a step that compares the words of several columns together."""

    @cache
    def rank_of(word_ids: tuple[int, ...]) -> Any:
        words_of_row = []
        for column, word_id in zip(columns, word_ids, strict=True):
            words_of_row.append(words[column][word_id])
        return rank_of_words(*words_of_row)

    return Criterion(reason, _ids_in(columns), rank_of)


def _on_options(facts: Facts) -> Criterion:
    """Return the step that compares variants: defaults first, then the commonest of a
    version.
    """
    # Versions share sets of variants, and sets share variants: each is read once.
    is_default = cache(facts.is_default)
    uses_of = cache(facts.option_uses)

    @cache
    def has_defaults(variant_set: int) -> bool:
        if not facts.defaults:
            return False
        return all(is_default(text) for text in facts.words["variants"][variant_set])

    @cache
    def rank_of(keys: tuple[int, int]) -> OptionRank:
        version, variant_set = keys
        spec_count = uses_of(version).get(variant_set, 0)
        return OptionRank(has_defaults(variant_set), spec_count)

    return Criterion(Reason.OPTIONS, _ids_in(("version", "variants")), rank_of)


def _ids_in(columns: Sequence[str]) -> Callable[[Candidate], Any]:
    """Return a function that returns the id of a row in one column, or a tuple of its
    ids in several.
    """
    # `itemgetter` is quicker than a loop, and there are many rows.
    positions = [KEY_POSITIONS[column] for column in columns]
    ids_at_positions = itemgetter(*positions)
    return lambda row: ids_at_positions(row.keys)


def in_order(
    rows: Sequence[Candidate], criteria: Sequence[Criterion]
) -> Iterator[Sequence[Candidate]]:
    """Yield groups of rows that are equal in all criteria, the best group first.

    A caller that takes only the first groups saves the comparisons of the others.
    """
    if not criteria or len(rows) == 1:
        yield rows
        return
    # Rows that are equal in the first criterion are compared by the others.
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

    Rows that are better than `chosen` are in no step: they have no spec, or their specs
    were passed over in step 2.
    """
    steps = []
    equal_rows = rows
    for criterion in criteria:
        groups = criterion.by_rank(equal_rows)
        chosen_rank = criterion.rank(chosen)
        excluded: list[Candidate] = []
        for rank, group in groups.items():
            if rank < chosen_rank:
                excluded += group
        if excluded:
            steps.append(Step(criterion.reason, excluded))
        equal_rows = groups[chosen_rank]
    return steps
