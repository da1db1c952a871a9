"""Counts specs, configurations, packages and releases.

Only binaries are counted, not specs that are in no release. Binaries that only copies
of a mirror list (`specs.is_gone`) are counted in these releases, but not over all
releases together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.assembly.frames import (
    Frame,
    Mask,
    Members,
    Numbers,
    Pairs,
    numbers,
    packed,
    pairs,
    summed,
    unpacked,
)
from spack_cache_db.assembly.ids import Numbered
from spack_cache_db.assembly.snapshots import copied_releases
from spack_cache_db.releases import release_date, releases_before
from spack_cache_db.schema.tables import CONFIGURATION, FACETS

FacetCount = tuple[int | None, str, str, int, int]
"""A row of `facet_values` without its id: release or None, facet, value, specs,
packages.
"""


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


def count(numbered: Numbered) -> Counts:
    """Return all counts."""
    ids, listings, package_of = (
        numbered.ids,
        numbered.listings,
        numbered.configurations["package"],
    )
    releases, packages, stacks = (
        len(ids[name]) for name in ("releases", "packages", "stacks")
    )
    configurations, specs = len(ids["configurations"]), len(numbered.hashes)
    is_gone = _are_gone(numbered)
    available = numbered.specs.where((numbered.specs["is_listed"] > 0) & ~is_gone)
    binaries = available["configuration"]
    in_releases = pairs(listings["configuration"], listings["release"])
    sets = pairs(binaries, available["stacks"])
    index, stack = numbered.stack_members.of(sets.second)
    in_stacks = pairs(sets.first[index], stack, sets.counts[index])
    # Pages without specs count as well.
    package_releases = pairs(
        np.concatenate([package_of[in_releases.first], numbered.pages["package"]]),
        np.concatenate([in_releases.second, numbered.pages["release"]]),
    )
    facets = _facet_counts(numbered, binaries, in_releases, in_stacks)
    stack_releases = Counter(
        value for release, facet, value, *_ in facets if release and facet == "stack"
    )
    before = releases_before(ids["releases"])
    previous = numbers(
        [0, *(ids["releases"].get(before.get(name, ""), 0) for name in ids["releases"])]
    )
    dates = [release_date(release) for release in ids["releases"]]
    days = [*sorted({date for date in dates if date}), None]
    # The index of a release's date, or -1, which is that of None.
    day_of = numbers([-1, *(days.index(date) if date else -1 for date in dates)])

    def seen(column: Numbers, release: Numbers, size: int) -> dict[str, list[Any]]:
        """Return number and dates of the releases of each id; the columns are distinct
        pairs.
        """
        day = day_of[release]
        dated = day >= 0
        first, last = np.full(size + 1, len(days) - 1), np.full(size + 1, -1)
        np.minimum.at(first, column[dated], day[dated])
        np.maximum.at(last, column[dated], day[dated])
        return {
            "release_count": _times(column, size),
            "first_seen": [days[at] for at in first[1:].tolist()],
            "last_seen": [days[at] for at in last[1:].tolist()],
        }

    current = np.bincount(
        listings["spec"][day_of[listings["release"]] < 0], minlength=specs + 1
    )
    columns: dict[str, dict[str, list[Any]]] = {
        "releases": {
            "previous": [release or None for release in previous[1:].tolist()],
            "package_count": _times(package_releases.second, releases),
            "spec_count": _times(listings["release"], releases),
        },
        "packages": {
            "spec_count": _times(package_of[binaries], packages),
            "configuration_count": _times(package_of[np.unique(binaries)], packages),
            **seen(package_releases.first, package_releases.second, packages),
        },
        "stacks": {
            "release_count": [stack_releases[name] for name in ids["stacks"]],
            "spec_count": summed(in_stacks.second, in_stacks.counts, stacks + 1)[
                1:
            ].tolist(),
        },
        "configurations": {
            "spec_count": _times(binaries, configurations),
            **seen(in_releases.first, in_releases.second, configurations),
        },
        "specs": {
            "is_current": (current[1:] > 0).tolist(),
            "is_gone": is_gone.tolist(),
            **seen(listings["spec"], listings["release"], specs),
        },
    }
    tables = {
        "configuration_history": _history(listings, in_releases, previous),
        "configuration_stacks": Frame(
            configuration=in_stacks.first,
            stack=in_stacks.second,
            spec_count=in_stacks.counts,
        ),
        "release_packages": _release_packages(numbered, in_releases),
    }
    return Counts(columns, tables, facets)


def _are_gone(numbered: Numbered) -> Mask:
    """Return whether each spec is in no release but copies: the mirror has lost it."""
    listings = numbered.listings
    copies = copied_releases(numbered.documents)
    is_copy = np.array([False, *(name in copies for name in numbered.ids["releases"])])
    in_mirrors = listings["spec"][~is_copy[listings["release"]]]
    mirror_count = np.bincount(in_mirrors, minlength=len(numbered.hashes) + 1)
    is_gone: Mask = (numbered.specs["is_listed"] > 0) & (mirror_count[1:] == 0)
    return is_gone


def _times(ids: Numbers, size: int) -> list[int]:
    """Return the number of occurrences of each id from 1 to `size`."""
    counts: list[int] = np.bincount(ids, minlength=size + 1)[1:].tolist()
    return counts


def _history(listings: Frame, in_releases: Pairs, previous: Numbers) -> Frame:
    """Return the specs of each configuration that each release lists, adds and removes,
    counted.

    Args:
        listings: the listings, sorted by release and spec.
        in_releases: all pairs of a configuration and a release.
        previous: the release before each release, or 0.
    """
    before = previous[listings["release"]]
    keys = packed(listings["release"], listings["spec"])
    is_new = (before > 0) & ~np.isin(packed(before, listings["spec"]), keys)
    new = pairs(listings["configuration"][is_new], listings["release"][is_new])
    by_release = np.argsort(in_releases.second, kind="stable")
    starts = np.searchsorted(
        in_releases.second[by_release], np.arange(len(previous) + 1)
    )
    later, at = Members(starts, by_release).of(previous)
    old = Pairs(in_releases.first[at], later, in_releases.counts[at])
    all_pairs = np.union1d(
        *(packed(side.first, side.second) for side in (in_releases, old))
    )

    def counts(side: Pairs) -> Numbers:
        found = np.zeros(len(all_pairs), np.int64)
        found[np.searchsorted(all_pairs, packed(side.first, side.second))] = side.counts
        return found

    configuration, release = unpacked(all_pairs)
    listed, added = counts(in_releases), counts(new)
    removed = np.where(previous[release] > 0, counts(old) + added - listed, 0)
    return Frame(
        configuration=configuration,
        release=release,
        spec_count=listed,
        added=added,
        removed=removed,
    )


def _release_packages(numbered: Numbered, in_releases: Pairs) -> Frame:
    """Return the counts and the newest version of each package in each release."""
    configuration = in_releases.first
    keys, group, configurations = np.unique(
        packed(in_releases.second, numbered.configurations["package"][configuration]),
        return_inverse=True,
        return_counts=True,
    )
    # The preferred version of a package has the largest id.
    newest = np.zeros(len(keys), np.int64)
    np.maximum.at(newest, group, numbered.configurations["version"][configuration])
    release, package = unpacked(keys)
    return Frame(
        release=release,
        package=package,
        configuration_count=configurations,
        spec_count=summed(group, in_releases.counts, len(keys)),
        newest_version=newest,
    )


def _facet_counts(
    numbered: Numbered, binaries: Numbers, in_releases: Pairs, in_stacks: Pairs
) -> list[FacetCount]:
    """Return the counts by release, facet and value, sorted; those of all releases come
    first.

    `binaries` has the configuration of each binary that is counted over all releases.
    """
    ids, listings, package_of = (
        numbered.ids,
        numbered.listings,
        numbered.configurations["package"],
    )
    names_of_facet = {facet: ids[CONFIGURATION[facet]] for facet in FACETS}
    names_of_facet["stack"] = ids["stacks"]
    values = sorted(
        (facet, name) for facet, names in names_of_facet.items() for name in names
    )
    codes = {value: code for code, value in enumerate(values)}
    specs = np.zeros((len(ids["releases"]) + 1) * len(values), dtype=np.int64)
    packages = np.zeros_like(specs)

    def add(
        facet: str, release: Numbers, package: Numbers, value: Numbers, count: Numbers
    ) -> None:
        """Add the specs of a package with a value in a release (0 for all releases)."""
        code = numbers([0, *(codes[facet, name] for name in names_of_facet[facet])])
        key = release * len(values) + code[value]
        specs[:] += summed(key, count, len(specs))
        packages[:] += np.bincount(pairs(key, package).first, minlength=len(packages))

    everywhere = np.zeros_like(in_stacks.first)
    add(
        "stack",
        everywhere,
        package_of[in_stacks.first],
        in_stacks.second,
        in_stacks.counts,
    )
    most = len(ids["packages"]) + 1
    release_and_package = (
        listings["release"] * most + package_of[listings["configuration"]]
    )
    sets = pairs(release_and_package, listings["stacks"])
    index, stack = numbered.stack_members.of(sets.second)
    add("stack", *np.divmod(sets.first[index], most), stack, sets.counts[index])
    spec_counts = np.bincount(binaries)
    used = np.flatnonzero(spec_counts)
    configuration = np.concatenate([used, in_releases.first])
    release = np.concatenate([np.zeros_like(used), in_releases.second])
    counts = np.concatenate([spec_counts[used], in_releases.counts])
    for facet in FACETS:
        value = numbered.configurations[facet][configuration]
        add(facet, release, package_of[configuration], value, counts)
    return [
        (
            key // len(values) or None,
            *values[key % len(values)],
            int(specs[key]),
            int(packages[key]),
        )
        for key in np.flatnonzero(packages).tolist()
    ]
