"""The versions of a package by machine and by release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from spack_cache_db.query.conditions import Condition
from spack_cache_db.query.configurations import Counted, counts_in_scope, runs_of
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.site.pages.filters import Filters

MOST_RELEASES = 2
_PLATFORMS = {"darwin": "macOS"}


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


class VersionRuns(NamedTuple):
    """A version: its count for each machine, and the first releases that have it."""

    version: str
    counts: tuple[int, ...]
    releases: tuple[str, ...]


class WhereItRuns(NamedTuple):
    """Binaries of a package by version, newest first, and by machine."""

    machines: tuple[Machine, ...]
    versions: tuple[VersionRuns, ...]


def where_it_runs(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]]
) -> WhereItRuns:
    """Return the number of binaries of a package by version and machine.

    `releases` has the ids of the releases of each configuration.
    """
    platforms = {row.configuration.platform for row in every if row.spec_count}

    def machine_of(row: Counted) -> Machine:
        family, platform = lookups.families[row.configuration.target], row.configuration.platform
        system = "" if platform == "linux" else f"{_PLATFORMS.get(platform, platform)} "
        return Machine(f"{system}{family}", f"{family}:", platform if len(platforms) > 1 else None)

    cells = [(row, machine_of(row), row.spec_count) for row in every]
    counts = Counter[Machine]()
    for _, machine, count in cells:
        counts[machine] += count
    order = [machine for machine, count in counts.most_common() if count]
    return _table(lookups, cells, releases, order)


def where_installed(
    lookups: Lookups, every: Sequence[Counted], releases: Mapping[int, Sequence[int]]
) -> WhereItRuns | None:
    """Return the number of specs by version and installation; None without two installations."""
    trees, ids = lookups.trees(), [row.id for row in every]
    if len(trees) < 2:
        return None
    cells, machines = [], []
    for tree in trees:
        name = lookups.releases[tree].name
        machines.append(Machine(name, release=name))
        counts = counts_in_scope(lookups, ids, (Condition("release", "", tree),))
        cells += [(row, machines[-1], counts[row.id]) for row in every]
    return _table(lookups, cells, releases, machines)


def _table(
    lookups: Lookups,
    cells: Iterable[tuple[Counted, Machine, int]],
    releases: Mapping[int, Sequence[int]],
    machines: Sequence[Machine],
) -> WhereItRuns:
    """Return the table of cells: configuration, machine and number of specs."""
    counts: dict[tuple[int, str], Counter[Machine]] = {}
    release_ids: dict[tuple[int, str], set[int]] = {}
    for row, machine, specs in cells:
        if specs:
            version = row.position, row.configuration.version
            counts.setdefault(version, Counter())[machine] += specs
            release_ids.setdefault(version, set()).update(releases[row.id])
    versions = (
        VersionRuns(
            key[1],
            tuple(counts[key][machine] for machine in machines),
            lookups.release_names(release_ids[key])[:MOST_RELEASES],
        )
        for key in sorted(counts, reverse=True)
    )
    return WhereItRuns(tuple(machines), tuple(versions))


class Lane(NamedTuple):
    """The releases that have one version for one family of targets.

    Attributes:
        runs: the first and last position in `Timeline.releases` of consecutive releases.
        since: the first release that has it, or the day of a snapshot.
        until: the last one; None if that is the newest of all.
        releases: number of releases that have it.
    """

    family: str
    runs: tuple[tuple[int, int], ...]
    since: str
    until: str | None
    releases: int


class Timeline(NamedTuple):
    """The versions of a package, newest first, with their lanes; all releases, oldest first."""

    releases: tuple[str, ...]
    versions: tuple[tuple[str, tuple[Lane, ...]], ...]
    version_count: int


def timeline_of(
    lookups: Lookups,
    every: Iterable[Counted],
    releases: Mapping[int, Sequence[int]],
    most: int | None,
) -> Timeline:
    """Return the first and last release of each of the newest versions of a package."""
    oldest_first = [*reversed(lookups.releases.values())]
    positions = {release.id: at for at, release in enumerate(oldest_first)}
    lanes: dict[tuple[int, str], dict[str, set[int]]] = {}
    for row in every:
        if listing := releases[row.id]:
            words = row.configuration
            families = lanes.setdefault((row.position, words.version), {})
            families.setdefault(lookups.families[words.target], set()).update(listing)
    versions = []
    for key in sorted(lanes, reverse=True)[:most]:
        lanes_of_version = (
            _lane(family, sorted(map(positions.__getitem__, ids)), oldest_first)
            for family, ids in lanes[key].items()
        )
        order = sorted(lanes_of_version, key=lambda lane: (lane.runs[0][0], lane.family))
        versions.append((key[1], tuple(order)))
    return Timeline(tuple(release.name for release in oldest_first), tuple(versions), len(lanes))


def _lane(family: str, positions: Sequence[int], releases: Sequence[Release]) -> Lane:
    # Prefer snapshots: only they have a date.
    dated = [at for at in positions if releases[at].date] or positions
    first, last = releases[dated[0]], releases[dated[-1]]
    newest = next((release for release in reversed(releases) if release.date), releases[-1])
    is_current = positions[-1] == len(releases) - 1 or last == newest
    until = None if is_current else last.date or last.name
    runs = tuple((start, stop) for start, stop in runs_of(positions))
    return Lane(family, runs, first.date or first.name, until, len(positions))
