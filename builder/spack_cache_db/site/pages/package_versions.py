"""The versions of a package by machine and by release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.query.stored.binary import counts_in_scope
from spack_cache_db.query.stored.presence import runs_of
from spack_cache_db.site.filters import Filters

_PLATFORMS = {"darwin": "macOS"}
Versions = Sequence[tuple[str, Sequence[Candidate]]]
"""The versions of a package, newest first, with their configurations."""
Releases = Mapping[int, Sequence[int]]
"""The releases that list each configuration, all by id."""


class Machine(NamedTuple):
    """A kind of machine, or an installation: its name, and its filters."""

    name: str
    filters: Filters


class VersionRuns(NamedTuple):
    """A version: its count for each machine, and the releases that have it."""

    version: str
    counts: tuple[int, ...]
    releases: tuple[str, ...]


class WhereItRuns(NamedTuple):
    """Binaries of a package by version, newest first, and by machine."""

    machines: tuple[Machine, ...]
    versions: tuple[VersionRuns, ...]


def versions_of(
    lookups: Lookups, rows: Iterable[Candidate], releases: Releases
) -> Versions:
    """Return the versions of the configurations that a release lists."""
    listed = [row for row in rows if releases[row.id]]
    listed.sort(key=lambda row: lookups.positions[row.key("version")], reverse=True)
    groups = groupby(listed, key=lambda row: row.key("version"))
    return [(lookups.words["version"][key], [*group]) for key, group in groups]


def where_it_runs(
    lookups: Lookups, versions: Versions, releases: Releases
) -> WhereItRuns:
    """Return the number of binaries by version and machine; machines with most come
    first.
    """
    words, counts = lookups.words, defaultdict[tuple[str, str], dict[int, int]](dict)
    listed = chain.from_iterable(rows for _, rows in versions)
    # The mirror may have lost all binaries of a configuration.
    for row in sorted(row for row in listed if row.spec_count):
        family = lookups.families[words["target"][row.key("target")]]
        counts[words["platform"][row.key("platform")], family][row.id] = row.spec_count
    platforms = {platform for platform, _ in counts}
    machines = {}
    for platform, family in sorted(
        counts, key=lambda machine: -sum(counts[machine].values())
    ):
        system = "" if platform == "linux" else f"{_PLATFORMS.get(platform, platform)} "
        filters = Filters(
            target=f"{family}:", platform=platform if len(platforms) > 1 else None
        )
        machines[Machine(f"{system}{family}", filters)] = counts[platform, family]
    return _table(lookups, versions, releases, machines)


def where_installed(
    lookups: Lookups, versions: Versions, releases: Releases
) -> WhereItRuns | None:
    """Return the number of specs by version and installation; None without two
    installations.
    """
    names = {tree: lookups.releases[tree].name for tree in lookups.trees()}
    counts = {
        Machine(name, Filters(release=name)): counts_in_scope(
            lookups, releases, (Condition("release", name, tree),)
        )
        for tree, name in names.items()
    }
    return _table(lookups, versions, releases, counts) if len(names) > 1 else None


def _table(
    lookups: Lookups,
    versions: Versions,
    releases: Releases,
    counts: Mapping[Machine, Mapping[int, int]],
) -> WhereItRuns:
    """Return the table of the number of specs of each machine and configuration."""
    table = []
    for version, rows in versions:
        totals = tuple(
            sum(specs.get(row.id, 0) for row in rows) for specs in counts.values()
        )
        ids = {*chain.from_iterable(releases[row.id] for row in rows)}
        if any(totals):
            table.append(VersionRuns(version, totals, lookups.release_names(ids)))
    return WhereItRuns(tuple(counts), tuple(table))


class Lane(NamedTuple):
    """The releases that have one version for one family of targets.

    Attributes:
        runs: the first and last position of consecutive releases, from the oldest on.
        since: the first release that has it, or the day of a snapshot.
        until: the last one; None if that is the newest of all.
        releases: number of releases that have it.
    """

    family: str
    runs: list[list[int]]
    since: str
    until: str | None
    releases: int


Timeline = list[tuple[str, list[Lane]]]
"""The versions of a package, newest first, with the releases that have each."""


def timeline_of(lookups: Lookups, versions: Versions, releases: Releases) -> Timeline:
    """Return the versions with their lanes, by the first release of each lane."""
    oldest_first = [*reversed(lookups.releases.values())]
    positions = {release.id: position for position, release in enumerate(oldest_first)}
    timeline = []
    for version, rows in versions:
        families: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            family = lookups.families[lookups.words["target"][row.key("target")]]
            families[family].update(releases[row.id])
        lanes = [
            _lane(family, sorted(map(positions.__getitem__, ids)), oldest_first)
            for family, ids in families.items()
        ]
        timeline.append(
            (version, sorted(lanes, key=lambda lane: (lane.runs[0][0], lane.family)))
        )
    return timeline


def _lane(family: str, positions: Sequence[int], releases: Sequence[Release]) -> Lane:
    # Prefer snapshots: only they have a date.
    dated = [at for at in positions if releases[at].date] or positions
    first, last = releases[dated[0]], releases[dated[-1]]
    newest = next(
        (release for release in reversed(releases) if release.date), releases[-1]
    )
    is_current = positions[-1] == len(releases) - 1 or last == newest
    until = None if is_current else last.date or last.name
    return Lane(
        family, runs_of(positions), first.date or first.name, until, len(positions)
    )
