"""The values of a package's filters, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from spack_cache_db.query.conditions import COLUMNS, Conditions
from spack_cache_db.query.configurations import Counted, count_by_release, count_by_stack
from spack_cache_db.query.database import Lookups, Release, Stack
from spack_cache_db.site.pages.filters import (
    LABELS,
    PLACES,
    Filters,
    NameCounts,
    hosts_of,
    value_of,
)
from spack_cache_db.spack.normal_forms import parse_variant
from spack_cache_db.spack.targets import runs_on


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter and the values it can take, each with the count of configurations it leaves.

    Attributes:
        label: what to call it; of a variant that is chosen, the variant's own name.
        chosen: its value now, which is one of the values; None where it asks nothing.
        values: what it can be set to, and how many configurations that leaves.
    """

    name: str
    label: str
    chosen: str | None
    values: NameCounts


@dataclass(frozen=True, slots=True)
class Matches:
    """Configurations by what they lack of what is asked of them, release and stack left aside.

    Attributes:
        fitting: those that lack nothing.
        lacking: those that lack one thing alone, by that filter's name and value.
    """

    fitting: list[Counted]
    lacking: dict[tuple[str, str], list[Counted]]

    def counted(self, counts: Callable[[list[Counted]], list[Counted]]) -> Matches:
        """Return those of which a spec counts, each with how many do."""
        lacking = {key: counts(each) for key, each in self.lacking.items()}
        return Matches(counts(self.fitting), lacking)


def matches_of(every: Iterable[Counted], conditions: Conditions) -> Matches:
    """Return which configurations satisfy conditions, and which would but for one of them."""
    tests = [(each, COLUMNS[each.kind]) for each in conditions]
    found = Matches([], {(each.kind, each.text): [] for each in conditions})
    for each in every:
        words = each.configuration
        lacks = [one for one, column in tests if not one.holds(getattr(words, column))]
        if not lacks:
            found.fitting.append(each)
        elif len(lacks) == 1:
            found.lacking[lacks[0].kind, lacks[0].text].append(each)
    return found


def choices_of(
    lookups: Lookups,
    filters: Filters,
    anywhere: Matches,
    here: Matches,
    releases: Mapping[int, Iterable[int]],
) -> tuple[Choice, ...]:
    """Return what each filter can be set to, the others staying as they are.

    Args:
        anywhere: the configurations by what they lack.
        here: the same, in the release and the stack that are chosen.
        releases: the ids of the releases that show each configuration, by its id.
    """
    shown_in = {each.id: releases[each.id] for each in anywhere.fitting}
    choices = []
    for name in PLACES:
        values = _places(lookups, filters, name, shown_in)
        choices.append(Choice(name, LABELS[name], getattr(filters, name), values))
    for name, values_of in _PARTS.items():
        chosen = getattr(filters, name)
        among = here.fitting + here.lacking.get((name, chosen or ""), [])
        choices.append(Choice(name, LABELS[name], chosen, values_of(among)))
    for text in filters.variants:
        among = here.fitting + here.lacking["variant", text]
        choices.append(Choice("variant", _variant_name(text), text, _alternatives(among, text)))
    choices.append(Choice("variant", LABELS["variant"], None, _varying(here.fitting)))
    # Where nothing is left, the only value of a place is a way out.
    return tuple(
        _with_chosen(each, len(here.fitting))
        for each in choices
        if each.chosen is not None
        or len(each.values) > (each.name != "variant" and bool(here.fitting))
    )


def _with_chosen(choice: Choice, count: int) -> Choice:
    """Return a choice whose values have the one that is chosen, and how many it leaves."""
    if choice.chosen is None or choice.chosen in dict(choice.values):
        return choice
    return replace(choice, values=((choice.chosen, count), *choice.values))


def _places(
    lookups: Lookups, filters: Filters, name: str, shown_in: Mapping[int, Iterable[int]]
) -> NameCounts:
    """Return the releases of these configurations, or their stacks, by what of the two is named."""
    (other,) = (each for each in PLACES if each != name)
    chosen = getattr(filters, other)
    known = {"release": lookups.release, "stack": lookups.stack}[other](chosen)
    if chosen and known is None:
        return ()
    counts: Iterable[tuple[int, int]]
    if known is not None:
        count = count_by_release if name == "release" else count_by_stack
        counts = count(lookups.conn, shown_in, known.id)
    elif name == "release":
        counts = Counter(chain.from_iterable(shown_in.values())).items()
    else:
        counts = count_by_stack(lookups.conn, shown_in)
    return _named(counts, lookups.releases if name == "release" else lookups.stacks)


def _versions(among: Sequence[Counted]) -> NameCounts:
    positions = {each.configuration.version: -each.position for each in among}
    return _counts((each.configuration.version for each in among), positions.__getitem__)


def _part(name: str) -> Callable[[Sequence[Counted]], NameCounts]:
    return lambda among: _counts(
        value_of(name, getattr(each.configuration, name)) for each in among
    )


def _hosts(among: Sequence[Counted]) -> NameCounts:
    """Return the machines on which something runs, by family."""
    targets = Counter(each.configuration.target for each in among)
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


def _varying(among: Sequence[Counted]) -> NameCounts:
    """Return the variants that some have and others have not."""
    variants = Counter(text for each in among for text in each.configuration.variants)
    varying = {text: count for text, count in variants.items() if count < len(among)}
    return tuple(sorted(varying.items()))


def _alternatives(among: Sequence[Counted], chosen: str) -> NameCounts:
    """Return the values of one variant."""
    name = _variant_name(chosen)
    texts = (text for each in among for text in each.configuration.variants)
    return _counts(text for text in texts if _variant_name(text) == name)


@lru_cache(maxsize=4096)
def _variant_name(text: str) -> str:
    try:
        return parse_variant(text).name
    except ValueError:
        # A page may print what Spack would not read as a variant.
        return text


def _named(
    counts: Iterable[tuple[int, int]], known: Mapping[int, Release] | Mapping[int, Stack]
) -> NameCounts:
    found: Counter[int] = Counter()
    for key, count in counts:
        found[key] += count
    return tuple((each.name, found[key]) for key, each in known.items() if key in found)


def _counts(values: Iterable[str], order: Callable[[str], int | str] = str) -> NameCounts:
    counts = Counter(values)
    return tuple((value, counts[value]) for value in sorted(counts, key=order))
