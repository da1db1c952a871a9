"""Numbered columns → everything that is counted.

Only binaries are counted: a spec that no release lists is counted nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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

RELEASES_AT_ONCE = 8

FacetCount = tuple[int | None, str, str, int, int]
"""release id or None, facet, value, specs, packages: a row of `facet_counts` without its id."""


class Counts(NamedTuple):
    """What is counted.

    `columns` has counted columns by table and name, where the value of the thing with id `i` is at
    `i - 1`. The pairs are (configuration, release) and (configuration, stack), each with the number
    of specs that count there (see `query/catalogue.py`). `changes` and `release_packages` have the
    columns of `configuration_changes` and of the table of that name.
    """

    columns: dict[str, dict[str, list[Any]]]
    configuration_releases: Pairs
    configuration_stacks: Pairs
    changes: Frame
    release_packages: Frame
    facets: list[FacetCount]


def count(numbered: Numbered) -> Counts:
    """Return all counts."""
    ids, listings, package_of = numbered.ids, numbered.listings, numbered.configurations["package"]
    releases, packages, stacks = (len(ids[name]) for name in ("releases", "packages", "stacks"))
    binaries = numbered.specs["configuration"][numbered.specs["is_binary"] > 0]
    in_releases = pairs(listings["configuration"], listings["release"])
    in_stacks = _in_stacks(numbered)
    package_releases = _package_releases(numbered, in_releases)
    facets = _facet_counts(numbered, in_releases, in_stacks)
    stack_releases = Counter(
        value for release, facet, value, *_ in facets if release and facet == "stacks"
    )
    dates = _Dates(ids["releases"])
    previous = _previous(ids["releases"])
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
            "spec_count": _times(binaries, len(ids["configurations"])),
            **dates.seen(in_releases.first, in_releases.second, len(ids["configurations"])),
        },
        "specs": dates.seen(listings["spec"], listings["release"], len(numbered.hashes)),
    }
    changes = _changes(listings, previous)
    packages_of = _release_packages(numbered, in_releases)
    return Counts(columns, in_releases, in_stacks, changes, packages_of, facets)


def _previous(releases: Mapping[str, int]) -> Numbers:
    """Return the release before each, by their ids; 0 for none."""
    before = releases_before(releases)
    return numbers([0, *(releases.get(before.get(name, ""), 0) for name in releases)])


def _changes(listings: Frame, previous: Numbers) -> Frame:
    """Return how many specs of each (release, configuration) were added and removed.

    Args:
        listings: in the order of (release, spec).
        previous: the release before each.
    """
    releases = np.arange(len(previous))
    following = np.zeros_like(previous)
    following[previous] = releases
    following[0] = 0
    keys = packed(listings["release"], listings["spec"])
    parts = []
    # What the release before lacks was added; what the one after lacks was removed from that one.
    for other, changed in ((previous, releases), (following, following)):
        beside = other[listings["release"]]
        wanted = packed(beside, listings["spec"])
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_kept = keys[at] == wanted
        chosen = listings.where((beside > 0) & ~is_kept)
        parts.append(packed(changed[chosen["release"]], chosen["configuration"]))
    found, place = np.unique(np.concatenate(parts), return_inverse=True)
    is_added = (np.arange(len(place)) < len(parts[0])).astype(np.int64)
    release, configuration = unpacked(found)
    return Frame(
        release=release,
        configuration=configuration,
        added=summed(place, is_added, len(found)),
        removed=summed(place, 1 - is_added, len(found)),
    )


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
    """Return each (package, release) once: those that are listed, and those that have a page.

    A page says that its release has the package, also where it lists nothing.
    """
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

    def seen(self, ids: Numbers, releases: Numbers, size: int) -> dict[str, list[Any]]:
        """Return in how many releases each id from 1 to `size` is, and the first and last date.

        Args:
            ids: of each distinct (id, release).
            releases: the same.
        """
        number = self._number[releases]
        dated = number >= 0
        none = len(self._dates) - 1
        first, last = np.full(size + 1, none, np.int32), np.full(size + 1, -1, np.int32)
        np.minimum.at(first, ids[dated], number[dated])
        np.maximum.at(last, ids[dated], number[dated])
        return {
            "release_count": _times(ids, size),
            "first_seen": self._names(first),
            "last_seen": self._names(last),
        }

    def _names(self, numbers: Numbers) -> list[str | None]:
        return [*map(self._dates.__getitem__, numbers[1:].tolist())]


class _Cells(NamedTuple):
    """Parallel arrays: so many specs of a package have a value in a release (0: in any of them)."""

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
    named = {
        facet: [
            (facet, each[-1] if column == "version" else each)
            for each in numbered.ids[CONFIGURATION[column]]
        ]
        for facet, column in FACETS.items()
    }
    named["stacks"] = [("stacks", name) for name in numbered.ids["stacks"]]
    values = sorted({*chain.from_iterable(named.values())})
    codes = {value: code for code, value in enumerate(values)}
    by_id = {facet: numbers([0, *map(codes.__getitem__, each)]) for facet, each in named.items()}
    specs = np.zeros((len(numbered.ids["releases"]) + 1) * len(values), dtype=np.int64)
    packages = np.zeros_like(specs)
    for cells in chain(
        _stack_cells(numbered, in_stacks, by_id["stacks"]),
        (
            _configuration_cells(
                numbered, in_releases, by_id[facet][numbered.configurations[column]]
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
    binaries = numbered.specs["configuration"][numbered.specs["is_binary"] > 0]
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
    """Yield the cells of the stacks; `codes` has the value of each stack, by its id.

    A few releases at a time, for all at once would take as much memory as all that is counted.
    """
    package_of, members = numbered.configurations["package"], numbered.stack_members
    of, stack, specs = in_stacks
    yield _Cells(np.zeros_like(of), package_of[of], codes[stack], specs)
    listings, packages = numbered.listings, len(numbered.ids["packages"]) + 1
    releases = range(1, len(numbered.ids["releases"]) + 1, RELEASES_AT_ONCE)
    ends = [*np.searchsorted(listings["release"], releases).tolist(), len(listings)]
    for some in map(slice, ends, ends[1:]):
        part = listings.where(some)
        package = package_of[part["configuration"]]
        found = pairs(part["release"] * packages + package, part["stacks"])
        at, stack = members.of(found.second)
        release, package = np.divmod(found.first[at], packages)
        yield _Cells(release, package, codes[stack], found.counts[at])
