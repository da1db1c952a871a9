"""The values that a package's filters offer, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from spack_cache_db.query.conditions import COLUMNS, Conditions
from spack_cache_db.query.configurations import Counted, count_by_release, count_by_stack
from spack_cache_db.query.database import Lookups, Release, Stack
from spack_cache_db.site.pages.filters import LABELS, Filters, NameCounts, hosts_of, value_of
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.targets import runs_on


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter with the values that it offers.

    Attributes:
        label: its label; for a chosen variant, the variant's name.
        chosen: its current value, which is also in `values`; None if it is not set.
        values: the values, and the number of configurations that remain with each.
    """

    name: str
    label: str
    chosen: str | None
    values: NameCounts


@dataclass(frozen=True, slots=True)
class Matches:
    """Configurations grouped by the filters that they fail; release and stack are ignored.

    Attributes:
        fitting: those that match all filters.
        lacking: those that fail one filter, by its name and value.
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
        Choice(
            "release", LABELS["release"], filters.release, _releases(lookups, filters, shown_in)
        ),
        Choice("stack", LABELS["stack"], filters.stack, _stacks(lookups, filters, shown_in)),
    ]
    for name, values_of in _PARTS.items():
        chosen = getattr(filters, name)
        rows = fitting + in_place.lacking.get((name, chosen or ""), [])
        choices.append(Choice(name, LABELS[name], chosen, values_of(rows)))
    for text in filters.variants:
        rows = fitting + in_place.lacking["variant", text]
        choices.append(Choice("variant", _variant_name(text), text, _alternatives(rows, text)))
    choices.append(Choice("variant", LABELS["variant"], None, _varying(fitting)))
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
    return replace(choice, values=((choice.chosen, count), *choice.values))


def _releases(
    lookups: Lookups, filters: Filters, shown_in: Mapping[int, Iterable[int]]
) -> NameCounts:
    """Return the releases that list these configurations in the chosen stack."""
    counts: Iterable[tuple[int, int]]
    if stack := lookups.stack(filters.stack):
        counts = count_by_release(lookups.conn, shown_in, stack.id)
    elif filters.stack:
        return ()
    else:
        counts = Counter(chain.from_iterable(shown_in.values())).items()
    return _named(counts, lookups.releases)


def _stacks(
    lookups: Lookups, filters: Filters, shown_in: Mapping[int, Iterable[int]]
) -> NameCounts:
    """Return the stacks that list these configurations in the chosen release."""
    release = lookups.release(filters.release)
    if filters.release and release is None:
        return ()
    counts = count_by_stack(lookups.conn, shown_in, release.id if release else None)
    return _named(counts, lookups.stacks)


def _versions(rows: Sequence[Counted]) -> NameCounts:
    positions = {row.configuration.version: -row.position for row in rows}
    return _counts((row.configuration.version for row in rows), positions.__getitem__)


def _part(name: str) -> Callable[[Sequence[Counted]], NameCounts]:
    return lambda rows: _counts(value_of(name, getattr(row.configuration, name)) for row in rows)


def _hosts(rows: Sequence[Counted]) -> NameCounts:
    """Return the hosts on which at least one configuration runs, by maker."""
    targets = Counter(row.configuration.target for row in rows)
    return tuple(
        (host, sum(count for target, count in targets.items() if runs_on(target, host)))
        for hosts in hosts_of(targets).values()
        for host in hosts
    )


_PARTS: dict[str, Callable[[Sequence[Counted]], NameCounts]] = {
    "host": _hosts,
    "version": _versions,
    **{name: _part(name) for name in ("compiler", "os", "platform", "target")},
}


def _varying(rows: Sequence[Counted]) -> NameCounts:
    """Return the variants that not all configurations have."""
    variants = _counts(text for row in rows for text in row.configuration.variants)
    return tuple((text, count) for text, count in variants if count < len(rows))


def _alternatives(rows: Sequence[Counted], chosen: str) -> NameCounts:
    """Return all values of one variant."""
    name = _variant_name(chosen)
    texts = (text for row in rows for text in row.configuration.variants)
    return _counts(text for text in texts if _variant_name(text) == name)


@lru_cache(maxsize=4096)
def _variant_name(text: str) -> str:
    try:
        return parse_variant(text).name
    except ValueError:
        # Pages may contain variants that Spack could not read.
        return text


def _named(
    counts: Iterable[tuple[int, int]], places: Mapping[int, Release] | Mapping[int, Stack]
) -> NameCounts:
    """Return counts by the names of releases or stacks, in the database's order."""
    totals: Counter[int] = Counter()
    for key, count in counts:
        totals[key] += count
    return tuple((place.name, totals[key]) for key, place in places.items() if key in totals)


def _counts(values: Iterable[str], order: Callable[[str], int | str] = str) -> NameCounts:
    counts = Counter(values)
    return tuple((value, counts[value]) for value in sorted(counts, key=order))
