"""Since when a package has each version, by family of targets and release."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from spack_cache_db.query.connection import Lookups, Release, select

MOST_VERSIONS = 8

PRESENT = """
SELECT configurations.version, configurations.target, json_group_array(DISTINCT listed.release)
FROM configurations CROSS JOIN configuration_releases AS listed
  ON listed.configuration = configurations.id
WHERE configurations.package = :package
GROUP BY configurations.version, configurations.target
"""


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


def load_timeline(
    conn: sqlite3.Connection, lookups: Lookups, package: int, *, every_version: bool
) -> Timeline:
    """Return since when each version of a package, given its id, is there."""
    oldest_first = [*reversed(lookups.releases.values())]
    place = {each.id: at for at, each in enumerate(oldest_first)}
    found: dict[int, dict[str, set[int]]] = {}
    for version, target, releases in select(conn, PRESENT, package=package):
        family = lookups.families[lookups.words["target"][target]]
        places = found.setdefault(version, {}).setdefault(family, set())
        places.update(map(place.__getitem__, json.loads(releases)))
    # The ids of a package's versions are in Spack's order.
    shown = sorted(found, reverse=True)[: None if every_version else MOST_VERSIONS]
    lookups.learn(conn, {*shown}, set())
    names = lookups.words["version"]
    versions = (_version(names[key], found[key], oldest_first) for key in shown)
    return Timeline(tuple(each.name for each in oldest_first), tuple(versions), len(found))


def _version(
    name: str, families: Mapping[str, set[int]], releases: Sequence[Release]
) -> VersionTimeline:
    lanes = [_lane(family, sorted(places), releases) for family, places in families.items()]
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
