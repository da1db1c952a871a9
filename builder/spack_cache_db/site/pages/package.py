"""The page of a package: how to install it, where it runs, and its configurations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.query.conditions import COLUMNS, Condition, Conditions, Word
from spack_cache_db.query.configurations import (
    Counted,
    configurations_of_package,
    count_by_release,
    count_by_stack,
    counts_in_scope,
    releases_of,
    specs_of_configurations,
)
from spack_cache_db.query.database import Lookups, Release, Stack
from spack_cache_db.query.graph import Node, dependent_packages, read_nodes
from spack_cache_db.query.installation import Commands, install_binary
from spack_cache_db.query.names import KnownName, UnknownNameError, known_name, scope_of
from spack_cache_db.query.packages import (
    PackageData,
    PackageTotals,
    VariantNote,
    package_totals,
    read_package,
    recipe_links,
)
from spack_cache_db.query.records import explicitly
from spack_cache_db.query.selection import configuration_ids
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.filters import (
    LABELS,
    Filters,
    NameCounts,
    Pagination,
    hosts_of,
    page_number,
    paginated,
    value_of,
)
from spack_cache_db.site.pages.package_versions import (
    Timeline,
    WhereItRuns,
    timeline_of,
    where_installed,
    where_it_runs,
)
from spack_cache_db.site.pages.spec import spec_line
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import runs_on

PAGE_ROWS = 25
MOST_VERSIONS = 8
"""Versions in the timeline by default."""

MOST_KNOWN = 100
VARIANTS = ("+mpi", "+cuda", "+shared")
"""Well-known variants, the best known first."""
_OFFERED = {"version": 1, "variant": 3, "compiler": 1, "os": 1, "stack": 1}
"""Filters that are offered above the rows, and the number of values of each."""


@dataclass(frozen=True, slots=True)
class PackagePage:
    """The content of the page of a package.

    Attributes:
        first: the first row of all pages, which `install` is for.
        installed: versions by installation; None if there is only one installation.
        known: specs of a package without a binary that other specs depend on.
        is_explicit: whether a spec of it was installed explicitly.
        notes: Spack's notes on the variants of the rows and the filters.
    """

    package: PackageTotals
    filters: Filters
    configuration_count: int
    spec_count: int
    choices: tuple[Choice, ...]
    first: ConfigurationRow | None
    install: Commands | None
    runs: WhereItRuns
    installed: WhereItRuns | None
    common_variants: tuple[str, ...]
    rows: tuple[ConfigurationRow, ...]
    window: Pagination
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
        return f"- {json.dumps(spec_line(self.first.configuration))}" if self.first else ""

    @property
    def codes(self) -> Mapping[str, Markup]:
        """The variants with notes as HTML: escaped once, not once for each row."""
        code = Markup('<code title="{}">{}</code>')
        return {text: code.format(note.hint, text) for text, note in self.notes.items()}

    @property
    def offers(self) -> list[tuple[str, str, int]]:
        """Filters that leave fewer configurations: names, values, and how many they leave."""
        total, offers = self.configuration_count, []
        by_name = {choice.name: choice.values for choice in self.choices if choice.chosen is None}
        for name, most in _OFFERED.items():
            values = [item for item in by_name.get(name, ()) if 0 < item[1] < total]
            if name == "variant":
                values = [item for item in values if item[0].startswith("+")]
                values.sort(key=lambda item: ([*VARIANTS, item[0]].index(item[0]), -item[1]))
            elif name != "version":
                values.sort(key=lambda item: -item[1])
            offers += [(name, *item) for item in values[:most]]
        return offers


def load_package(lookups: Lookups, name: str, filters: Filters) -> PackagePage | None:
    """Return the page of the package called `name`; None if there is no such package."""
    conn, package = lookups.conn, package_totals(lookups.conn, name)
    if package is None:
        return None
    every = configurations_of_package(lookups, package.id)
    ids = [row.id for row in every]
    releases = releases_of(conn, ids)
    anywhere = matches_of(every, filters.conditions())
    scope = _scope(lookups, filters)
    in_scope = anywhere.counted(lambda rows: _counted(lookups, scope, rows))
    asks = (Condition("package", name, Word(name)), *filters.conditions())
    fitting = {row.id: row for row in in_scope.fitting}
    order = configuration_ids(lookups, asks, every=True)
    matching = [fitting[key] for key in order if key in fitting]
    common = shared_variants(matching)
    window = paginated(len(matching), page_number(filters.page), PAGE_ROWS)
    page_rows = matching[window.rows]
    choices = choices_of(lookups, filters, anywhere, in_scope, releases)
    data = read_package(conn, name)
    if data is not None and data.dependent_count is None:
        data = None
    notes = data.variant_notes(_variants(page_rows, choices)) if data is not None else {}
    defaults = {text for text, note in notes.items() if note.is_default}
    rows = table_rows(lookups, page_rows, common, scope or (), opened=filters.open)
    first_rows = rows
    if window.page > 1:
        first_rows = table_rows(lookups, matching[:1], (), scope or ())
    first = first_rows[0] if first_rows else None
    dag_hash = first.hash if first else None
    is_whole = filters.versions == "all"
    return PackagePage(
        package=package,
        filters=filters,
        configuration_count=len(matching),
        spec_count=sum(row.spec_count for row in matching),
        choices=choices,
        first=first,
        install=install_binary(conn, name, dag_hash, filters.release) if dag_hash else None,
        runs=where_it_runs(lookups, every, releases),
        installed=where_installed(lookups, every, releases),
        common_variants=_others_first(common, defaults),
        rows=tuple(replace(row, variants=_others_first(row.variants, defaults)) for row in rows),
        window=window,
        is_compiler=name in lookups.compilers,
        recipes=recipe_links(conn, name),
        needed_by=tuple(dependent_packages(conn, package.id)),
        known=() if package.release_count else _known(lookups, every),
        known_name=known_name(lookups, name),
        changes=latest_changes(lookups, package=name),
        timeline=timeline_of(lookups, every, releases, None if is_whole else MOST_VERSIONS),
        data=data,
        is_explicit=bool(lookups.trees() and counts_in_scope(lookups, ids, explicitly(lookups))),
        notes=notes,
    )


def _variants(configurations: Iterable[Counted], choices: Iterable[Choice]) -> set[str]:
    """Return the variants in the rows and the filters of a page."""
    rows = {text for row in configurations for text in row.configuration.variants}
    offered = (choice.values for choice in choices if choice.name == "variant")
    return rows.union(text for values in offered for text, _ in values)


def _others_first(variants: tuple[str, ...], defaults: Set[str]) -> tuple[str, ...]:
    """Return variants sorted: those that are not defaults first."""
    return tuple(sorted(variants, key=defaults.__contains__))


def _known(lookups: Lookups, every: Iterable[Counted]) -> tuple[Node, ...]:
    specs = specs_of_configurations(lookups.conn, [row.id for row in every])
    nodes = read_nodes(lookups.conn, sorted(specs)[:MOST_KNOWN])
    return tuple(sorted(nodes.values(), key=lambda node: node.sort_key))


def shared_variants(matching: Sequence[Counted]) -> tuple[str, ...]:
    """Return the variants that all configurations share; none for a single one."""
    if len(matching) < 2:
        return ()
    first, *more = (row.configuration.variants for row in matching)
    shared = set(first).intersection(*more)
    return tuple(text for text in first if text in shared)


def _scope(lookups: Lookups, filters: Filters) -> Conditions | None:
    """Return the chosen release and stack; None if the database has no such name."""
    try:
        return scope_of(lookups, release=filters.release, stack=filters.stack)
    except UnknownNameError:
        return None


def _counted(lookups: Lookups, scope: Conditions | None, fitting: list[Counted]) -> list[Counted]:
    """Return the configurations with a spec in the scope, and their counts there."""
    if scope is None or not fitting:
        return []
    if not scope:
        return [row for row in fitting if row.spec_count]
    counts = counts_in_scope(lookups, [row.id for row in fitting], scope)
    # `_replace` would be several times slower, and some packages have thousands of rows.
    return [
        Counted(row.id, row.configuration, row.position, counts[row.id])
        for row in fitting
        if row.id in counts
    ]


class Choice(NamedTuple):
    """A filter, its value if it has one, and for each possible value the configurations left."""

    name: str
    chosen: str | None
    values: NameCounts

    @property
    def label(self) -> str:
        """The label: for a chosen variant, the variant's name."""
        is_variant = self.name == "variant" and self.chosen is not None
        return _variant_name(str(self.chosen)) if is_variant else LABELS[self.name]


