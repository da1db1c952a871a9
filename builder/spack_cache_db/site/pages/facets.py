"""The values that a package's filters offer, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from spack_cache_db.query.conditions import COLUMNS, Conditions
from spack_cache_db.query.configurations import Counted, count_by_release, count_by_stack
from spack_cache_db.query.database import Lookups, Release, Stack
from spack_cache_db.site.pages.filters import LABELS, Filters, NameCounts, hosts_of, value_of
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import runs_on


class Choice(NamedTuple):
    """A filter, its value if it has one, and for each possible value the configurations left."""

    name: str
    chosen: str | None
    values: NameCounts

    @property
    def label(self) -> str:
        """The label: for a chosen variant, the variant's name."""
        is_variant = self.name == "variant" and self.chosen is not None
        return _variant_name(str(self.chosen)) if is_variant else LABELS[self.name]


class Matches(NamedTuple):
    """Configurations that match all filters, and those that fail one, by its name and value.

    Release and stack are ignored.
    """

    fitting: list[Counted]
    lacking: dict[tuple[str, str], list[Counted]]

    def counted(self, counts: Callable[[list[Counted]], list[Counted]]) -> Matches:
        """Return the configurations that `counts` keeps, with its numbers of specs."""
        lacking = {key: counts(rows) for key, rows in self.lacking.items()}
        return Matches(counts(self.fitting), lacking)


def matches_of(every: Iterable[Counted], conditions: Conditions) -> Matches:
    """Return the configurations that satisfy all conditions, and those that fail one."""
    tests = [(condition, COLUMNS[condition.kind]) for condition in conditions]
    matches = Matches([], {(condition.kind, condition.text): [] for condition in conditions})
    for row in every:
        words = row.configuration
        failed = [test for test, column in tests if not test.holds(getattr(words, column))]
        if not failed:
            matches.fitting.append(row)
        elif len(failed) == 1:
            matches.lacking[failed[0].kind, failed[0].text].append(row)
    return matches


def choices_of(
    lookups: Lookups,
    filters: Filters,
    anywhere: Matches,
    in_place: Matches,
    releases: Mapping[int, Iterable[int]],
) -> tuple[Choice, ...]:
    """Return the values that each filter offers while the others keep their values.

    Args:
        anywhere: the configurations of the package.
        in_place: the same, limited to the chosen release and stack.
        releases: the ids of the releases that list each configuration, by its id.
    """
    fitting = in_place.fitting
    shown_in = {row.id: releases[row.id] for row in anywhere.fitting}
    choices = [
        Choice("release", filters.release, _releases(lookups, filters.stack, shown_in)),
        Choice("stack", filters.stack, _stacks(lookups, filters.release, shown_in)),
    ]
    for name in ("host", "version", "compiler", "os", "platform", "target"):
        chosen = getattr(filters, name)
        rows = fitting + in_place.lacking.get((name, chosen or ""), [])
        choices.append(Choice(name, chosen, _values(name, rows)))
    for text in filters.variant:
        rows = fitting + in_place.lacking["variant", text]
        same = [(value, count) for value, count in _variants(rows) if _is_same(value, text)]
        choices.append(Choice("variant", text, tuple(same)))
    # Variants that all configurations have are no choice.
    varying = ((text, count) for text, count in _variants(fitting) if count < len(fitting))
    choices.append(Choice("variant", None, tuple(varying)))
    # A filter with a single value is useful only if nothing matches the others.
    return tuple(
        _with_chosen(choice, len(fitting))
        for choice in choices
        if choice.chosen is not None
        or len(choice.values) > (choice.name != "variant" and bool(fitting))
    )


def _with_chosen(choice: Choice, count: int) -> Choice:
    """Return a choice whose values include the chosen one."""
    if choice.chosen is None or choice.chosen in dict(choice.values):
        return choice
    return choice._replace(values=((choice.chosen, count), *choice.values))


def _releases(lookups: Lookups, name: str | None, shown: Mapping[int, Iterable[int]]) -> NameCounts:
    """Return the releases that list these configurations in a stack, or anywhere."""
    if name is None:
        return _named(Counter(chain.from_iterable(shown.values())).items(), lookups.releases)
    stack = lookups.stack(name)
    counts = count_by_release(lookups.conn, shown, stack.id) if stack else ()
    return _named(counts, lookups.releases)


def _stacks(lookups: Lookups, name: str | None, shown: Iterable[int]) -> NameCounts:
    """Return the stacks that list these configurations in a release, or anywhere."""
    release = lookups.release(name)
    if name is not None and release is None:
        return ()
    counts = count_by_stack(lookups.conn, shown, release.id if release else None)
    return _named(counts, lookups.stacks)


def _values(name: str, rows: Sequence[Counted]) -> NameCounts:
    """Return the values of a filter that configurations have, in the order of a form."""
    if name == "host":
        targets = Counter(row.configuration.target for row in rows)
        return tuple(
            (host, sum(count for target, count in targets.items() if runs_on(target, host)))
            for hosts in hosts_of(targets).values()
            for host in hosts
        )
    if name == "version":
        positions = {row.configuration.version: -row.position for row in rows}
        counts = Counter(row.configuration.version for row in rows)
        return tuple(
            (version, counts[version]) for version in sorted(counts, key=positions.__getitem__)
        )
    words = Counter(value_of(name, getattr(row.configuration, name)) for row in rows)
    return tuple(sorted(words.items()))


def _variants(rows: Iterable[Counted]) -> NameCounts:
    counts = Counter(text for row in rows for text in row.configuration.variants)
    return tuple(sorted(counts.items()))


def _is_same(text: str, other: str) -> bool:
    return _variant_name(text) == _variant_name(other)


def _variant_name(text: str) -> str:
    """Return the name of a variant; the text if Spack could not read it."""
    variant = readable_variant(text)
    return text if variant is None else variant.name


def _named(
    counts: Iterable[tuple[int, int]], records: Mapping[int, Release] | Mapping[int, Stack]
) -> NameCounts:
    """Return counts by the names of releases or stacks, in the database's order."""
    totals: Counter[int] = Counter()
    for key, count in counts:
        totals[key] += count
    return tuple((record.name, totals[key]) for key, record in records.items() if key in totals)
