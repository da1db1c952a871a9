"""The page of a package: how to install it, where it runs, and its configurations."""

from __future__ import annotations

import json
import sqlite3
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
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.graph import Node, dependent_packages, read_nodes
from spack_cache_db.query.installation import VARIANTS, Install, Installation, install_binary
from spack_cache_db.query.names import KnownName, UnknownNameError, known_name, scope_of
from spack_cache_db.query.packages import PackageData, VariantNote, read_package_data, recipe_links
from spack_cache_db.records import Configuration
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.facets import Choice, choices_of, matches_of
from spack_cache_db.site.pages.filters import Filters, paginated
from spack_cache_db.site.pages.package_versions import (
    Timeline,
    WhereItRuns,
    timeline_of,
    where_installed,
    where_it_runs,
)
from spack_cache_db.site.pages.spec import spec_line

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
WHERE packages.name = :name AND EXISTS (
  SELECT 1 FROM specs WHERE specs.configuration = configurations.id AND specs.is_binary)
ORDER BY targets.family
"""
MOST_OTHER_RELEASES = 24
_OFFERED = {"version": 1, "variant": 3, "compiler": 1, "os": 1, "stack": 1}
"""Filters that are offered above the rows, and how many values of each."""


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


@dataclass(frozen=True, slots=True)
class PackagePage:
    """Everything the page of a package shows.

    Attributes:
        first: the configuration of the first row.
        install: the commands for it.
        releases: the releases that have it.
        offers: filters that are offered above the rows.
        installed: which installation has which version; None if there is only one.
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
    offers: tuple[Offer, ...]
    first: Configuration | None
    install: Install | Installation | None
    releases: tuple[str, ...]
    runs: WhereItRuns
    installed: WhereItRuns | None
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
    def entry(self) -> str:
        """The first row as an entry of a spack.yaml."""
        return f"- {json.dumps(spec_line(self.first))}" if self.first else ""

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
    common = shared_variants(matching)
    window = paginated(len(matching), filters.page, PAGE_ROWS)
    shown = matching[window.rows]
    choices = choices_of(lookups, filters, anywhere, here, releases)
    data = read_package_data(lookups.conn, name)
    notes = data.variant_notes(_variants(shown, choices)) if data is not None else {}
    defaults = {text for text, note in notes.items() if note.is_default}
    rows = table_rows(lookups, shown, common, scope or ANYWHERE, opened=filters.opened)
    first = (
        rows[:1] if window.page == 1 else table_rows(lookups, matching[:1], (), scope or ANYWHERE)
    )
    dag_hash = first[0].hashes[0] if first and first[0].hashes else None
    if defaults:
        rows = tuple(replace(row, variants=_others_first(row.variants, defaults)) for row in rows)
    return PackagePage(
        package=package,
        filters=filters.changed(page=window.page),
        configuration_count=len(matching),
        spec_count=sum(each.spec_count for each in matching),
        choices=choices,
        offers=offers_of(choices, len(matching)),
        first=first[0].configuration if first else None,
        install=install_binary(lookups.conn, name, dag_hash, filters.release) if dag_hash else None,
        releases=first[0].presence.releases[:MOST_OTHER_RELEASES] if first else (),
        runs=where_it_runs(lookups, every, releases, all=filters.all_versions),
        installed=where_installed(lookups, every, releases, all=filters.all_versions),
        common_variants=_others_first(common, defaults),
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
    return tuple(sorted(read_nodes(conn, ids).values(), key=lambda each: each.sort_key))


def shared_variants(matching: Sequence[Counted]) -> tuple[str, ...]:
    """Return the variants that all of several configurations have."""
    if len(matching) < 2:
        return ()
    first, *others = (each.configuration.variants for each in matching)
    shared = set(first).intersection(*others)
    return tuple(each for each in first if each in shared)


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


class Offer(NamedTuple):
    """A filter that is offered: its name, its value, and the configurations that it leaves."""

    name: str
    value: str
    configurations: int


def offers_of(choices: Iterable[Choice], total: int) -> tuple[Offer, ...]:
    """Return some filters that leave fewer than `total` configurations, the best known first."""
    offered = []
    for choice in choices:
        if choice.chosen is not None or choice.name not in _OFFERED:
            continue
        values = [Offer(choice.name, *pair) for pair in choice.values if 0 < pair[1] < total]
        if choice.name == "variant":
            values = [each for each in values if each.value.startswith("+")]
            values.sort(key=lambda each: (_place_of(each.value), -each.configurations))
        elif choice.name != "version":
            values.sort(key=lambda each: -each.configurations)
        offered += values[: _OFFERED[choice.name]]
    return tuple(sorted(offered, key=lambda each: [*_OFFERED].index(each.name)))


def _place_of(variant: str) -> int:
    return VARIANTS.index(variant) if variant in VARIANTS else len(VARIANTS)


def load_badge(lookups: Lookups, name: str) -> str | None:
    """Return the text of a package's badge; None where it has no binary."""
    found = [*select(lookups.conn, NEWEST, name=name)]
    return f"{found[0][0]} on {', '.join(family for _, family in found)}" if found else None
