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
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from spack_cache_db.model import NO_COMPILER, Configuration
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.spack.facts import CRAY_COMPILERS
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import ancestors, family, is_generic
from spack_cache_db.spack.versions import is_git_version, newest_version, preference

USUAL = {"platform": "linux", "family": "x86_64"}
"""The words that come first among words that equally many packages use, by facet."""
MOST_OPTIONS = 6
"""Maximum of options that the words of a build name."""
MOST_CHECKED = 500
"""Maximum of binaries whose dependencies are read; the best of them is chosen."""
_GROWTH = 8
"""Factor by which the number of matches that are read together grows each time."""
_UNNAMED = frozenset({"build_system", "patches"})
"""Variants that no user chooses."""


Item = TypeVar("Item")


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


@dataclass(frozen=True, slots=True)
class Proposal:
    """The build that is proposed, and why.

    Attributes:
        configuration_id: the id of its configuration.
        spec: the id of its spec.
        hash: the hash of its spec.
        decided: the steps that excluded another match; empty if there is no other.
        host: the CPU target of the machine that the question chooses; None if it
            chooses none.
        is_newest: whether no match that its version excluded has a newer numbered
            version.
        has_defaults: whether it has the default options of the package. Options that
            the question names, and options without a known default, do not count.
        options: the options that differ from the package's defaults; without package
            data those that other matches of this version do not share.
        is_current: whether a branch, a release or an installation lists it.
        is_complete: whether its dependencies are in mirrors too, as far as the database
            knows.
    """

    configuration: Configuration
    configuration_id: int
    spec: int
    hash: str
    decided: tuple[Reason, ...]
    host: str | None
    is_newest: bool
    has_defaults: bool
    options: tuple[str, ...]
    is_current: bool
    is_complete: bool

    @property
    def build(self) -> str:
        """The build in a few words:
        `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04, x86_64_v3`.
        """
        return build_words(self.configuration, self.options)

    @property
    def reason(self) -> str:
        """Why it was chosen:
        `chosen for zen3: newest version, default options, gcc 13.2.0`.
        """
        # The order of equal builds does not interest users.
        steps = [step for step in self.decided if step != Reason.ORDER]
        if not steps:
            return "the first of equal builds" if self.decided else "the only build"
        # The machine comes first: the chosen one, or all of a family.
        target = self.configuration.target
        machine = self.host
        if machine is None and Reason.MACHINE in steps and is_generic(target):
            machine = f"any {family(target)} machine"
            steps.remove(Reason.MACHINE)
        chosen = f"chosen for {machine}" if machine else "chosen"
        phrases = ", ".join(self._phrase_of(step) for step in steps)
        return f"{chosen}: {phrases}" if phrases else chosen

    def _phrase_of(self, step: Reason) -> str:
        """Return why a step preferred this build."""
        build = self.configuration
        match step:
            case Reason.INSTALLED:
                return "installed"
            case Reason.CURRENT:
                return (
                    "listed by a branch or release"
                    if self.is_current
                    else "last listed"
                )
            case Reason.COMPLETE:
                return "with all dependencies"
            case Reason.PORTABLE:
                return "needs nothing of the system"
            case Reason.ADDRESS:
                return "in a mirror with a known address"
            case Reason.PACKAGE:
                return f"{build.package} has most binaries"
            case Reason.MACHINE:
                return "for a usual machine"
            case Reason.VERSION:
                return "newest version" if self.is_newest else "preferred version"
            case Reason.OPTIONS:
                return "default options" if self.has_defaults else "commonest options"
            case Reason.COMPILER:
                return (
                    "no compiler"
                    if build.compiler == NO_COMPILER
                    else _spoken(build.compiler)
                )
            case Reason.OS:
                return f"{build.os} is the commonest system"
            case Reason.TARGET:
                return (
                    "nearest target"
                    if self.host
                    else f"{build.target} runs on most machines"
                )
            case Reason.ORDER:
                return "first of equal builds"


