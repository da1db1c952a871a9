"""The versions of a package: where their binaries run, and which releases have them."""

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
"""Versions in the timeline, if not all are asked for."""
MOST_SHOWN = 3
"""Versions in the table of where a package runs, if not all are asked for."""
MOST_RELEASES = 2
_PLATFORMS = {"darwin": "macOS"}


@dataclass(frozen=True, slots=True)
class VersionRuns:
    """A version: its binaries by kind of machine, and the first releases that have it."""

    version: str
    counts: tuple[tuple[int, str], ...]
    releases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhereItRuns:
    """Binaries of a package by version, the newest first, and by kind of machine."""

    machines: tuple[str, ...]
    versions: tuple[VersionRuns, ...]
    version_count: int


def where_it_runs(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]], *, all: bool
) -> WhereItRuns:
    """Return the binaries of a package by version and kind of machine.

    Args:
        lookups: the small tables of the database.
        every: the configurations of the package.
        releases: the ids of the releases that have each of them.
        all: whether to return more than the newest `MOST_SHOWN` versions.
    """
    platforms = {each.configuration.platform for each in every if each.spec_count}

    def machine_of(what: Configuration) -> Machine:
        family, platform = lookups.families[what.target], what.platform
        name = _machine_name(family, platform)
        return Machine(name, f"{family}:", platform if len(platforms) > 1 else None)

    cells = [(each, machine_of(each.configuration), each.spec_count) for each in every]
    counts = Counter[Machine]()
    for _, machine, count in cells:
        counts[machine] += count
    order = [machine for machine, count in counts.most_common() if count]
    return _table(lookups, cells, releases, order, all=all)


def where_installed(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]], *, all: bool
) -> WhereItRuns | None:
    """Return the specs of a package by version and installation; None if there is only one.

    The arguments are those of `where_it_runs`.
    """
    trees, ids = lookups.trees(), [each.id for each in every]
    if len(trees) < 2:
        return None
    names = (lookups.releases[tree].name for tree in trees)
    machines = {tree: Machine(name, release=name) for tree, name in zip(trees, names, strict=True)}
    cells = [
        (each, machine, counts[each.id])
        for tree, machine in machines.items()
        for counts in (counts_in_scope(lookups, ids, (Condition("release", "", tree),)),)
        for each in every
    ]
    return _table(lookups, cells, releases, [*machines.values()], all=all)


class Machine(NamedTuple):
    """A kind of machine, or an installation: its name, and the filters that it stands for."""

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
    """Return the table of cells: how many specs of a configuration count on a machine."""
    counts: dict[tuple[int, str], Counter[Machine]] = {}
    listed: dict[tuple[int, str], set[int]] = {}
    for what, machine, specs in cells:
        if specs:
            version = what.position, what.configuration.version
            counts.setdefault(version, Counter())[machine] += specs
            listed.setdefault(version, set()).update(releases[what.id])
    names = {key: release.name for key, release in lookups.releases.items()}

    def row(key: tuple[int, str]) -> VersionRuns:
        found = tuple((counts[key][each], each.address(key[1])) for each in order)
        first = [release for number, release in names.items() if number in listed[key]]
        return VersionRuns(key[1], found, tuple(first[:MOST_RELEASES]))

    newest_first = sorted(counts, reverse=True)
    shown = newest_first if all else newest_first[:MOST_SHOWN]
    return WhereItRuns(tuple(each.name for each in order), tuple(map(row, shown)), len(counts))


def _machine_name(family: str, platform: str) -> str:
    return family if platform == "linux" else f"{_PLATFORMS.get(platform, platform)} {family}"


class Lane(NamedTuple):
    """The releases that have one version for one family of targets.

    Attributes:
        runs: (first place, number) of releases that follow each other; places are those of
            `Timeline.releases`, from 0.
        since: the first release that has it; of snapshots the day.
        until: the last one; None where that is the newest of all.
        releases: how many have it.
    """

    family: str
    runs: tuple[tuple[int, int], ...]
    since: str
    until: str | None
    releases: int


class VersionTimeline(NamedTuple):
    """One version: what to say of it, and its families, the first of them first."""

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
    """Return since when each version of a package is there.

    Args:
        lookups: the small tables of the file.
        every: the configurations of the package.
        releases: the releases that show each of them, by their ids.
        every_version: whether to tell of more than the newest `MOST_VERSIONS`.
    """
    oldest_first = [*reversed(lookups.releases.values())]
    place = {each.id: at for at, each in enumerate(oldest_first)}
    found: dict[tuple[int, str], dict[str, set[int]]] = {}
    for each in every:
        if listing := releases[each.id]:
            words = each.configuration
            families = found.setdefault((each.position, words.version), {})
            families.setdefault(lookups.families[words.target], set()).update(listing)
    shown = sorted(found, reverse=True)[: None if every_version else MOST_VERSIONS]
    versions = (_version(key[1], found[key], place, oldest_first) for key in shown)
    return Timeline(tuple(each.name for each in oldest_first), tuple(versions), len(found))


def _version(
    name: str,
    families: Mapping[str, Iterable[int]],
    place: Mapping[int, int],
    releases: Sequence[Release],
) -> VersionTimeline:
    lanes = [
        _lane(family, sorted(map(place.__getitem__, ids)), releases)
        for family, ids in families.items()
    ]
    lanes.sort(key=lambda lane: (lane.runs[0][0], lane.family))
    first, *others = lanes
    parts = [f"{name} since {first.since}"]
    parts += [
        f"on {each.family} since {each.since}" for each in others if each.since != first.since
    ]
    if len({each.until for each in lanes}) == 1:
        parts += [f"last in {first.until}"] if first.until else []
    else:
        parts += [f"on {each.family} last in {each.until}" for each in lanes if each.until]
    return VersionTimeline(name, ", ".join(parts), tuple(lanes))


def _lane(family: str, places: Sequence[int], releases: Sequence[Release]) -> Lane:
    # Releases without a day have their own order: a snapshot says more of when.
    dated = [at for at in places if releases[at].date] or places
    first, last = releases[dated[0]], releases[dated[-1]]
    is_current = places[-1] == len(releases) - 1 or last == _newest(releases)
    until = None if is_current else last.date or last.name
    return Lane(family, tuple(_runs(places)), first.date or first.name, until, len(places))


def _newest(releases: Sequence[Release]) -> Release:
    """Return the newest snapshot; where there is none, the last release."""
    return next((each for each in reversed(releases) if each.date), releases[-1])


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """Return first and length of each run of places that follow each other."""
    runs: list[tuple[int, int]] = []
    for at in places:
        if runs and at == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((at, 1))
    return runs