class Matches(NamedTuple):
    """Configurations that match all filters, and those that fail one, by its name and value.

    Release and stack are ignored.
    """

    fitting: list[Counted]
    lacking: dict[tuple[str, str], list[Counted]]

    def counted(self, counts: Callable[[list[Counted]], list[Counted]]) -> Matches:
        """Return the configurations that `counts` keeps, with its numbers of specs."""
        lacking = {key: counts(rows) for key, rows in self.lacking.items()}
        return Matches(counts(self.fitting), lacking)


def matches_of(every: Iterable[Counted], conditions: Conditions) -> Matches:
    """Return the configurations that satisfy all conditions, and those that fail one."""
    tests = [(condition, COLUMNS[condition.kind]) for condition in conditions]
    matches = Matches([], {(condition.kind, condition.text): [] for condition in conditions})
    for row in every:
        words = row.configuration
        failed = [test for test, column in tests if not test.holds(getattr(words, column))]
        if not failed:
            matches.fitting.append(row)
        elif len(failed) == 1:
            matches.lacking[failed[0].kind, failed[0].text].append(row)
    return matches


def choices_of(
    lookups: Lookups,
    filters: Filters,
    anywhere: Matches,
    in_place: Matches,
    releases: Mapping[int, Iterable[int]],
) -> tuple[Choice, ...]:
    """Return the values that each filter offers while the others keep their values.

    `anywhere` are all configurations of the package, `in_place` those in the chosen release and
    stack; `releases` has the ids of the releases of each configuration.
    """
    fitting = in_place.fitting
    shown_in = {row.id: releases[row.id] for row in anywhere.fitting}
    choices = [
        Choice("release", filters.release, _releases(lookups, filters.stack, shown_in)),
        Choice("stack", filters.stack, _stacks(lookups, filters.release, shown_in)),
    ]
    for name in ("host", "version", "compiler", "os", "platform", "target"):
        chosen = getattr(filters, name)
        rows = fitting + in_place.lacking.get((name, chosen or ""), [])
        choices.append(Choice(name, chosen, _values(name, rows)))
    for text in filters.variant:
        rows = fitting + in_place.lacking["variant", text]
        same = [(value, count) for value, count in _variant_counts(rows) if _is_same(value, text)]
        choices.append(Choice("variant", text, tuple(same)))
    # Variants that all configurations have are no choice.
    varying = ((text, count) for text, count in _variant_counts(fitting) if count < len(fitting))
    choices.append(Choice("variant", None, tuple(varying)))
    # A filter with a single value is useful only if nothing matches the others.
    return tuple(
        _with_chosen(choice, len(fitting))
        for choice in choices
        if choice.chosen is not None
        or len(choice.values) > (choice.name != "variant" and bool(fitting))
    )


