"""How many specs and packages have each value of each facet: the rows of `facet_counts`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from spack_cache_db.build.arrays import Numbers, Pairs, numbers, pairs, summed
from spack_cache_db.build.ids import Numbered

FacetCount = tuple[int | None, str, str, int, int]
"""release id or None, facet, value, specs, packages: a row of `facet_counts` without its id."""


RELEASES_AT_ONCE = 8


class Cells(NamedTuple):
    """Parallel arrays: so many specs of a package have a value in a release (0: in any of them)."""

    release: Numbers
    package: Numbers
    value: Numbers
    specs: Numbers


def facet_counts(numbered: Numbered, in_releases: Pairs) -> list[FacetCount]:
    """Return the numbers of specs and packages by release, facet and value.

    Args:
        in_releases: the listings of each (configuration, release).

    Returns:
        Rows sorted by release, facet and value; before them, those of all releases together.
    """
    of_configurations = [
        (
            ("versions", each.version),
            ("compilers", each.compiler),
            ("oss", each.os),
            ("platforms", each.platform),
            ("targets", each.target),
        )
        for each in numbered.configurations
    ]
    of_stacks = [("stacks", name) for name in numbered.names.stacks]
    values = sorted({*of_stacks, *(value for each in of_configurations for value in each)})
    codes = {value: code for code, value in enumerate(values)}
    specs = np.zeros((len(numbered.names.releases) + 1) * len(values), dtype=np.int64)
    packages = np.zeros_like(specs)
    for cells in chain(
        _stack_cells(numbered, numbers([0, *map(codes.__getitem__, of_stacks)])),
        (
            _configuration_cells(numbered, in_releases, numbers(map(codes.__getitem__, facet)))
            for facet in zip(*of_configurations, strict=True)
        ),
    ):
        key = cells.release * len(values) + cells.value
        specs += summed(key, cells.specs, len(specs))
        packages += np.bincount(pairs(key, cells.package).first, minlength=len(packages))
    return [
        (at // len(values) or None, *values[at % len(values)], int(specs[at]), int(packages[at]))
        for at in np.flatnonzero(packages).tolist()
    ]


def _configuration_cells(numbered: Numbered, in_releases: Pairs, codes: Numbers) -> Cells:
    """Return the cells of one facet; `codes` has its value for each configuration."""
    binaries = numbered.spec_configuration[numbered.is_binary]
    specs = np.bincount(binaries - 1, minlength=len(codes))
    used = np.flatnonzero(specs)
    configuration = np.concatenate([used, in_releases.first - 1])
    return Cells(
        np.concatenate([np.zeros_like(used), in_releases.second]),
        numbered.configuration_package[configuration],
        codes[configuration],
        np.concatenate([specs[used], in_releases.counts]),
    )


def _stack_cells(numbered: Numbered, codes: Numbers) -> Iterator[Cells]:
    """Yield the cells of the stacks; `codes` has the value of each stack, by its id.

    A few releases at a time, for all at once would take as much memory as all that is counted.
    """
    # A spec that no release lists is in no stack.
    spec_package = numbered.configuration_package[numbered.spec_configuration - 1]
    specs = pairs(spec_package, numbered.spec_stacks)
    at, stack = numbered.stacks.of(specs.second)
    yield Cells(np.zeros_like(at), specs.first[at], codes[stack], specs.counts[at])
    listings, packages = numbered.listings, len(numbered.names.packages) + 1
    releases = range(1, len(numbered.names.releases) + 1, RELEASES_AT_ONCE)
    ends = [*np.searchsorted(listings.release, releases).tolist(), len(listings.release)]
    for some in map(slice, ends, ends[1:]):
        package = numbered.configuration_package[listings.configuration[some] - 1]
        found = pairs(listings.release[some] * packages + package, listings.stacks[some])
        at, stack = numbered.stacks.of(found.second)
        release, package = np.divmod(found.first[at], packages)
        yield Cells(release, package, codes[stack], found.counts[at])