def build_words(configuration: Configuration, options: Sequence[str] = ()) -> str:
    """Return a configuration in a few words, with some of its variants; see
    `Proposal.build`.
    """
    shown = [
        f"{configuration.package}@{configuration.version}",
        *options[:MOST_OPTIONS],
    ]
    hidden_count = len(options) - MOST_OPTIONS
    if hidden_count > 0:
        shown.append(f"and {hidden_count} more options")
    parts = [" ".join(shown)]
    if configuration.compiler != NO_COMPILER:
        parts.append(_spoken(configuration.compiler))
    return ", ".join((*parts, configuration.os, configuration.target))


def _spoken(compiler: str) -> str:
    """Return `gcc 13.2.0` for `gcc@13.2.0`."""
    return compiler.replace("@", " ")


class Uses(NamedTuple):
    """How many packages use a word: in the release of the question, and in all
    releases.
    """

    in_release: int = 0
    anywhere: int = 0


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
        asked: names of the variants that the question names.
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
    asked: frozenset[str] = frozenset()
    installed: Mapping[int, int] = field(default_factory=dict)

    def most_used(self, facet: str, word: str) -> tuple[Uses, bool]:
        """Return a rank that is largest for the word that most packages use."""
        return self.uses.get(facet, {}).get(word, Uses()), word == USUAL.get(facet)

    def is_default(self, variant: str) -> bool:
        """Return whether a variant has its default value, or has none that counts.

        Variants that the question names do not count, and neither do those without a
        known default.
        """
        parsed = readable_variant(variant)
        if parsed is None or parsed.name in _UNNAMED or parsed.name in self.asked:
            return True
        return parsed.values == self.defaults.get(parsed.name, parsed.values)

    def has_defaults(self, variants: Iterable[str]) -> bool:
        """Return whether all variants have their defaults; False without package
        data.
        """
        return bool(self.defaults) and all(
            self.is_default(variant) for variant in variants
        )


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
        by_keys = defaultdict(list)
        for row in rows:
            by_keys[self.keys_of(row)].append(row)
        groups: dict[Any, list[Candidate]] = defaultdict(list)
        for keys, group in by_keys.items():
            groups[self.rank_of(keys)] += group
        return groups


def criteria_of(facts: Facts) -> tuple[Criterion, ...]:
    """Return the steps of the rule that compare configurations, in order.

    Each function below returns the rank of the words that a step compares; the largest
    is best.
    """

    def of_package(package: str) -> tuple[int, str]:
        return facts.package_counts.get(package, 0), package

    def of_machine(compiler: str, platform: str, target: str) -> tuple[Any, ...]:
        is_usual = compiler.partition("@")[0] not in CRAY_COMPILERS
        uses = facts.most_used("platform", platform)
        if facts.host is not None:
            return is_usual, uses
        family = facts.families.get(target, target)
        return is_usual, is_generic(target), uses, facts.most_used("family", family)

    def of_version(version: str) -> tuple[Any, ...]:
        is_numbered = not is_git_version(version)
        is_latest = version == facts.latest
        return (
            is_latest,
            version not in facts.deprecated,
            is_numbered,
            preference(version),
        )

    def of_compiler(compiler: str) -> tuple[Any, ...]:
        name, _, version = compiler.partition("@")
        return facts.most_used("compiler", name), name, preference(version)

    def of_os(name: str) -> tuple[Uses, bool]:
        return facts.most_used("os", name)

    def of_target(target: str) -> int:
        if facts.host is None:
            # A target with few ancestors runs on most machines.
            return -len(ancestors(target))
        nearest_first = (facts.host, *ancestors(facts.host))
        distance = len(nearest_first)
        if target in nearest_first:
            distance = nearest_first.index(target)
        return -distance

    def of_installed(configuration: int) -> int:
        return facts.installed.get(configuration, 0)

    words = facts.words
    of_options = _option_rank(facts)
    criteria = []
    # Most questions need neither of these two steps.
    if facts.installed:
        criteria.append(Criterion(Reason.INSTALLED, attrgetter("id"), of_installed))
    if facts.package_counts:
        criteria.append(_on_words(Reason.PACKAGE, of_package, words, "package"))
    criteria += [
        _on_words(Reason.MACHINE, of_machine, words, "compiler", "platform", "target"),
        _on_words(Reason.VERSION, of_version, words, "version"),
        Criterion(Reason.OPTIONS, _keys_of("version", "variants"), of_options),
        _on_words(Reason.COMPILER, of_compiler, words, "compiler"),
        _on_words(Reason.OS, of_os, words, "os"),
        _on_words(Reason.TARGET, of_target, words, "target"),
    ]
    return tuple(criteria)