def _with_chosen(choice: Choice, count: int) -> Choice:
    """Return a choice whose values include the chosen one."""
    if choice.chosen is None or choice.chosen in dict(choice.values):
        return choice
    return choice._replace(values=((choice.chosen, count), *choice.values))


def _releases(
    lookups: Lookups, name: str | None, listings: Mapping[int, Iterable[int]]
) -> NameCounts:
    """Return the releases that list these configurations in a stack, or anywhere."""
    if name is None:
        return _named(Counter(chain.from_iterable(listings.values())).items(), lookups.releases)
    stack = lookups.stack(name)
    counts = count_by_release(lookups.conn, listings, stack.id) if stack else ()
    return _named(counts, lookups.releases)


def _stacks(lookups: Lookups, name: str | None, listings: Iterable[int]) -> NameCounts:
    """Return the stacks that list these configurations in a release, or anywhere."""
    release = lookups.release(name)
    if name is not None and release is None:
        return ()
    counts = count_by_stack(lookups.conn, listings, release.id if release else None)
    return _named(counts, lookups.stacks)


def _values(name: str, rows: Sequence[Counted]) -> NameCounts:
    """Return the values of a filter that configurations have, in the order of a form."""
    if name == "host":
        targets = Counter(row.configuration.target for row in rows)
        return tuple(
            (host, sum(count for target, count in targets.items() if runs_on(target, host)))
            for hosts in hosts_of(targets).values()
            for host in hosts
        )
    if name == "version":
        positions = {row.configuration.version: -row.position for row in rows}
        counts = Counter(row.configuration.version for row in rows)
        return tuple(
            (version, counts[version]) for version in sorted(counts, key=positions.__getitem__)
        )
    words = Counter(value_of(name, getattr(row.configuration, name)) for row in rows)
    return tuple(sorted(words.items()))


def _variant_counts(rows: Iterable[Counted]) -> NameCounts:
    counts = Counter(text for row in rows for text in row.configuration.variants)
    return tuple(sorted(counts.items()))


def _is_same(text: str, other: str) -> bool:
    return _variant_name(text) == _variant_name(other)


def _variant_name(text: str) -> str:
    """Return the name of a variant; the text if Spack could not read it."""
    variant = readable_variant(text)
    return text if variant is None else variant.name


def _named(
    counts: Iterable[tuple[int, int]], records: Mapping[int, Release] | Mapping[int, Stack]
) -> NameCounts:
    """Return counts by the names of releases or stacks, in the database's order."""
    totals: Counter[int] = Counter()
    for key, count in counts:
        totals[key] += count
    return tuple((record.name, totals[key]) for key, record in records.items() if key in totals)
