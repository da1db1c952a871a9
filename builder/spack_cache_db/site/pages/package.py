"""The page of one package: its configurations, filters with counts, a grid, and a timeline."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.conditions import ANYWHERE, Condition, Conditions, Word
from spack_cache_db.query.configurations import (
    Counted,
    configuration_ids,
    configurations_of_package,
    counts_in_scope,
    releases_of,
)
from spack_cache_db.query.database import Lookups, Release, select
from spack_cache_db.query.graph import Node, dependent_packages, read_nodes
from spack_cache_db.query.names import KnownName, UnknownNameError, known_name, scope_of
from spack_cache_db.query.packages import PackageData, VariantNote, read_package_data, recipe_links
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.facets import Choice, choices_of, matches_of
from spack_cache_db.site.pages.filters import Filters, paginated

PAGE_ROWS = 25

PACKAGE = """
SELECT id, name, spec_count, configuration_count, release_count, newest_version,
  first_seen, last_seen
FROM packages WHERE name = :name
"""
EXPLICIT = "SELECT EXISTS (SELECT 1 FROM installations WHERE package = :name AND explicit = 1)"
KNOWN = """
SELECT specs.id FROM configurations JOIN specs ON specs.configuration = configurations.id
WHERE package = :package ORDER BY specs.id LIMIT :limit
"""
MOST_KNOWN = 100

NEWEST = """
SELECT DISTINCT packages.newest_version, targets.family
FROM packages
JOIN versions ON versions.package = packages.id AND versions.name = packages.newest_version
JOIN configurations ON configurations.version = versions.id AND configurations.spec_count > 0
JOIN targets ON targets.id = configurations.target
WHERE packages.name = :name ORDER BY targets.family
"""
MOST_VERSIONS = 8


@dataclass(frozen=True, slots=True)
class Package:
    """One package and its totals."""

    id: int
    name: str
    spec_count: int
    configuration_count: int
    release_count: int
    newest_version: str | None
    first_seen: str | None
    last_seen: str | None


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


@dataclass(frozen=True, slots=True)
class PackagePage:
    """Everything the page of a package shows.

    Attributes:
        needed_by: packages that need it themselves, as far as the file knows.
        known: of a package without a binary the specs that others depend on.
        known_name: what is known of its name.
        is_explicit: whether somebody asked to have a spec of it installed.
        notes: what Spack says of the variants of the rows and the filters.
    """

    package: Package
    filters: Filters
    configuration_count: int
    spec_count: int
    choices: tuple[Choice, ...]
    grid: Grid
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    rows: tuple[ConfigurationRow, ...]
    page_count: int
    is_compiler: bool
    recipes: Mapping[str, str]
    needed_by: tuple[str, ...]
    known: tuple[Node, ...]
    known_name: KnownName
    changes: tuple[Sides, ...]
    timeline: Timeline
    data: PackageData | None
    is_explicit: bool
    notes: Mapping[str, VariantNote]

    @property
    def codes(self) -> Mapping[str, Markup]:
        """The variants with notes as rows show them: escaped once, not once for each row."""
        code = Markup('<code title="{}">{}</code>')
        return {text: code.format(note.hint, text) for text, note in self.notes.items()}


def load_package(lookups: Lookups, name: str, filters: Filters) -> PackagePage | None:
    """Return the page of the package called `name`; None if there is no such package."""
    found = next(select(lookups.conn, PACKAGE, name=name), None)
    if found is None:
        return None
    package = Package(*found)
    every = configurations_of_package(lookups, package.id)
    releases = releases_of(lookups.conn, [each.id for each in every])
    anywhere = matches_of(every, filters.conditions())
    scope = _scope(lookups, filters)
    here = anywhere.counted(lambda some: _counted(lookups, scope, some))
    asks = (Condition("package", name, Word(name)), *filters.conditions())
    fitting = {each.id: each for each in here.fitting}
    order = configuration_ids(lookups, asks, every=True)
    matching = [fitting[key] for key in order if key in fitting]
    common, common_variants = ((), ()) if filters.common else folded(matching)
    window = paginated(len(matching), filters.page, PAGE_ROWS)
    shown = matching[window.rows]
    choices = choices_of(lookups, filters, anywhere, here, releases)
    data = read_package_data(lookups.conn, name)
    notes = data.variant_notes(_variants(shown, choices)) if data is not None else {}
    defaults = {text for text, note in notes.items() if note.is_default}
    hidden = defaults if filters.hides_defaults else set()
    rows = table_rows(
        lookups, shown, hidden.union(common_variants), scope or ANYWHERE, opened=filters.opened
    )
    if defaults:
        rows = tuple(replace(row, variants=_others_first(row.variants, defaults)) for row in rows)
    return PackagePage(
        package=package,
        filters=filters.changed(page=window.page),
        configuration_count=len(matching),
        spec_count=sum(each.spec_count for each in matching),
        choices=choices,
        grid=grid_of(matching, filters.all_versions),
        common=common,
        common_variants=tuple(
            each for each in _others_first(common_variants, defaults) if each not in hidden
        ),
        rows=rows,
        page_count=window.page_count,
        is_compiler=name in lookups.compilers,
        recipes=recipe_links(lookups.conn, name),
        needed_by=tuple(dependent_packages(lookups.conn, package.id)),
        known=() if package.release_count else _known(lookups.conn, package),
        known_name=known_name(lookups, name),
        changes=latest_changes(lookups, package=name),
        timeline=timeline_of(lookups, every, releases, every_version=filters.all_versions),
        data=data,
        is_explicit=bool(lookups.trees() and next(select(lookups.conn, EXPLICIT, name=name))[0]),
        notes=notes,
    )


def _variants(shown: Iterable[Counted], choices: Iterable[Choice]) -> set[str]:
    """Return the variants that a page has in its rows and its filters."""
    rows = {text for each in shown for text in each.configuration.variants}
    offered = (each.values for each in choices if each.name == "variant")
    return rows.union(text for values in offered for text, _ in values)


def _others_first(variants: tuple[str, ...], defaults: Set[str]) -> tuple[str, ...]:
    """Return variants with what is no default before what is."""
    return tuple(sorted(variants, key=defaults.__contains__)) if defaults else variants


def _known(conn: sqlite3.Connection, package: Package) -> tuple[Node, ...]:
    ids = [row[0] for row in select(conn, KNOWN, package=package.id, limit=MOST_KNOWN)]
    return tuple(sorted(read_nodes(conn, ids).values(), key=lambda each: each.place))


def folded(
    matching: Sequence[Counted],
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the columns and the variants whose value is the same in all of several rows."""
    if len(matching) < 2:
        return (), ()
    configurations = [each.configuration for each in matching]
    columns = []
    for name in ("version", "compiler", "os", "platform", "target"):
        values = {getattr(each, name) for each in configurations}
        if len(values) == 1:
            columns.append((name, str(values.pop())))
    first, *others = configurations
    shared = set(first.variants).intersection(*(each.variants for each in others))
    return tuple(columns), tuple(each for each in first.variants if each in shared)


