"""The versions of a package by machine, and by release."""

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

PLATFORM_LABELS = {"darwin": "macOS"}
"""The names of platforms on pages, if they differ; linux is not named at all."""
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


def versions_of(
    lookups: Lookups, rows: Iterable[Candidate], releases: Releases
) -> Versions:
    """Return the versions of the configurations that a release lists."""

    def version(row: Candidate) -> int:
        return row.key("version")

    listed = [row for row in rows if releases[row.id]]
    # Spack's order of versions; the newest first.
    listed.sort(key=lambda row: lookups.positions[version(row)], reverse=True)
    names = lookups.words["version"]
    return [(names[key], list(group)) for key, group in groupby(listed, key=version)]


def where_it_runs(
    lookups: Lookups, versions: Versions, releases: Releases
) -> WhereItRuns:
    """Return the number of binaries by version and machine; machines with most come
    first.
    """
    # For each platform and family of targets: the binaries of each configuration.
    platforms = lookups.words["platform"]
    counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for row in sorted(chain.from_iterable(rows for _, rows in versions)):
        # The mirror may have lost all binaries of a configuration.
        if row.spec_count:
            platform = platforms[row.key("platform")]
            counts[platform, _family_of(lookups, row)][row.id] = row.spec_count

    # The column of each machine, with the filters that lead to its binaries.
    has_one_platform = len({platform for platform, _ in counts}) <= 1
    most_first = sorted(counts, key=lambda machine: -sum(counts[machine].values()))
    machines = {}
    for platform, family in most_first:
        name = family
        if platform != "linux":
            name = f"{PLATFORM_LABELS.get(platform, platform)} {family}"
        filters = Filters(
            target=f"{family}:", platform=None if has_one_platform else platform
        )
        machines[Machine(name, filters)] = counts[platform, family]
    return _table(lookups, versions, releases, machines)


def where_installed(
    lookups: Lookups, versions: Versions, releases: Releases
) -> WhereItRuns | None:
    """Return the number of specs by version and installation; None without two
    installations.
    """
    trees = lookups.trees()
    if len(trees) < 2:
        return None
    counts = {}
    for tree in trees:
        name = lookups.releases[tree].name
        scope = (Condition("release", name, tree),)
        machine = Machine(name, Filters(release=name))
        counts[machine] = counts_in_scope(lookups, releases, scope)
    return _table(lookups, versions, releases, counts)


def _table(
    lookups: Lookups,
    versions: Versions,
    releases: Releases,
    counts: Mapping[Machine, Mapping[int, int]],
) -> WhereItRuns:
    """Return the table of the number of specs of each machine and configuration."""
    table = []
    for version, rows in versions:
        totals = []
        for specs in counts.values():
            totals.append(sum(specs.get(row.id, 0) for row in rows))
        # A version that no machine has is left out.
        if any(totals):
            ids = set(chain.from_iterable(releases[row.id] for row in rows))
            names = lookups.release_names(ids)
            table.append(VersionRuns(version, tuple(totals), names))
    return WhereItRuns(tuple(counts), tuple(table))


def timeline_of(lookups: Lookups, versions: Versions, releases: Releases) -> Timeline:
    """Return the versions with their lanes, by the first release of each lane."""
    oldest_first = list(reversed(lookups.releases.values()))
    positions = {release.id: position for position, release in enumerate(oldest_first)}
    timeline = []
    for version, rows in versions:
        # For each family of targets: the positions of the releases that list it.
        families: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            family = _family_of(lookups, row)
            families[family].update(positions[key] for key in releases[row.id])
        lanes = []
        for family, in_releases in families.items():
            lanes.append(_lane(family, sorted(in_releases), oldest_first))
        lanes.sort(key=lambda lane: (lane.runs[0][0], lane.family))
        timeline.append((version, lanes))
    return timeline


def _family_of(lookups: Lookups, row: Candidate) -> str:
    """Return the family of a configuration's target, such as `x86_64`."""
    target = lookups.words["target"][row.key("target")]
    return lookups.families[target]


def _lane(family: str, positions: Sequence[int], releases: Sequence[Release]) -> Lane:
    """Return the lane of the releases at some positions, from the oldest release on."""
    # Prefer snapshots: only they have a date.
    dated = [position for position in positions if releases[position].date]
    first = releases[(dated or positions)[0]]
    last = releases[(dated or positions)[-1]]

    # The lane goes on if it has the newest release, or the newest snapshot.
    snapshots = [release for release in releases if release.date]
    newest = snapshots[-1] if snapshots else releases[-1]
    has_newest_release = positions[-1] == len(releases) - 1
    is_current = has_newest_release or last == newest
    return Lane(
        family=family,
        runs=runs_of(positions),
        since=first.date or first.name,
        until=None if is_current else last.date or last.name,
        releases=len(positions),
    )
