"""Numbered columns → everything that is counted.

Only binaries are counted: a spec that no release lists counts nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.build.frames import (
    Frame,
    Numbers,
    Pairs,
    numbers,
    packed,
    pairs,
    summed,
    unpacked,
)
from spack_cache_db.build.ids import Numbered
from spack_cache_db.releases import release_date, releases_before
from spack_cache_db.schema import CONFIGURATION, FACETS

FacetCount = tuple[int | None, str, str, int, int]
"""A row of `facet_values` without its id: release or None, facet, value, specs, packages."""


class Counts(NamedTuple):
    """All counts.

    Attributes:
        columns: counted columns by table and name; the value of the row with id `i` is at `i - 1`.
        tables: the tables that have nothing but counts, by name.
        facets: the rows of `facet_values`.
    """

    columns: dict[str, dict[str, list[Any]]]
    tables: dict[str, Frame]
    facets: list[FacetCount]


def count(numbered: Numbered) -> Counts:
    """Return all counts."""
    ids, listings, package_of = numbered.ids, numbered.listings, numbered.configurations["package"]
    releases, packages, stacks = (len(ids[name]) for name in ("releases", "packages", "stacks"))
    configurations, specs = len(ids["configurations"]), len(numbered.hashes)
    binaries = numbered.specs["configuration"][numbered.specs["is_listed"] > 0]
    in_releases = pairs(listings["configuration"], listings["release"])
    in_stacks = _in_stacks(numbered)
    package_releases = _package_releases(numbered, in_releases)
    facets = _facet_counts(numbered, in_releases, in_stacks)
    stack_releases = Counter(
        value for release, facet, value, *_ in facets if release and facet == "stacks"
    )
    dates = _Dates(ids["releases"])
    before = releases_before(ids["releases"])
    previous = numbers(
        [0, *(ids["releases"].get(before.get(name, ""), 0) for name in ids["releases"])]
    )
    columns: dict[str, dict[str, list[Any]]] = {
        "releases": {
            "previous": [each or None for each in previous[1:].tolist()],
            "package_count": _times(package_releases.second, releases),
            "spec_count": _times(listings["release"], releases),
        },
        "packages": {
            "spec_count": _times(package_of[binaries], packages),
            "configuration_count": _times(package_of[np.unique(binaries)], packages),
            **dates.seen(package_releases.first, package_releases.second, packages),
        },
        "stacks": {
            "release_count": [stack_releases[name] for name in ids["stacks"]],
            "spec_count": summed(in_stacks.second, in_stacks.counts, stacks + 1)[1:].tolist(),
        },
        "configurations": {
            "spec_count": _times(binaries, configurations),
            **dates.seen(in_releases.first, in_releases.second, configurations),
        },
        "specs": {
            "is_current": dates.undated(listings["spec"], listings["release"], specs),
            **dates.seen(listings["spec"], listings["release"], specs),
        },
    }
    tables = {
        "configuration_releases": Frame(
            configuration=in_releases.first,
            release=in_releases.second,
            spec_count=in_releases.counts,
            added=_added(listings, in_releases, previous),
        ),
        "configuration_stacks": Frame(
            configuration=in_stacks.first, stack=in_stacks.second, spec_count=in_stacks.counts
        ),
        "release_packages": _release_packages(numbered, in_releases),
    }
    return Counts(columns, tables, facets)


def _added(listings: Frame, in_releases: Pairs, previous: Numbers) -> Numbers:
    """Return how many specs of each (configuration, release) the release before does not list.

    Args:
        listings: in the order of (release, spec).
        in_releases: all pairs of a configuration and a release.
        previous: the release before each; 0 where there is none.
    """
    before = previous[listings["release"]]
    keys = packed(listings["release"], listings["spec"])
    is_new = (before > 0) & ~np.isin(packed(before, listings["spec"]), keys)
    new = packed(listings["configuration"], listings["release"])[is_new]
    every = packed(in_releases.first, in_releases.second)
    return np.bincount(np.searchsorted(every, new), minlength=len(every))


def _release_packages(numbered: Numbered, in_releases: Pairs) -> Frame:
    """Return how much each release has of each package, and the newest version there.

    Args:
        in_releases: the specs of each (configuration, release).
    """
    found = packed(in_releases.second, numbered.configurations["package"][in_releases.first])
    keys, of, configurations = np.unique(found, return_inverse=True, return_counts=True)
    # Of the versions of a package, Spack prefers the one with the largest id.
    newest = np.zeros(len(keys), np.int64)
    np.maximum.at(newest, of, numbered.configurations["version"][in_releases.first])
    release, package = unpacked(keys)
    return Frame(
        release=release,
        package=package,
        configuration_count=configurations,
        spec_count=summed(of, in_releases.counts, len(keys)),
        newest_version=newest,
    )


def _package_releases(numbered: Numbered, in_releases: Pairs) -> Pairs:
    """Return each (package, release) once, also if the page of the package lists nothing."""
    listed = numbered.configurations["package"][in_releases.first]
    return pairs(
        np.concatenate([listed, numbered.pages["package"]]),
        np.concatenate([in_releases.second, numbered.pages["release"]]),
    )


def _in_stacks(numbered: Numbered) -> Pairs:
    """Return each (configuration, stack), and how many of its specs are in it in any release."""
    specs = numbered.specs
    known = pairs(specs["configuration"], specs["stacks"])
    at, stack = numbered.stack_members.of(known.second)
    return pairs(known.first[at], stack, known.counts[at])


def _times(ids: Numbers, size: int) -> list[int]:
    """Return how often each id from 1 to `size` occurs."""
    found: list[int] = np.bincount(ids, minlength=size + 1)[1:].tolist()
    return found


class _Dates:
    """The dates of releases, as numbers in the same order."""

    def __init__(self, releases: Iterable[str]) -> None:
        dates = [release_date(release) for release in releases]
        self._dates = [*sorted({date for date in dates if date}), None]
        # None is the last date, which is also at -1: a release without a date changes neither end.
        self._number = numbers([-1, *(self._dates.index(date) if date else -1 for date in dates)])

    def undated(self, ids: Numbers, releases: Numbers, size: int) -> list[bool]:
        """Return whether each id from 1 to `size` is in a release without a date.

        Args:
            ids: of each distinct (id, release).
            releases: the releases of these pairs.
        """
        found = np.zeros(size + 1, bool)
        found[ids[self._number[releases] < 0]] = True
        are_undated: list[bool] = found[1:].tolist()
        return are_undated

    def seen(self, ids: Numbers, releases: Numbers, size: int) -> dict[str, list[Any]]:
        """Return in how many releases each id from 1 to `size` is, and the first and last date.

        Args:
            ids: of each distinct (id, release).
            releases: the releases of these pairs.
        """
        number = self._number[releases]
        dated = number >= 0
        first, last = np.full(size + 1, len(self._dates) - 1), np.full(size + 1, -1)
        np.minimum.at(first, ids[dated], number[dated])
        np.maximum.at(last, ids[dated], number[dated])
        return {
            "release_count": _times(ids, size),
            "first_seen": [self._dates[number] for number in first[1:].tolist()],
            "last_seen": [self._dates[number] for number in last[1:].tolist()],
        }


class _Cells(NamedTuple):
    """Parallel arrays: specs of a package with a value in a release (0: in any of them)."""

    release: Numbers
    package: Numbers
    value: Numbers
    specs: Numbers


def _facet_counts(numbered: Numbered, in_releases: Pairs, in_stacks: Pairs) -> list[FacetCount]:
    """Return the numbers of specs and packages by release, facet and value.

    Args:
        in_releases: the specs of each (configuration, release).
        in_stacks: the specs of each (configuration, stack).

    Returns:
        Rows sorted by release, facet and value; before them, those of all releases together.
    """
    ids = numbered.ids
    named = {facet: ids[CONFIGURATION[column]] for facet, column in FACETS.items()}
    named["stacks"] = ids["stacks"]
    values = sorted((facet, name) for facet, names in named.items() for name in names)
    codes = {value: code for code, value in enumerate(values)}
    code_of = {
        facet: numbers([0, *(codes[facet, name] for name in names)])
        for facet, names in named.items()
    }
    specs = np.zeros((len(ids["releases"]) + 1) * len(values), dtype=np.int64)
    packages = np.zeros_like(specs)
    for cells in chain(
        _stack_cells(numbered, in_stacks, code_of["stacks"]),
        (
            _configuration_cells(
                numbered, in_releases, code_of[facet][numbered.configurations[column]]
            )
            for facet, column in FACETS.items()
        ),
    ):
        key = cells.release * len(values) + cells.value
        specs += summed(key, cells.specs, len(specs))
        packages += np.bincount(pairs(key, cells.package).first, minlength=len(packages))
    return [
        (at // len(values) or None, *values[at % len(values)], int(specs[at]), int(packages[at]))
        for at in np.flatnonzero(packages).tolist()
    ]


def _configuration_cells(numbered: Numbered, in_releases: Pairs, codes: Numbers) -> _Cells:
    """Return the cells of one facet; `codes` has its value for each configuration, by its id."""
    binaries = numbered.specs["configuration"][numbered.specs["is_listed"] > 0]
    specs = np.bincount(binaries, minlength=len(codes))
    used = np.flatnonzero(specs)
    configuration = np.concatenate([used, in_releases.first])
    return _Cells(
        np.concatenate([np.zeros_like(used), in_releases.second]),
        numbered.configurations["package"][configuration],
        codes[configuration],
        np.concatenate([specs[used], in_releases.counts]),
    )


def _stack_cells(numbered: Numbered, in_stacks: Pairs, codes: Numbers) -> Iterator[_Cells]:
    """Yield the cells of the stacks; `codes` has the value of each stack, by its id."""
    package_of, listings = numbered.configurations["package"], numbered.listings
    of, stack, specs = in_stacks
    yield _Cells(np.zeros_like(of), package_of[of], codes[stack], specs)
    packages = len(numbered.ids["packages"]) + 1
    place = listings["release"] * packages + package_of[listings["configuration"]]
    found = pairs(place, listings["stacks"])
    at, stack = numbered.stack_members.of(found.second)
    release, package = np.divmod(found.first[at], packages)
    yield _Cells(release, package, codes[stack], found.counts[at])
