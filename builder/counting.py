"""Numbered catalogue → everything that is counted, in one pass over the listings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter

from .catalogue import Catalogue
from .columns import PageEntry
from .facets import Facet, FacetCounter
from .numbering import Numbered
from .releases import release_date


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
        if date is None:
            return
        if self.first_seen is None or date < self.first_seen:
            self.first_seen = date
        if self.last_seen is None or date > self.last_seen:
            self.last_seen = date


def _counts() -> defaultdict[int, Counts]:
    return defaultdict(Counts)


@dataclass(slots=True)
class Statistics:
    """Counts by id; the `spec_…` lists are in the order of spec ids."""

    spec_releases: list[int] = field(default_factory=list)
    spec_first_seen: list[str | None] = field(default_factory=list)
    spec_last_seen: list[str | None] = field(default_factory=list)
    release_counts: Mapping[int, Counts] = field(default_factory=_counts)
    package_counts: Mapping[int, Counts] = field(default_factory=_counts)
    configuration_counts: Mapping[int, Counts] = field(default_factory=_counts)
    stack_counts: Mapping[int, Counts] = field(default_factory=_counts)
    configuration_releases: list[tuple[int, int, int]] = field(default_factory=list)
    configuration_stacks: list[tuple[int, int, int]] = field(default_factory=list)
    facets: list[Facet] = field(default_factory=list)


def count(catalogue: Catalogue, numbered: Numbered) -> Statistics:
    """Count what a catalogue holds."""
    statistics = Statistics()
    _count_dates(catalogue, numbered, statistics)
    facets = FacetCounter(numbered)
    _count_specs(numbered, statistics, facets)
    _count_releases(catalogue, numbered, statistics, facets)
    statistics.configuration_releases.sort()
    return statistics


def _count_dates(catalogue: Catalogue, numbered: Numbered, statistics: Statistics) -> None:
    """Count the releases of each spec; of its snapshots, the last one that is noted stays."""
    specs = [catalogue.spec[page.start : page.start + page.spec_count] for page in numbered.pages]
    releases = Counter(chain.from_iterable(specs))
    dates = [release_date(page.release) for page in numbered.pages]
    dated = sorted((date, at) for at, date in enumerate(dates) if date)
    last: dict[int, str] = {}
    for date, at in dated:
        last.update(dict.fromkeys(specs[at], date))
    first: dict[int, str] = {}
    for date, at in reversed(dated):
        first.update(dict.fromkeys(specs[at], date))
    statistics.spec_releases += map(releases.__getitem__, numbered.spec_order)
    statistics.spec_first_seen += map(first.get, numbered.spec_order)
    statistics.spec_last_seen += map(last.get, numbered.spec_order)


def _count_releases(
    catalogue: Catalogue, numbered: Numbered, statistics: Statistics, facets: FacetCounter
) -> None:
    dictionaries = numbered.dictionaries
    for name, pages in groupby(numbered.pages, key=attrgetter("release")):
        release, date = dictionaries.releases[name], release_date(name)
        counts = statistics.release_counts[release]
        for page in pages:
            package = dictionaries.packages[page.package]
            configurations = Counter(_ids(numbered.configuration_id, catalogue.configuration, page))
            facets.add(configurations, Counter(_ids(numbered.stack_set_id, catalogue.stacks, page)))
            statistics.package_counts[package].listed(date)
            counts.packages += 1
            counts.specs += page.spec_count
            for configuration, specs in configurations.items():
                statistics.configuration_counts[configuration].listed(date)
                statistics.configuration_releases.append((configuration, release, specs))
        rows = facets.take(release)
        for _, facet, value, *_ in rows:
            if facet == "stacks":
                statistics.stack_counts[dictionaries.stacks[value]].releases += 1
        statistics.facets += rows


def _count_specs(numbered: Numbered, statistics: Statistics, facets: FacetCounter) -> None:
    """Count each spec once, whatever the number of its releases."""
    dictionaries = numbered.dictionaries
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
        facets.add(configurations, stack_sets)
        statistics.package_counts[package].specs = configurations.total()
    for configuration, _, specs in _flat(by_package):
        statistics.configuration_counts[configuration].specs += specs
    for each in numbered.configurations:
        statistics.package_counts[dictionaries.packages[each.package]].configurations += 1
    _count_stacks(numbered, statistics, _flat(by_package))
    statistics.facets += facets.take(None)


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


def _ids(ids: list[int], numbers: Iterable[int], page: PageEntry) -> Iterator[int]:
    """Return the final ids of a page's listings."""
    return map(ids.__getitem__, numbers[page.start : page.start + page.spec_count])  # type: ignore[index]