def _scope(lookups: Lookups, filters: Filters) -> Conditions | None:
    """Return the chosen release and stack; None if the file has no such."""
    try:
        return scope_of(lookups, filters.release, filters.stack)
    except UnknownNameError:
        return None


def _counted(lookups: Lookups, scope: Conditions | None, fitting: list[Counted]) -> list[Counted]:
    """Return the configurations of which a spec counts there, and how many do."""
    if scope is None or not fitting:
        return []
    if scope == ANYWHERE:
        return [each for each in fitting if each.spec_count]
    counts = counts_in_scope(lookups, [each.id for each in fitting], scope)
    # Spelled out: `_replace` takes several times as long, and some packages have thousands.
    return [
        Counted(each.id, each.configuration, each.position, counts[each.id])
        for each in fitting
        if each.id in counts
    ]


GRID_ROWS = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """Counts of specs by version and target; `None` where there are none."""

    targets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    version_count: int


def grid_of(matching: Sequence[Counted], every_version: bool) -> Grid:
    """Return how many of the matching specs there are by version and target."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in matching:
        counts[each.configuration.version, each.configuration.target] += each.spec_count
    newest_first = sorted(matching, key=lambda each: -each.position)
    versions = list(dict.fromkeys(each.configuration.version for each in newest_first))
    targets = tuple(sorted({each.configuration.target for each in matching}))
    return Grid(
        targets=targets,
        rows=tuple(
            (version, tuple(counts.get((version, target)) for target in targets))
            for version in (versions if every_version else versions[:GRID_ROWS])
        ),
        version_count=len(versions),
    )


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


def load_badge(lookups: Lookups, name: str) -> str | None:
    """Return the text of a package's badge; None where it has no binary."""
    found = [*select(lookups.conn, NEWEST, name=name)]
    return f"{found[0][0]} on {', '.join(family for _, family in found)}" if found else None
