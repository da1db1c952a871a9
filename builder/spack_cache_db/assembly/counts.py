"""Counts specs, configurations, packages and releases.

Only binaries are counted, not specs that are in no release. Binaries that only copies
of a mirror list (`specs.is_gone`) are counted in these releases, but not over all
releases together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.snapshots import copied_releases
from spack_cache_db.releases import release_date, releases_before
from spack_cache_db.schema.tables import CONFIGURATION, FACETS
from spack_cache_db.sources.frames import (
    Frame,
    Mask,
    Numbers,
    are_among,
    distinct,
    distinct_pairs,
    number_array,
    numbers_in,
    packed,
    rows_by,
    summed,
    unpacked,
)


class FacetCount(NamedTuple):
    """A row of `facet_values` without its id; the release is None for all releases."""

    release: int | None
    facet: str
    value: str
    spec_count: int
    package_count: int


class Counts(NamedTuple):
    """All counts.

    Attributes:
        columns: counted columns by table and name; the value of the row with id `i` is
            at `i - 1`.
        tables: the tables of counts, by name.
        facets: the rows of `facet_values`.
    """

    columns: dict[str, dict[str, list[Any]]]
    tables: dict[str, Frame]
    facets: list[FacetCount]


class _Pairs(NamedTuple):
    """Numbers of specs by two columns, from which all other counts are made.

    Attributes:
        available: the binaries that a mirror still has.
        in_releases: the specs of each configuration in each release.
        in_stacks: the available binaries of each configuration in each stack.
        package_releases: the releases of each package.
    """

    available: Frame
    in_releases: Frame
    in_stacks: Frame
    package_releases: Frame


def count(numbered: Numbered) -> Counts:
    """Return all counts."""
    # Numbers of specs by two columns.
    is_gone = _are_gone(numbered)
    available = numbered.specs.where((numbered.specs["is_listed"] > 0) & ~is_gone)
    listings = numbered.listings
    in_releases = distinct_pairs(
        configuration=listings["configuration"], release=listings["release"]
    )
    pairs = _Pairs(
        available,
        in_releases,
        _in_stacks(numbered, available),
        _package_releases(numbered, in_releases),
    )

    # Tables that have nothing but counts.
    previous = _previous_releases(numbered.ids["releases"])
    facets = _facet_counts(numbered, pairs)
    tables = {
        "configuration_history": _history(listings, in_releases, previous),
        "configuration_stacks": Frame(
            configuration=pairs.in_stacks["configuration"],
            stack=pairs.in_stacks["stack"],
            spec_count=pairs.in_stacks["count"],
        ),
        "release_packages": _release_packages(numbered, in_releases),
    }

    # Columns of counts in other tables.
    dates = _dates(numbered.ids["releases"])
    history = tables["configuration_history"]
    columns = {
        "releases": _columns_of_releases(numbered, pairs, history, previous),
        "packages": _columns_of_packages(numbered, pairs, dates),
        "stacks": _columns_of_stacks(numbered, pairs, facets),
        "configurations": _columns_of_configurations(numbered, pairs, dates),
        "specs": {
            "is_gone": is_gone.tolist(),
            **dates.seen(listings["spec"], listings["release"], len(numbered.hashes)),
        },
    }
    return Counts(columns, tables, facets)


def _columns_of_releases(
    numbered: Numbered, pairs: _Pairs, history: Frame, previous: Numbers
) -> dict[str, list[Any]]:
    """Return the counted columns of releases.

    Args:
        numbered: all columns.
        pairs: numbers of specs.
        history: the rows of `configuration_history`.
        previous: the release before each release, or 0.
    """
    size = len(numbered.ids["releases"])
    return {
        "previous_release_id": [release or None for release in previous[1:].tolist()],
        "package_count": _times(pairs.package_releases["release"], size),
        "spec_count": _times(numbered.listings["release"], size),
        "added_count": _of_releases(history, "added", previous),
        "removed_count": _of_releases(history, "removed", previous),
    }


def _columns_of_packages(
    numbered: Numbered, pairs: _Pairs, dates: _Dates
) -> dict[str, list[Any]]:
    """Return the counted columns of packages."""
    size = len(numbered.ids["packages"])
    package_of = numbered.configurations["package"]
    configuration_of_binary = pairs.available["configuration"]
    used_configurations = numbers_in(configuration_of_binary)
    package = pairs.package_releases["package"]
    return {
        "spec_count": _times(package_of[configuration_of_binary], size),
        "configuration_count": _times(package_of[used_configurations], size),
        **dates.seen(package, pairs.package_releases["release"], size),
    }


def _columns_of_stacks(
    numbered: Numbered, pairs: _Pairs, facets: Iterable[FacetCount]
) -> dict[str, list[Any]]:
    """Return the counted columns of stacks."""
    stacks = numbered.ids["stacks"]
    in_stacks = pairs.in_stacks
    specs_of_stack = summed(in_stacks["stack"], in_stacks["count"], len(stacks) + 1)
    return {
        "release_count": _releases_of_stacks(stacks, facets),
        "spec_count": specs_of_stack[1:].tolist(),
    }


def _columns_of_configurations(
    numbered: Numbered, pairs: _Pairs, dates: _Dates
) -> dict[str, list[Any]]:
    """Return the counted columns of configurations."""
    size = len(numbered.ids["configurations"])
    in_releases = pairs.in_releases
    return {
        "spec_count": _times(pairs.available["configuration"], size),
        **dates.seen(in_releases["configuration"], in_releases["release"], size),
    }


def _are_gone(numbered: Numbered) -> Mask:
    """Return whether each spec is in no release but copies: the mirror has lost it."""
    listings = numbered.listings
    copies = copied_releases(numbered.documents)
    is_copy = [False]
    for name in numbered.ids["releases"]:
        is_copy.append(name in copies)

    # How often each spec is listed in releases that are not copies.
    is_in_copy = np.array(is_copy)[listings["release"]]
    specs_of_mirrors = listings["spec"][~is_in_copy]
    count_in_mirrors = np.bincount(specs_of_mirrors, minlength=len(numbered.hashes) + 1)
    is_gone: Mask = (numbered.specs["is_listed"] > 0) & (count_in_mirrors[1:] == 0)
    return is_gone


def _in_stacks(numbered: Numbered, available: Frame) -> Frame:
    """Return the number of binaries of each configuration in each stack.

    Binaries are counted by their sets of stacks first, because there are few sets.
    """
    sets = distinct_pairs(
        configuration=available["configuration"], stacks=available["stacks"]
    )
    # For each stack of each set: the row in `sets`, and the stack.
    row, stack = numbered.stack_members.members_of(sets["stacks"])
    return distinct_pairs(
        configuration=sets["configuration"][row],
        stack=stack,
        weights=sets["count"][row],
    )


def _package_releases(numbered: Numbered, in_releases: Frame) -> Frame:
    """Return the distinct pairs of a package and a release; pages without specs count
    as well.
    """
    package_of = numbered.configurations["package"]
    package_of_row = package_of[in_releases["configuration"]]
    pages = numbered.pages
    return distinct_pairs(
        package=np.concatenate([package_of_row, pages["package"]]),
        release=np.concatenate([in_releases["release"], pages["release"]]),
    )


def _previous_releases(release_ids: Mapping[str, int]) -> Numbers:
    """Return the release before each release, or 0; number 0 has none."""
    before = releases_before(release_ids)
    previous = [0]
    for name in release_ids:
        # No release has an empty name, so without a release before, the number is 0.
        name_before = before.get(name, "")
        previous.append(release_ids.get(name_before, 0))
    return number_array(previous)


def _releases_of_stacks(
    stacks: Iterable[str], facets: Iterable[FacetCount]
) -> list[int]:
    """Return the number of releases of each stack."""
    release_count: Counter[str] = Counter()
    for row in facets:
        if row.facet == "stack" and row.release is not None:
            release_count[row.value] += 1
    return [release_count[name] for name in stacks]


class _Dates(NamedTuple):
    """The dates of releases.

    Attributes:
        days: the distinct dates, sorted; the last one is None.
        day_of_release: the index of the date of each release; -1, which is the index of
            None, for a release without a date and for number 0.
    """

    days: list[str | None]
    day_of_release: Numbers

    def seen(self, ids: Numbers, releases: Numbers, count: int) -> dict[str, list[Any]]:
        """Return number and dates of the releases of each id from 1 to `count`, and
        whether one of them is current: a release without a date, such as a branch.

        Args:
            ids: the id of each row.
            releases: the release of each row; no pair may occur twice.
            count: the largest id.
        """
        day = self.day_of_release[releases]
        is_dated = day >= 0
        # Both begin at an index of None, and stay there without a dated release.
        first = np.full(count + 1, len(self.days) - 1)
        last = np.full(count + 1, -1)
        np.minimum.at(first, ids[is_dated], day[is_dated])
        np.maximum.at(last, ids[is_dated], day[is_dated])
        current_count = np.bincount(ids[~is_dated], minlength=count + 1)
        return {
            "release_count": _times(ids, count),
            "first_seen": [self.days[day] for day in first[1:].tolist()],
            "last_seen": [self.days[day] for day in last[1:].tolist()],
            "is_current": (current_count[1:] > 0).tolist(),
        }


def _dates(releases: Iterable[str]) -> _Dates:
    """Return the dates of releases, which are in the order of their ids."""
    dates = [release_date(release) for release in releases]
    days = sorted({date for date in dates if date})
    day_of_release = [-1]
    for date in dates:
        day_of_release.append(days.index(date) if date else -1)
    return _Dates([*days, None], number_array(day_of_release))


def _times(ids: Numbers, size: int) -> list[int]:
    """Return the number of occurrences of each id from 1 to `size`."""
    counts: list[int] = np.bincount(ids, minlength=size + 1)[1:].tolist()
    return counts


def _history(listings: Frame, in_releases: Frame, previous: Numbers) -> Frame:
    """Return the specs of each configuration that each release lists, adds and removes,
    counted.

    Args:
        listings: the listings, sorted by release and spec.
        in_releases: the number of specs by configuration and release.
        previous: the release before each release, or 0.
    """
    # Specs that the release before does not list.
    in_release = _listings_by_release(listings, len(previous) - 1)
    is_added = np.zeros(len(listings), bool)
    for release_id, id_before in enumerate(previous.tolist()):
        if id_before:
            specs = listings["spec"][in_release[release_id]]
            specs_before = listings["spec"][in_release[id_before]]
            is_added[in_release[release_id]] = ~are_among(specs, specs_before)
    added = distinct_pairs(
        configuration=listings["configuration"][is_added],
        release=listings["release"][is_added],
    )

    # For each release: the configurations of the release before it, with their counts.
    rows_of_release = rows_by(in_releases["release"], len(previous))
    release, row = rows_of_release.members_of(previous)
    listed_before = Frame(
        configuration=in_releases["configuration"][row],
        release=release,
        count=in_releases["count"][row],
    )

    # A configuration has a row in each release that lists it or has just lost it.
    all_keys = distinct(np.concatenate([_keys(in_releases), _keys(listed_before)]))
    counts_listed = _counts_by_key(in_releases, all_keys)
    counts_added = _counts_by_key(added, all_keys)
    counts_before = _counts_by_key(listed_before, all_keys)
    configuration, release = unpacked(all_keys)
    # What was listed before or is added is listed now, unless it is removed. A release
    # without one before it removes nothing.
    removed = counts_before + counts_added - counts_listed
    return Frame(
        configuration=configuration,
        release=release,
        spec_count=counts_listed,
        added=counts_added,
        removed=np.where(previous[release] > 0, removed, 0),
    )


def _listings_by_release(listings: Frame, release_count: int) -> list[slice]:
    """Return the rows of each release, by its number; release 0 has none.

    Args:
        listings: the listings, sorted by release and spec.
        release_count: the number of releases.
    """
    bounds = np.searchsorted(listings["release"], np.arange(release_count + 2))
    return [slice(start, end) for start, end in pairwise(bounds.tolist())]


def _of_releases(history: Frame, count: str, previous: Numbers) -> list[int | None]:
    """Return the sums of a count of changes, by release; None without a release before.

    Args:
        history: the rows of `configuration_history`.
        count: the name of the count, `added` or `removed`.
        previous: the release before each release, or 0.
    """
    sums = summed(history["release"], history[count], len(previous)).tolist()
    return [
        total if before else None
        for total, before in zip(sums[1:], previous[1:].tolist(), strict=True)
    ]


def _keys(pairs: Frame) -> Numbers:
    return packed(pairs["configuration"], pairs["release"])


def _counts_by_key(pairs: Frame, all_keys: Numbers) -> Numbers:
    """Return the count of each key; 0 for keys that are not among the pairs."""
    counts = np.zeros(len(all_keys), np.int64)
    counts[np.searchsorted(all_keys, _keys(pairs))] = pairs["count"]
    return counts


def _release_packages(numbered: Numbered, in_releases: Frame) -> Frame:
    """Return the counts and the newest version of each package in each release."""
    configuration = in_releases["configuration"]
    package_of_row = numbered.configurations["package"][configuration]
    version_of_row = numbered.configurations["version"][configuration]
    keys, group, configuration_count = np.unique(
        packed(in_releases["release"], package_of_row),
        return_inverse=True,
        return_counts=True,
    )
    # The preferred version of a package has the largest id.
    newest = np.zeros(len(keys), np.int64)
    np.maximum.at(newest, group, version_of_row)
    release, package = unpacked(keys)
    return Frame(
        release=release,
        package=package,
        configuration_count=configuration_count,
        spec_count=summed(group, in_releases["count"], len(keys)),
        newest_version=newest,
    )


class _FacetTotals:
    """Sums the specs and packages of each facet value in each release.

    Release 0 stands for all releases together.
    """

    def __init__(self, numbered: Numbered) -> None:
        ids = numbered.ids
        # The values of each facet, in the order of their ids.
        self._names: dict[str, list[str]] = {}
        for facet in FACETS:
            table = CONFIGURATION[facet]
            self._names[facet] = list(ids[table])
        self._names["stack"] = list(ids["stacks"])
        # All values of all facets, sorted; the code of a value is its index.
        self._values: list[tuple[str, str]] = []
        for facet, names in self._names.items():
            self._values += [(facet, name) for name in names]
        self._values.sort()
        self._codes = {value: code for code, value in enumerate(self._values)}
        # The totals of all releases, then those of the first release, and so on.
        size = (len(ids["releases"]) + 1) * len(self._values)
        self._specs = np.zeros(size, np.int64)
        self._packages = np.zeros(size, np.int64)

    def add(self, facet: str, rows: Frame) -> None:
        """Add rows with a release, a package, the id of a value, and a number of specs
        in `count`.
        """
        # The code of each value by its id; no value has the id 0.
        codes = [0]
        for name in self._names[facet]:
            codes.append(self._codes[facet, name])
        # The index of the total to which each row belongs.
        code = number_array(codes)[rows["value"]]
        total = rows["release"] * len(self._values) + code
        self._specs += summed(total, rows["count"], len(self._specs))
        # A package counts once, however many specs with the value it has.
        packages = distinct_pairs(total=total, package=rows["package"])
        self._packages += np.bincount(packages["total"], minlength=len(self._packages))

    def rows(self) -> list[FacetCount]:
        """Return the values that occur, by release, facet and value."""
        rows = []
        for total in np.flatnonzero(self._packages).tolist():
            release, code = divmod(total, len(self._values))
            facet, value = self._values[code]
            specs = int(self._specs[total])
            packages = int(self._packages[total])
            rows.append(FacetCount(release or None, facet, value, specs, packages))
        return rows


def _facet_counts(numbered: Numbered, pairs: _Pairs) -> list[FacetCount]:
    """Return the counts by release, facet and value, sorted; those of all releases come
    first.
    """
    totals = _FacetTotals(numbered)
    package_of = numbered.configurations["package"]

    # Stacks, over all releases and in each release.
    in_stacks = pairs.in_stacks
    totals.add(
        "stack",
        Frame(
            release=np.zeros_like(in_stacks["stack"]),
            package=package_of[in_stacks["configuration"]],
            value=in_stacks["stack"],
            count=in_stacks["count"],
        ),
    )
    _add_stacks_in_releases(totals, numbered)

    # All other facets, over all releases and in each release.
    in_releases = pairs.in_releases
    spec_counts = np.bincount(pairs.available["configuration"])
    used = np.flatnonzero(spec_counts)
    configuration = np.concatenate([used, in_releases["configuration"]])
    release = np.concatenate([np.zeros_like(used), in_releases["release"]])
    count = np.concatenate([spec_counts[used], in_releases["count"]])
    package = package_of[configuration]
    for facet in FACETS:
        value = numbered.configurations[facet][configuration]
        totals.add(
            facet, Frame(release=release, package=package, value=value, count=count)
        )
    return totals.rows()


def _add_stacks_in_releases(totals: _FacetTotals, numbered: Numbered) -> None:
    """Add the counts of stacks in each release.

    They are counted by sets of stacks first. Each binary has ten stacks or more, so one
    release is counted at a time.
    """
    package_of = numbered.configurations["package"]
    release_count = len(numbered.ids["releases"])
    in_release = _listings_by_release(numbered.listings, release_count)
    for release_id, rows_of_release in enumerate(in_release):
        listed = numbered.listings.where(rows_of_release)
        sets = distinct_pairs(
            package=package_of[listed["configuration"]], stacks=listed["stacks"]
        )
        row, stack = numbered.stack_members.members_of(sets["stacks"])
        rows = Frame(
            release=np.full_like(stack, release_id),
            package=sets["package"][row],
            value=stack,
            count=sets["count"][row],
        )
        totals.add("stack", rows)
