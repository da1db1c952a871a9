"""Where and when a package has each of its versions: a row for each version.

A row has the days of the snapshots that list the version, and its binaries by processor
or by installation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, groupby
from typing import NamedTuple
from urllib.parse import quote

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.match.candidates import KEY_POSITIONS, Candidate
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.binary import counts_in_scope
from spack_cache_db.query.stored.presence import runs_of
from spack_cache_db.site.charts.records import Cell, Column, Life, Row, Span
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.names_for_people import day_words
from spack_cache_db.site.pages.package_processors import (
    Processor,
    nearest_first,
    nearest_to,
    processors_of,
)
from spack_cache_db.spack.targets import Build, build_runs_on

SHOWN_VERSIONS = 8
"""Versions on a page, unless all are asked for."""
RESULT = "#builds"
"""The part of the page with the chosen build."""
Versions = Sequence[tuple[str, Sequence[Candidate]]]
"""The versions of a package, newest first, with their configurations."""
Releases = Mapping[int, Sequence[int]]
"""The releases that list each configuration, all by id."""


class WhereAndWhen(NamedTuple):
    """The rows and columns of the table of versions, for `charts.grid`.

    Attributes:
        span: the days of all snapshots; None without a snapshot, and then no row has a
            life.
        version_count: the number of versions, of which `rows` may be the first.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    span: Span | None
    version_count: int

    @property
    def is_whole(self) -> bool:
        """Whether all versions are shown."""
        return len(self.rows) == self.version_count


@dataclass(frozen=True, slots=True)
class Table:
    """What the tables of versions of one page are made of.

    Attributes:
        name: the name of the package.
        filters: those of the page.
        versions: the versions, newest first.
        releases: the releases of their configurations.
        proposed: the configuration whose commands are shown; None without one.
        is_whole: whether all versions have a row, not only the first ones.
    """

    lookups: Lookups
    name: str
    filters: Filters
    versions: Versions
    releases: Releases
    proposed: Configuration | None
    is_whole: bool

    def path(self, filters: Filters) -> str:
        """Return the address of the package's page with other filters."""
        return f"/package/{quote(self.name)}{filters.address()}{RESULT}"

    @property
    def shown(self) -> Versions:
        """The versions that have a row: the first, or all if these are asked for."""
        if self.is_whole:
            return self.versions
        return self.versions[:SHOWN_VERSIONS]


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


def builds_of(lookups: Lookups, rows: Iterable[Candidate]) -> Counter[Build]:
    """Return the number of binaries for each platform and target."""
    # Count by ids first, because there are many rows and few builds.
    platform_position = KEY_POSITIONS["platform"]
    target_position = KEY_POSITIONS["target"]
    counts_of_ids: Counter[tuple[int, int]] = Counter()
    for row in rows:
        ids = (row.keys[platform_position], row.keys[target_position])
        counts_of_ids[ids] += row.spec_count
    platforms = lookups.words["platform"]
    targets = lookups.words["target"]
    counts: Counter[Build] = Counter()
    for (platform, target), count in counts_of_ids.items():
        counts[Build(platforms[platform], targets[target])] = count
    return counts


def build_of(lookups: Lookups, row: Candidate) -> Build:
    """Return what a configuration was built for."""
    platform = lookups.words["platform"][row.key("platform")]
    return Build(platform, lookups.words["target"][row.key("target")])