def _on_words(
    reason: Reason,
    rank: Callable[..., Any],
    words: Mapping[str, Mapping[int, Any]],
    *columns: str,
) -> Criterion:
    """Return a step that ranks the words of columns; the same words are ranked once."""

    @cache
    def rank_of(keys: Any) -> Any:
        # `_keys_of` returns a tuple only for several columns.
        ids = keys if len(columns) > 1 else (keys,)
        of_columns = [
            words[column][key] for column, key in zip(columns, ids, strict=True)
        ]
        return rank(*of_columns)

    return Criterion(reason, _keys_of(*columns), rank_of)


def _keys_of(*columns: str) -> Callable[[Candidate], Any]:
    """Return a function that returns the id of a row in one column, or the ids in
    several.
    """
    order = list(CONFIGURATION)
    ids_in_columns = itemgetter(*(order.index(column) for column in columns))
    return lambda row: ids_in_columns(row.keys)


def _option_rank(facts: Facts) -> Callable[[tuple[int, int]], tuple[bool, int]]:
    """Return a function that ranks a version's variants: defaults first, then the
    commonest.
    """
    is_default = cache(facts.is_default)
    uses_of = cache(facts.option_uses)

    @cache
    def are_defaults(variants: int) -> bool:
        return bool(facts.defaults) and all(
            map(is_default, facts.words["variants"][variants])
        )

    @cache
    def rank_of(keys: tuple[int, int]) -> tuple[bool, int]:
        version, variants = keys
        return are_defaults(variants), uses_of(version).get(variants, 0)

    return rank_of


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


class Standing(NamedTuple):
    """Whether a binary can be installed; the largest is best.

    Attributes:
        is_current: whether a branch or a release lists it, or the release of the
            question.
        is_complete: whether mirrors have what it needs, as far as the database knows.
        is_portable: whether it needs nothing that the system must provide.
        has_address: whether the addresses of these mirrors are known.
    """

    is_current: bool
    is_complete: bool
    is_portable: bool
    has_address: bool


BEST = Standing(is_current=True, is_complete=True, is_portable=True, has_address=True)
_STANDING_REASONS = (Reason.CURRENT, Reason.COMPLETE, Reason.PORTABLE, Reason.ADDRESS)
"""The step for each field of a `Standing`, in their order."""


class Option(NamedTuple):
    """A spec that may be chosen; `is_alone` if no other spec is equal to it in all
    criteria.
    """

    row: Candidate
    spec: Spec
    is_alone: bool


class Choice(NamedTuple):
    """The option that was chosen, and the standing of those that come before it."""

    option: Option
    standing: Standing
    passed_over: Mapping[Candidate, Standing]


def options_in_order(
    groups: Iterator[Sequence[Candidate]],
    specs_of: Callable[[Sequence[Candidate]], Mapping[int, Sequence[Spec]]],
) -> Iterator[Option]:
    """Yield the specs of groups of rows, those of a group by release and then by hash.

    Args:
        groups: rows in order (`in_order`).
        specs_of: returns the specs of rows, by the ids of their configurations.
    """
    for batch in _growing(groups):
        specs = specs_of([row for group in batch for row in group])
        for group in batch:
            pairs = [(row, spec) for row in group for spec in specs.get(row.id, ())]
            # The ids of specs are in the order of their first release and hash.
            pairs.sort(key=lambda pair: pair[1].id)
            for row, spec in pairs:
                yield Option(row, spec, is_alone=len(pairs) == 1)


