"""The rule that chooses the build to propose among the matches of a question.

A question such as `hdf5` or `hdf5 +mpi target=:zen3` often has many matches. These are
compared step by step, and the first step in which they differ decides:

1. an installed spec, first one that was installed explicitly;
2. a binary that a branch or a release lists, not only an old snapshot; for which
   mirrors have everything that it needs; that needs nothing of the system; and whose
   mirrors have known addresses;
3. of several packages, the one with most binaries;
4. a stable version, if one is not deprecated: not a branch such as `develop`, unless
   the recipe prefers it, and not a version of git;
5. a build for a usual machine: of a platform that the chosen machine can have, not for
   a Cray, of the commonest platform and, if no machine is chosen, for a generic target
   such as `x86_64_v3` of the commonest family;
6. the version that Spack prefers: not deprecated, a number before a branch or a commit;
7. the default options of the package, or else the commonest options of that version;
8. the newest version of the compiler that most packages of the release use;
9. the operating system that most packages of the release use;
10. the nearest target for the chosen machine, or else the one that runs on most
    machines;
11. the first release that lists it, and the hash.

The matches are configurations (`Candidate`), called rows here. A row has an id in place
of each of its words, such as its version or its compiler. All steps but 2 and 11
compare rows: each is a `Criterion`, whose ranks are in `ranks`, and `in_order` sorts
rows by them.

Steps 2 and 11 compare single specs, and `options` applies them. Step 2 needs the
dependencies of a spec, which take time to read, so it is applied last: of the rows in
order, the first that passes is chosen. Step 11 is the order of the specs of equal rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from spack_cache_db.query.choice.ranks import Facts, OptionRank, Ranks
from spack_cache_db.query.match.candidates import KEY_POSITIONS, Candidate


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
    STABLE = "stable"
    MACHINE = "machine"
    VERSION = "version"
    OPTIONS = "options"
    COMPILER = "compiler"
    OS = "os"
    TARGET = "target"
    ORDER = "order"


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
    ranks = Ranks(facts)
    criteria = []
    # Some questions do not need these steps.
    if facts.installed:
        criteria.append(
            Criterion(Reason.INSTALLED, attrgetter("id"), ranks.of_installed)
        )
    if facts.package_counts:
        criteria.append(_on_word(Reason.PACKAGE, ranks.of_package, words, "package"))
    if facts.has_stable:
        criteria.append(_on_word(Reason.STABLE, ranks.of_stability, words, "version"))
    # All questions have the others.
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