def where_and_when(table: Table, lives: Mapping[str, Life]) -> WhereAndWhen:
    """Return the days of each version, and its binaries by processor.

    With a machine chosen, the processor whose binaries suit it best comes first.
    """
    lookups = table.lookups
    every_row = chain.from_iterable(rows for _, rows in table.versions)
    every_build = builds_of(lookups, every_row)
    has_platforms = len({build.platform for build in every_build}) > 1
    host = table.filters.host
    processors = nearest_first(processors_of(lookups, every_build), host)
    chosen = None if host is None else nearest_to(processors, host)

    # The filters of each column. The machine stays chosen if it is the reason for one,
    # and runs all of its binaries: those of macOS may be for several targets.
    filters_of_columns = []
    for processor in processors:
        filters = processor.filters(with_platform=has_platforms)
        if host is not None and processor == chosen:
            builds = [build for build in every_build if processor.has(build)]
            if all(build_runs_on(build, host) for build in builds):
                filters = replace(filters, host=host)
        filters_of_columns.append(filters)

    rows = []
    for version, candidates in table.shown:
        counts = builds_of(lookups, candidates)
        cells = []
        for processor, filters in zip(processors, filters_of_columns, strict=True):
            count = sum(counts[build] for build in counts if processor.has(build))
            path = table.path(replace(filters, version=version))
            is_chosen = _is_proposed(table.proposed, version, processor)
            cells.append(Cell(count, path, is_chosen))
        path = table.path(Filters(version=version, host=host))
        row = Row(
            version,
            path if sum(counts.values()) else None,
            lives.get(version),
            tuple(cells),
        )
        rows.append(row)
    columns = [
        Column(
            processor.name,
            processor.note,
            processor.short,
            is_chosen=processor == chosen,
        )
        for processor in processors
    ]
    span = _span(lookups) if lives else None
    return WhereAndWhen(tuple(columns), tuple(rows), span, len(table.versions))


def _is_proposed(
    proposed: Configuration | None, version: str, processor: Processor
) -> bool:
    """Return whether a cell has the build whose commands are shown."""
    if proposed is None or proposed.version != version:
        return False
    return processor.has(Build(proposed.platform, proposed.target))


def where_installed(table: Table) -> WhereAndWhen | None:
    """Return the number of specs by version and installation; None without two
    installations.
    """
    lookups = table.lookups
    trees = lookups.trees()
    if len(trees) < 2:
        return None
    names = [lookups.releases[tree].name for tree in trees]
    counts = []
    for tree, name in zip(trees, names, strict=True):
        scope = (Condition("release", name, tree),)
        counts.append(counts_in_scope(lookups, table.releases, scope))

    rows = []
    version_count = 0
    for version, candidates in table.versions:
        cells = []
        for name, specs in zip(names, counts, strict=True):
            count = sum(specs.get(row.id, 0) for row in candidates)
            path = table.path(Filters(version=version, release=name))
            cells.append(Cell(count, path))
        # A version that no installation has is left out.
        if any(cell.count for cell in cells):
            version_count += 1
            path = table.path(Filters(version=version))
            rows.append(Row(version, path, cells=tuple(cells)))
    if not table.is_whole:
        rows = rows[:SHOWN_VERSIONS]
    columns = tuple(Column(name) for name in names)
    return WhereAndWhen(columns, tuple(rows), None, version_count)


def lives_of(
    lookups: Lookups, versions: Versions, releases: Releases
) -> dict[str, Life]:
    """Return the days of the snapshots that list each version; versions that no
    snapshot lists have none.
    """
    days = _snapshot_days(lookups)
    positions = {day: position for position, day in enumerate(days)}
    lives = {}
    for version, rows in versions:
        ids = set(chain.from_iterable(releases[row.id] for row in rows))
        dates = {lookups.releases[key].date for key in ids}
        listed = sorted(positions[date.fromisoformat(day)] for day in dates if day)
        if listed:
            lives[version] = _life(listed, days)
    return lives


def _life(listed: Sequence[int], days: Sequence[date]) -> Life:
    """Return the life of a version that snapshots list, given by their positions."""
    runs = tuple((days[first], days[last]) for first, last in runs_of(listed))
    first_day = days[listed[0]]
    last_day = days[listed[-1]]
    newest = days[-1]
    if last_day == newest:
        return Life(runs, f"since {_short_day(first_day, newest)}")
    return Life(runs, f"until {_short_day(last_day, newest)}", is_gone=True)


def _short_day(day: date, newest: date) -> str:
    """Return `4 Oct` in the year of the newest snapshot, and else `4 Oct 2024`."""
    words = day_words(day)
    return words.removesuffix(f" {newest.year}") if day.year == newest.year else words


def _span(lookups: Lookups) -> Span:
    """Return the days from the first snapshot to the newest one."""
    days = _snapshot_days(lookups)
    return Span(days[0], days[-1])


def _snapshot_days(lookups: Lookups) -> list[date]:
    """Return the days of all snapshots, each once, the oldest first."""
    days = {release.date for release in lookups.releases.values() if release.date}
    return sorted(date.fromisoformat(day) for day in days)