def choose(
    options: Iterator[Option],
    standings_of: Callable[[Sequence[Spec]], Mapping[int, Standing]],
) -> Choice | None:
    """Return the first option of the best standing; None if there is no option.

    Args:
        options: the options in order; at most `MOST_CHECKED` are looked at.
        standings_of: returns the standing of specs, by their ids.
    """
    best: Choice | None = None
    passed_over: dict[Candidate, Standing] = {}
    for batch in _growing(islice(options, MOST_CHECKED)):
        standings = standings_of([option.spec for option in batch])
        for option in batch:
            standing = standings[option.spec.id]
            if best is None or standing > best.standing:
                best = Choice(option, standing, dict(passed_over))
            if standing == BEST:
                return best
            # Of several specs of a row, the best standing counts.
            earlier = passed_over.get(option.row, standing)
            passed_over[option.row] = max(standing, earlier)
    return best


def _growing(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield the first item, then more and more items together."""
    count = 1
    while batch := list(islice(items, count)):
        yield batch
        count *= _GROWTH


def proposal_of(
    choice: Choice,
    rows: Sequence[Candidate],
    facts: Facts,
    criteria: Sequence[Criterion],
    before: Iterable[Reason] = (),
) -> Proposal:
    """Return a choice as a proposal.

    Args:
        choice: the chosen spec.
        rows: the matches.
        facts: what the rule knows about them.
        criteria: the steps that compared the matches.
        before: steps that excluded matches before these were compared.
    """
    # A step on the standing decided if a row that comes before the choice fails it.
    decided = list(before)
    for position, reason in enumerate(_STANDING_REASONS):
        passed = [standing[position] for standing in choice.passed_over.values()]
        if choice.standing[position] and not all(passed):
            decided.append(reason)

    # The other steps compared rows.
    chosen = choice.option.row
    steps = decisive_steps(rows, criteria, chosen)
    decided += [step.reason for step in steps]
    if not choice.option.is_alone:
        decided.append(Reason.ORDER)
    order = list(Reason)
    decided.sort(key=order.index)

    configuration = Configuration._make(
        facts.words[column][chosen.key(column)] for column in CONFIGURATION
    )
    newest = newest_version([*_excluded_numbers(steps, facts), configuration.version])
    return Proposal(
        configuration=configuration,
        configuration_id=chosen.id,
        spec=choice.option.spec.id,
        hash=choice.option.spec.hash,
        decided=tuple(decided),
        host=facts.host,
        is_newest=newest == configuration.version,
        has_defaults=facts.has_defaults(configuration.variants),
        options=_options(chosen, rows, facts),
        is_current=choice.standing.is_current,
        is_complete=choice.standing.is_complete,
    )


def _excluded_numbers(steps: Iterable[Step], facts: Facts) -> list[str]:
    """Return the versions that the step on versions excluded, without branches and
    commits.
    """
    ids: set[int] = set()
    for step in steps:
        if step.reason == Reason.VERSION:
            ids.update(row.key("version") for row in step.excluded)
    versions = [facts.words["version"][key] for key in ids]
    return [version for version in versions if not is_git_version(version)]


def _options(
    chosen: Candidate, rows: Sequence[Candidate], facts: Facts
) -> tuple[str, ...]:
    """Return the variants that describe a build; see `Proposal.options`."""
    # The variants that all matches of this version have.
    texts_of = facts.words["variants"]
    version = chosen.key("version")
    set_ids = {row.key("variants") for row in rows if row.key("version") == version}
    shared = frozenset.intersection(*(frozenset(texts_of[key]) for key in set_ids))
    options = []
    for text in texts_of[chosen.key("variants")]:
        parsed = readable_variant(text)
        if parsed is None or parsed.name in _UNNAMED:
            continue
        if parsed.name in facts.defaults:
            differs = parsed.values != facts.defaults[parsed.name]
        else:
            differs = not facts.defaults and text not in shared
        if differs or parsed.name in facts.asked:
            options.append(text)
    return tuple(options)
