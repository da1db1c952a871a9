"""Numbered input → everything that is counted, by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spack_cache_db.build.arrays import Numbers, Pairs, numbers, pairs, summed
from spack_cache_db.build.facet_counts import FacetCount, facet_counts
from spack_cache_db.build.ids import Numbered
from spack_cache_db.releases import release_date


class Seen(NamedTuple):
    """How many releases each thing is in, and the dates of its first and its last snapshot."""

    releases: list[int]
    first: list[str | None]
    last: list[str | None]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts: a list has that of the thing with id `i` at `i - 1`. Dates are `YYYY-MM-DD`.

    `listed_configurations` has the ids of those that some listing has.
    """

    release_packages: list[int]
    release_specs: list[int]
    package_specs: list[int]
    package_configurations: list[int]
    package_seen: Seen
    configuration_specs: list[int]
    configuration_seen: Seen
    spec_seen: Seen
    stack_releases: list[int]
    stack_specs: list[int]
    listed_configurations: list[int]
    configuration_releases: Pairs
    configuration_stacks: Pairs
    facets: list[FacetCount]


def count(numbered: Numbered) -> Statistics:
    """Return all counts of binaries: specs that no release lists are counted nowhere."""
    names, listings = numbered.names, numbered.listings
    packages, configurations = len(names.packages), len(numbered.configurations)
    spec_configuration = numbered.spec_configuration[numbered.is_binary]
    in_releases = pairs(listings.configuration, listings.release)
    in_stacks = _in_stacks(numbered)
    facets = facet_counts(numbered, in_releases)
    releases_of_stacks = Counter(
        value for release, facet, value, *_ in facets if release and facet == "stacks"
    )
    dates = _Dates(names.releases)
    package_releases = _package_releases(numbered, in_releases)
    listed = np.union1d(in_releases.first, spec_configuration)
    return Statistics(
        release_packages=_times(package_releases.second, len(names.releases)),
        release_specs=_times(listings.release, len(names.releases)),
        package_specs=_times(numbered.configuration_package[spec_configuration - 1], packages),
        package_configurations=_times(numbered.configuration_package[listed - 1], packages),
        package_seen=dates.seen(package_releases.first, package_releases.second, packages),
        configuration_specs=_times(spec_configuration, configurations),
        configuration_seen=dates.seen(in_releases.first, in_releases.second, configurations),
        spec_seen=dates.seen(listings.spec, listings.release, len(numbered.hashes)),
        stack_releases=[releases_of_stacks[name] for name in names.stacks],
        stack_specs=summed(in_stacks.second, in_stacks.counts, len(names.stacks) + 1)[1:].tolist(),
        listed_configurations=listed.tolist(),
        configuration_releases=in_releases,
        configuration_stacks=in_stacks,
        facets=facets,
    )


def _package_releases(numbered: Numbered, in_releases: Pairs) -> Pairs:
    """Return each (package, release) once: those that are listed, and those that have a page.

    A page says that its release has the package, also where it lists nothing.
    """
    listed = numbered.configuration_package[in_releases.first - 1]
    return pairs(
        np.concatenate([listed, numbered.page_package]),
        np.concatenate([in_releases.second, numbered.page_release]),
    )


def _in_stacks(numbered: Numbered) -> Pairs:
    """Return the number of specs of each (configuration, stack)."""
    specs = pairs(numbered.spec_configuration, numbered.spec_stacks)
    at, stack = numbered.stacks.of(specs.second)
    return pairs(specs.first[at], stack, specs.counts[at])


def _times(ids: Numbers, size: int) -> list[int]:
    """Return how often each id from 1 to `size` is there."""
    found: list[int] = np.bincount(ids, minlength=size + 1)[1:].tolist()
    return found


class _Dates:
    """The dates of releases, as numbers that sort as they do."""

    def __init__(self, releases: Iterable[str]) -> None:
        dates = [release_date(release) for release in releases]
        # None stands last: it is at the end as well as at -1, where it counts as early.
        self._dates = [*sorted({date for date in dates if date}), None]
        found = numbers([-1, *(self._dates.index(date) if date else -1 for date in dates)])
        self._number = found.astype(np.int32)

    def seen(self, ids: Numbers, releases: Numbers, size: int) -> Seen:
        """Return where each id from 1 to `size` is, given distinct (id, release)."""
        number = self._number[releases]
        dated = number >= 0
        none = len(self._dates) - 1
        first, last = np.full(size + 1, none, np.int32), np.full(size + 1, -1, np.int32)
        np.minimum.at(first, ids[dated], number[dated])
        np.maximum.at(last, ids[dated], number[dated])
        return Seen(_times(ids, size), self._names(first), self._names(last))

    def _names(self, numbers: Numbers) -> list[str | None]:
        return [*map(self._dates.__getitem__, numbers[1:].tolist())]
