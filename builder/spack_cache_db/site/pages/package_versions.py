"""The versions of a package by machine and by release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.conditions import Condition
from spack_cache_db.query.configurations import Counted, counts_in_scope
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.records import Configuration
from spack_cache_db.site.pages.filters import Filters

MOST_VERSIONS = 8
"""Versions in the timeline by default."""
MOST_SHOWN = 3
"""Versions in the table of machines by default."""
MOST_RELEASES = 2
_PLATFORMS = {"darwin": "macOS"}


@dataclass(frozen=True, slots=True)
class VersionRuns:
    """A version: count and address for each machine, and the first releases that have it."""

    version: str
    counts: tuple[tuple[int, str], ...]
    releases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhereItRuns:
    """Binaries of a package by version, newest first, and by machine."""

    machines: tuple[str, ...]
    versions: tuple[VersionRuns, ...]
    version_count: int


def where_it_runs(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]], *, all: bool
) -> WhereItRuns:
    """Return the number of binaries of a package by version and machine.

    Args:
        lookups: the small tables of the database.
        every: the configurations of the package.
        releases: the ids of the releases of each configuration.
        all: whether to return more than the newest `MOST_SHOWN` versions.
    """
    platforms = {row.configuration.platform for row in every if row.spec_count}

    def machine_of(configuration: Configuration) -> Machine:
        family, platform = lookups.families[configuration.target], configuration.platform
        name = _machine_name(family, platform)
        return Machine(name, f"{family}:", platform if len(platforms) > 1 else None)

    cells = [(row, machine_of(row.configuration), row.spec_count) for row in every]
    counts = Counter[Machine]()
    for _, machine, count in cells:
        counts[machine] += count
    order = [machine for machine, count in counts.most_common() if count]
    return _table(lookups, cells, releases, order, all=all)


def where_installed(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]], *, all: bool
) -> WhereItRuns | None:
    """Return the number of specs by version and installation; None without two installations.

    The arguments are those of `where_it_runs`.
    """
    trees, ids = lookups.trees(), [row.id for row in every]
    if len(trees) < 2:
        return None
    names = (lookups.releases[tree].name for tree in trees)
    machines = {tree: Machine(name, release=name) for tree, name in zip(trees, names, strict=True)}
    cells = [
        (row, machine, counts[row.id])
        for tree, machine in machines.items()
        for counts in (counts_in_scope(lookups, ids, (Condition("release", "", tree),)),)
        for row in every
    ]
    return _table(lookups, cells, releases, [*machines.values()], all=all)


class Machine(NamedTuple):
    """A kind of machine, or an installation: its name, and its filters."""

    name: str
    target: str | None = None
    platform: str | None = None
    release: str | None = None

    def address(self, version: str) -> str:
        """Return the query string that filters by the machine and a version."""
        _, target, platform, release = self
        return Filters(version=version, target=target, platform=platform, release=release).address()


def _table(
    lookups: Lookups,
    cells: Iterable[tuple[Counted, Machine, int]],
    releases: Mapping[int, Sequence[int]],
    order: Sequence[Machine],
    *,
    all: bool,
) -> WhereItRuns:
    """Return the table of cells: configuration, machine and number of specs."""
    counts: dict[tuple[int, str], Counter[Machine]] = {}
    release_ids: dict[tuple[int, str], set[int]] = {}
    for configuration, machine, specs in cells:
        if specs:
            version = configuration.position, configuration.configuration.version
            counts.setdefault(version, Counter())[machine] += specs
            release_ids.setdefault(version, set()).update(releases[configuration.id])
    names = {key: release.name for key, release in lookups.releases.items()}

    def row(key: tuple[int, str]) -> VersionRuns:
        cells_of_row = tuple((counts[key][machine], machine.address(key[1])) for machine in order)
        first = [release for number, release in names.items() if number in release_ids[key]]
        return VersionRuns(key[1], cells_of_row, tuple(first[:MOST_RELEASES]))

    newest_first = sorted(counts, reverse=True)
    keys = newest_first if all else newest_first[:MOST_SHOWN]
    return WhereItRuns(tuple(machine.name for machine in order), tuple(map(row, keys)), len(counts))


def _machine_name(family: str, platform: str) -> str:
    return family if platform == "linux" else f"{_PLATFORMS.get(platform, platform)} {family}"


class Lane(NamedTuple):
    """The releases that have one version for one family of targets.

    Attributes:
        runs: (first position, number) of consecutive releases in `Timeline.releases`, from 0.
        since: the first release that has it, or the day of a snapshot.
        until: the last one; None if that is the newest of all.
        releases: number of releases that have it.
    """

    family: str
    runs: tuple[tuple[int, int], ...]
    since: str
    until: str | None
    releases: int


class VersionTimeline(NamedTuple):
    """One version: a sentence about it, and its families, oldest first."""

    version: str
    sentence: str
    lanes: tuple[Lane, ...]


class Timeline(NamedTuple):
    """The versions of a package, the newest first, and all releases, the oldest first."""

    releases: tuple[str, ...]
    versions: tuple[VersionTimeline, ...]
    version_count: int


def timeline_of(
    lookups: Lookups,
    every: Iterable[Counted],
    releases: Mapping[int, Sequence[int]],
    *,
    every_version: bool,
) -> Timeline:
    """Return the first and last release of each version of a package.

    Args:
        lookups: the small tables of the database.
        every: the configurations of the package.
        releases: the ids of the releases of each configuration.
        every_version: whether to return more than the newest `MOST_VERSIONS`.
    """
    oldest_first = [*reversed(lookups.releases.values())]
    positions = {release.id: at for at, release in enumerate(oldest_first)}
    lanes: dict[tuple[int, str], dict[str, set[int]]] = {}
    for row in every:
        if listing := releases[row.id]:
            words = row.configuration
            families = lanes.setdefault((row.position, words.version), {})
            families.setdefault(lookups.families[words.target], set()).update(listing)
    keys = sorted(lanes, reverse=True)[: None if every_version else MOST_VERSIONS]
    versions = (_version(key[1], lanes[key], positions, oldest_first) for key in keys)
    return Timeline(tuple(release.name for release in oldest_first), tuple(versions), len(lanes))


def _version(
    name: str,
    families: Mapping[str, Iterable[int]],
    positions: Mapping[int, int],
    releases: Sequence[Release],
) -> VersionTimeline:
    lanes = [
        _lane(family, sorted(map(positions.__getitem__, ids)), releases)
        for family, ids in families.items()
    ]
    lanes.sort(key=lambda lane: (lane.runs[0][0], lane.family))
    first, *more = lanes
    parts = [f"{name} since {first.since}"]
    parts += [f"on {lane.family} since {lane.since}" for lane in more if lane.since != first.since]
    if len({lane.until for lane in lanes}) == 1:
        parts += [f"last in {first.until}"] if first.until else []
    else:
        parts += [f"on {lane.family} last in {lane.until}" for lane in lanes if lane.until]
    return VersionTimeline(name, ", ".join(parts), tuple(lanes))


def _lane(family: str, places: Sequence[int], releases: Sequence[Release]) -> Lane:
    # Prefer snapshots: only they have a date.
    dated = [at for at in places if releases[at].date] or places
    first, last = releases[dated[0]], releases[dated[-1]]
    is_current = places[-1] == len(releases) - 1 or last == _newest(releases)
    until = None if is_current else last.date or last.name
    return Lane(family, tuple(_runs(places)), first.date or first.name, until, len(places))


def _newest(releases: Sequence[Release]) -> Release:
    """Return the newest snapshot, or the last release without one."""
    return next((release for release in reversed(releases) if release.date), releases[-1])


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """Return start and length of each run of consecutive positions."""
    runs: list[tuple[int, int]] = []
    for at in places:
        if runs and at == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((at, 1))
    return runs
