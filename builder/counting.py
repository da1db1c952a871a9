"""Numbered catalogue → everything that is counted, in one pass over the listings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .catalogue import Catalogue
from .columns import PageEntry
from .numbering import Numbered
from .releases import release_date

Facet = tuple[int | None, str, str, int, int]
"""release id or None, facet, value, specs, packages: a row of `facet_counts` without its id."""


@dataclass(slots=True)
class Counts:
    """What is known of one release, package, configuration or stack. Dates are `YYYY-MM-DD`."""

    specs: int = 0
    packages: int = 0
    configurations: int = 0
    releases: int = 0
    first_seen: str | None = None
    last_seen: str | None = None

    def listed(self, date: str | None) -> None:
        """Note one more release, and its date if it is a snapshot."""
        self.releases += 1
        if date is not None:
            self.first_seen = min(self.first_seen or date, date)
            self.last_seen = max(self.last_seen or date, date)


def _counts() -> defaultdict[int, Counts]:
    return defaultdict(Counts)


@dataclass(slots=True)
class Statistics:
    """Counts by id; the `spec_…` lists are in the order of spec ids."""

    spec_releases: list[int]
    spec_first_seen: list[str | None]
    spec_last_seen: list[str | None]
    release_counts: Mapping[int, Counts] = field(default_factory=_counts)
    package_counts: Mapping[int, Counts] = field(default_factory=_counts)
    configuration_counts: Mapping[int, Counts] = field(default_factory=_counts)
    stack_counts: Mapping[int, Counts] = field(default_factory=_counts)
    configuration_releases: list[tuple[int, int, int]] = field(default_factory=list)
    configuration_stacks: list[tuple[int, int, int]] = field(default_factory=list)
    facets: list[Facet] = field(default_factory=list)


def count(catalogue: Catalogue, numbered: Numbered) -> Statistics:
    """Count what a catalogue holds."""
    specs = len(numbered.hashes)
    statistics = Statistics([0] * specs, [None] * specs, [None] * specs)
    _count_dates(catalogue, numbered, statistics)
    _count_releases(catalogue, numbered, statistics)
    _count_specs(numbered, statistics)
    statistics.configuration_releases.sort()
    return statistics


def _count_dates(catalogue: Catalogue, numbered: Numbered, statistics: Statistics) -> None:
    """Count the releases of each spec; snapshots are walked from old to new."""
    releases, first = statistics.spec_releases, statistics.spec_first_seen
    last = statistics.spec_last_seen
    pages = ((release_date(page.release) or "", page) for page in numbered.pages)
    for date, page in sorted(pages, key=lambda pair: pair[0]):
        for spec in _ids(numbered.spec_id, catalogue.spec, page):
            releases[spec - 1] += 1
            if date:
                last[spec - 1] = date
                if first[spec - 1] is None:
                    first[spec - 1] = date


def _count_releases(catalogue: Catalogue, numbered: Numbered, statistics: Statistics) -> None:
    dictionaries = numbered.dictionaries
    facets = _FacetCounter(numbered)
    release, date = 0, None
    for page in numbered.pages:
        if dictionaries.releases[page.release] != release:
            _count_stack_releases(facets, numbered, statistics)
            statistics.facets += facets.rows(release)
            release, date = dictionaries.releases[page.release], release_date(page.release)
        package = dictionaries.packages[page.package]
        configurations = Counter(_ids(numbered.configuration_id, catalogue.configuration, page))
        facets.add(
            package, configurations, Counter(_ids(numbered.stack_set_id, catalogue.stacks, page))
        )
        statistics.package_counts[package].listed(date)
        statistics.release_counts[release].packages += 1
        statistics.release_counts[release].specs += page.spec_count
        for configuration, specs in configurations.items():
            statistics.configuration_counts[configuration].listed(date)
            statistics.configuration_releases.append((configuration, release, specs))
    _count_stack_releases(facets, numbered, statistics)
    statistics.facets += facets.rows(release)


def _count_stack_releases(
    facets: _FacetCounter, numbered: Numbered, statistics: Statistics
) -> None:
    for stack in facets.values("stacks"):
        statistics.stack_counts[numbered.dictionaries.stacks[stack]].releases += 1


def _count_specs(numbered: Numbered, statistics: Statistics) -> None:
    """Count each spec once, whatever the number of its releases."""
    dictionaries = numbered.dictionaries
    facets = _FacetCounter(numbered)
    pairs = Counter(zip(numbered.spec_configuration, numbered.spec_stacks, strict=True))
    by_package: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for (configuration, stack_set), specs in pairs.items():
        package = dictionaries.packages[numbered.configurations[configuration - 1].package]
        by_package[package].append((configuration, stack_set, specs))
    for package, members in sorted(by_package.items()):
        configurations, stack_sets = Counter[int](), Counter[int]()
        for configuration, stack_set, specs in members:
            configurations[configuration] += specs
            stack_sets[stack_set] += specs
        facets.add(package, configurations, stack_sets)
        statistics.package_counts[package].specs = configurations.total()
    for configuration, _, specs in _flat(by_package):
        statistics.configuration_counts[configuration].specs += specs
    for each in numbered.configurations:
        statistics.package_counts[dictionaries.packages[each.package]].configurations += 1
    _count_stacks(numbered, statistics, _flat(by_package))
    statistics.facets[:0] = facets.rows(None)


def _count_stacks(
    numbered: Numbered, statistics: Statistics, members: Iterable[tuple[int, int, int]]
) -> None:
    stacks = numbered.dictionaries.stacks
    names = {at: names for names, at in numbered.dictionaries.stack_sets.items()}
    pairs: Counter[tuple[int, int]] = Counter()
    for configuration, stack_set, specs in members:
        for stack in names[stack_set]:
            pairs[configuration, stacks[stack]] += specs
            statistics.stack_counts[stacks[stack]].specs += specs
    statistics.configuration_stacks += sorted((*pair, specs) for pair, specs in pairs.items())


def _flat(members: dict[int, list[tuple[int, int, int]]]) -> Iterator[tuple[int, int, int]]:
    for each in members.values():
        yield from each


class _FacetCounter:
    """Counts specs and packages by facet value, package by package."""

    def __init__(self, numbered: Numbered) -> None:
        self._configurations = numbered.configurations
        self._stack_sets = {at: names for names, at in numbered.dictionaries.stack_sets.items()}
        self._specs: Counter[tuple[str, str]] = Counter()
        self._packages: Counter[tuple[str, str]] = Counter()

    def add(self, package: int, configurations: Counter[int], stack_sets: Counter[int]) -> None:
        counts: Counter[tuple[str, str]] = Counter()
        for at, specs in configurations.items():
            each = self._configurations[at - 1]
            counts["versions", each.version] += specs
            counts["compilers", each.compiler] += specs
            counts["oss", each.os] += specs
            counts["platforms", each.platform] += specs
            counts["targets", each.target] += specs
        for at, specs in stack_sets.items():
            for stack in self._stack_sets[at]:
                counts["stacks", stack] += specs
        self._specs.update(counts)
        self._packages.update(counts.keys())

    def values(self, facet: str) -> list[str]:
        return sorted(value for name, value in self._specs if name == facet)

    def rows(self, release: int | None) -> list[Facet]:
        """Return the counts, sorted, and start anew."""
        rows = [
            (release, facet, value, specs, self._packages[facet, value])
            for (facet, value), specs in sorted(self._specs.items())
        ]
        self._specs.clear()
        self._packages.clear()
        return rows


def _ids(ids: list[int], numbers: Iterable[int], page: PageEntry) -> Iterator[int]:
    """Return the final ids of a page's listings."""
    return map(ids.__getitem__, numbers[page.start : page.start + page.spec_count])  # type: ignore[index]
