"""`/package/<name>`: how to install a package, where it runs, and its configurations.

Also `/package/<name>.json`, and the badges of packages and releases.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    Word,
)
from spack_cache_db.query.match.candidates import (
    KEY_POSITIONS,
    Candidate,
    Candidates,
)
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.match.misses import Misses, misses_of
from spack_cache_db.query.match.selection import ResultSet, counted_part
from spack_cache_db.query.names.known import KnownName, known_name
from spack_cache_db.query.names.scope import explicitly, unknown_name
from spack_cache_db.query.open.lookups import Lookups, Release, Stack
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.binary import counts_in_scope, specs_of_configurations
from spack_cache_db.query.stored.configurations import shared_variants
from spack_cache_db.query.stored.gone import Gone
from spack_cache_db.query.stored.graph import Node, dependent_packages, read_nodes
from spack_cache_db.query.stored.listings import stored_spec
from spack_cache_db.query.stored.package_data import (
    PackageData,
    PackageTotals,
    VariantNote,
    listed_versions,
    package_totals,
    read_package,
    recipe_links,
)
from spack_cache_db.query.stored.presence import count_by_place, releases_of
from spack_cache_db.site.data_links import package_links
from spack_cache_db.site.filters import (
    LABELS,
    PLACES,
    Filters,
    Pagination,
    paginated,
    place_condition,
    value_of,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.browser_builds import BrowserBuilds, browser_builds
from spack_cache_db.site.pages.changes import latest_changes
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.pages.package_builds import (
    BuildTable,
    Choice,
    columns_of,
    menus_of,
)
from spack_cache_db.site.pages.package_choice import Chooser, ChooserInput, chooser_of
from spack_cache_db.site.pages.package_commands import Tab, tabs_of
from spack_cache_db.site.pages.package_versions import (
    Table,
    WhereAndWhen,
    lives_of,
    versions_of,
    where_and_when,
    where_installed,
)
from spack_cache_db.site.pages.proposed import ProposedBuild, proposed_build
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.words import vocabulary_of
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import Build, build_runs_on, hosts_of

CONFIGURATION_ROWS = 25
MOST_KNOWN = 100


@dataclass(frozen=True, slots=True)
class PackagePage:
    """The content of the page of a package.

    Attributes:
        unknown: which name in the filters the database does not know, if nothing
            matches; empty for none.
        gone: the binaries that the mirror has lost and that match the filters. Those of
            a chosen release are in the rows.
        proposed: the build for which the page has commands.
        chooser: the choices that lead to another build.
        versions: where and when each version is.
        installed: versions by installation; None if there is only one installation.
        known: specs of a package without a binary that other specs depend on.
        is_explicit: whether a spec of it was installed explicitly.
        notes: Spack's notes on its variants.
        builds: all builds as data for a script; None on a server.
    """

    package: PackageTotals
    filters: Filters
    configuration_count: int
    spec_count: int
    unknown: str
    gone: Gone | None
    choices: tuple[Choice, ...]
    proposed: ProposedBuild | None
    chooser: Chooser
    versions: WhereAndWhen
    installed: WhereAndWhen | None
    common_variants: tuple[str, ...]
    table: BuildTable
    window: Pagination
    is_compiler: bool
    recipes: Mapping[str, str]
    needed_by: tuple[str, ...]
    known: Sequence[Node]
    known_name: KnownName
    changes: tuple[Sides, ...]
    data: PackageData
    is_explicit: bool
    notes: Mapping[str, VariantNote]
    builds: BrowserBuilds | None

    @property
    def rows(self) -> tuple[ConfigurationRow, ...]:
        """The rows of this page of the table."""
        return self.table.rows

    @property
    def install(self) -> Commands | None:
        """The commands that install or load the proposed build."""
        return None if self.proposed is None else self.proposed.commands

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """The commands of the proposed build in several forms."""
        if self.proposed is None:
            return ()
        build = self.proposed
        return tabs_of(build.commands, build.proposal.configuration)

    @property
    def menus(self) -> tuple[Choice, ...]:
        """The filters above the rows."""
        return menus_of(self.choices)

    @property
    def is_up_to_date(self) -> bool:
        """Whether Spack has no newer version than the newest binary."""
        status = self.data.status
        return bool(status.latest_version) and status.versions_behind == 0


def package(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>`."""
    filters = Filters.parse(request.pairs)
    is_whole = site.settings.is_static
    page = load_package(site.lookups, package, filters, is_whole=is_whole)
    if page is None:
        return _package_without_binary(site, request, package)
    return site.page(
        request,
        "package.html",
        page=page,
        links=package_links(
            site.settings.route,
            package,
            filters,
            listed_versions(site.conn, package),
        ),
        feed=Topic(package=package).feed,
    )


def _package_without_binary(
    site: Site, request: PageRequest, package: str
) -> PageResponse:
    """Return the page of a package that only Spack's package data know."""
    package_data = read_package(site.conn, package)
    if package_data is None:
        return missing(site, request, "package", package)
    return site.page(
        request,
        "unbuilt.html",
        data=package_data,
        known_name=known_name(site.lookups, package),
        shell_quoted=shlex.quote,
    )


def package_json(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>.json`: the number of binaries, and Spack's data about the
    package.
    """
    package_data = read_package(site.conn, package)
    if package_data is None:
        return refused(known_name(site.lookups, package).sentence, "json", 404)
    return data(json_text(package_data.as_dict()), "json")


def load_package(
    lookups: Lookups, name: str, filters: Filters, *, is_whole: bool = False
) -> PackagePage | None:
    """Return the page of the package called `name`; None if there is no such
    package.

    A page that is whole has all versions and all rows, because it has no other pages.
    """
    conn = lookups.conn
    package = package_totals(conn, name)
    data = read_package(conn, name)
    if package is None or data is None:
        return None

    # The configurations of the package, and those that satisfy all filters.
    scope = _places_of(lookups, filters)
    conditions = (Condition("package", name, Word(name)), *filters.conditions, *scope)
    misses = misses_of(Candidates(lookups, conditions), conditions)
    ids = [row.id for row in misses.rows]
    fitting = misses.fitting()
    matching = {row.id: count for row, count in fitting.items()}

    # Spack's notes on all variants, and those that all rows share.
    variants_of = lookups.words["variants"]
    variants = set(filters.variant)
    for key in {row.key("variants") for row in misses.rows}:
        variants.update(variants_of[key])
    notes = data.variant_notes(variants)
    defaults = {text for text, note in notes.items() if note.is_default}
    shared = shared_variants([variants_of[row.key("variants")] for row in fitting])
    common_variants = sorted(shared, key=lambda text: text in defaults)

    # The rows of this page of the table.
    page_rows = max(1, len(matching)) if is_whole else CONFIGURATION_ROWS
    window = paginated(len(matching), filters.page, page_rows)
    results = ResultSet(scope, list(matching), matching)
    rows = table_rows(
        lookups,
        counted_part(lookups, results, window.rows),
        scope,
        shared,
        filters.open,
        defaults,
        # Links to the specs of a row name the differences; a whole page has none.
        is_compared=not is_whole,
    )

    # Specs of a package that no release lists are known from other specs.
    known_ids: list[int] = []
    if not package.release_count:
        known_ids = sorted(specs_of_configurations(conn, ids))
    known = read_nodes(conn, known_ids[:MOST_KNOWN])

    # The build whose commands are shown, and the choices that lead to another.
    proposed = _build_of(lookups, filters, fitting, conditions)
    build = None if proposed is None else proposed.proposal.configuration
    releases = releases_of(conn, ids)
    versions = versions_of(lookups, misses.rows, releases)
    lives = lives_of(lookups, versions, releases)
    has_all_versions = is_whole or filters.versions == "all"
    version_table = Table(
        lookups, name, filters, versions, releases, build, has_all_versions
    )
    chooser = chooser_of(
        ChooserInput(
            lookups=lookups,
            filters=filters,
            misses=misses,
            versions=versions,
            lives=lives,
            newest=package.newest_version,
            notes=notes,
            proposed=build,
        )
    )

    builds = None
    if is_whole and fitting:
        builds = browser_builds(
            lookups,
            list(fitting),
            lives,
            {row.configuration: row for row in rows},
            vocabulary_of(lookups.is_installed),
            package.newest_version,
        )

    columns, shared_words = columns_of(lookups, fitting)
    is_explicit = bool(lookups.trees()) and bool(
        counts_in_scope(lookups, ids, explicitly(lookups))
    )
    return PackagePage(
        package=package,
        filters=filters,
        configuration_count=len(matching),
        spec_count=sum(matching.values()),
        unknown="" if matching else _unknown_place(lookups, filters),
        gone=gone_among(lookups, conditions),
        choices=tuple(choices_of(lookups, filters, misses)),
        proposed=proposed,
        chooser=chooser,
        versions=where_and_when(version_table, lives),
        installed=where_installed(version_table),
        common_variants=tuple(common_variants),
        table=BuildTable(rows, columns, shared_words, _used(rows, proposed)),
        window=window,
        is_compiler=name in lookups.compilers,
        recipes=recipe_links(conn, name),
        needed_by=tuple(dependent_packages(conn, package.id)),
        known=sorted(known.values(), key=lambda node: node.hash),
        known_name=known_name(lookups, name),
        changes=latest_changes(lookups, package=name),
        data=data,
        is_explicit=is_explicit,
        notes=notes,
        builds=builds,
    )


def _build_of(
    lookups: Lookups,
    filters: Filters,
    rows: Mapping[Candidate, int],
    conditions: Conditions,
) -> ProposedBuild | None:
    """Return the build that the address names, if it is in one of the rows, or else the
    proposed one.
    """
    if filters.use:
        used = stored_spec(lookups.conn, filters.use)
        candidates = [row for row in rows if used and row.id == used.configuration]
        by_hash = Condition("hash", filters.use, filters.use)
        proposal = propose(lookups, candidates, (*conditions, by_hash))
        build = proposed_build(lookups, proposal, filters.release)
        if build is not None:
            return replace(build, is_named=True)
    proposal = propose(lookups, list(rows), conditions)
    return proposed_build(lookups, proposal, filters.release)


def _used(rows: Iterable[ConfigurationRow], build: ProposedBuild | None) -> str:
    """Return the first hash of the row whose commands are shown; empty without one."""
    if build is not None:
        for row in rows:
            if row.configuration == build.proposal.configuration:
                return row.hash
    return ""


def _places_of(lookups: Lookups, filters: Filters) -> Conditions:
    """Return the conditions of the filters for a release and a stack."""
    return tuple(
        place_condition(lookups, name, value)
        for name, value in filters.pairs
        if name in PLACES
    )


def _unknown_place(lookups: Lookups, filters: Filters) -> str:
    """Return which release, stack or machine of the filters is not known, as
    `unknown_name` does; empty if all are.
    """
    return unknown_name(
        lookups, release=filters.release, stack=filters.stack, host=filters.host
    )


def choices_of(lookups: Lookups, filters: Filters, misses: Misses) -> Iterator[Choice]:
    """Yield the filters that have a value or offer one, while the others keep their
    values.

    `misses` has the configurations of the package that do not satisfy a filter.
    """
    fitting = misses.fitting()
    conditions = misses.conditions
    for name, chosen in _filter_values(filters):
        # The configurations that satisfy all other filters.
        own = _position_of(conditions, name, chosen)
        rows: Iterable[Candidate] = misses.fitting(own) if own else fitting
        if name == "release":
            # A release may list binaries that the mirror has lost since.
            rows = misses.satisfied_by_words(own)
        values = _values(lookups, name, rows, conditions)

        # A chosen variant can be replaced by the other values of that variant.
        label = LABELS[name]
        if name == "variant":
            label = _variant_name(chosen or "")
            values = [item for item in values if _variant_name(item[0]) == label]
        if chosen is not None and chosen not in dict(values):
            values = [(chosen, len(fitting)), *values]

        # A filter with a single value is useful only if nothing matches the others.
        least = 2 if fitting else 1
        if chosen is not None or len(values) >= least:
            yield Choice(name, label, chosen, tuple(values))

    # Variants that all configurations have are no choice.
    every = _values(lookups, "variant", fitting, conditions)
    varying = tuple(item for item in every if item[1] < len(fitting))
    if varying:
        yield Choice("variant", LABELS["variant"], None, varying)


def _filter_values(filters: Filters) -> Iterator[tuple[str, str | None]]:
    """Yield each filter with its value, and each chosen variant; None is no value."""
    for name in LABELS:
        if name not in ("package", "variant"):
            yield name, getattr(filters, name)
    for text in filters.variant:
        yield "variant", text


def _position_of(
    conditions: Conditions, kind: str, text: str | None
) -> tuple[int, ...]:
    """Return the position of a filter's condition; empty if the filter has no value."""
    # Of equal conditions, the last one counts.
    for position in reversed(range(len(conditions))):
        condition = conditions[position]
        if (condition.kind, condition.text) == (kind, text):
            return (position,)
    return ()


def _values(
    lookups: Lookups, name: str, rows: Iterable[Candidate], conditions: Conditions
) -> list[tuple[str, int]]:
    """Return the values of a filter that configurations have, in the order of a
    form.
    """
    if name in PLACES:
        return _places(lookups, name, rows, conditions)
    if name == "host":
        return _hosts(lookups, rows)
    (column,) = COLUMNS[name]
    words = lookups.words[column]
    position = KEY_POSITIONS[column]
    counts = Counter([row.keys[position] for row in rows])
    if name == "version":
        newest_first = sorted(
            counts, key=lambda key: lookups.positions[key], reverse=True
        )
        return [(words[key], counts[key]) for key in newest_first]
    if name == "variant":
        # The words of this column are all variants of a configuration.
        variants: Counter[str] = Counter()
        for key, count in counts.items():
            for text in words[key]:
                variants[text] += count
        return sorted(variants.items())
    return sorted((value_of(name, words[key]), count) for key, count in counts.items())


def _places(
    lookups: Lookups, name: str, rows: Iterable[Candidate], conditions: Conditions
) -> list[tuple[str, int]]:
    """Return the releases or stacks of configurations, in the database's order."""
    records: Mapping[int, Release | Stack]
    records = lookups.releases if name == "release" else lookups.stacks
    counts = count_by_place(lookups.conn, name, [row.id for row in rows], conditions)
    return [
        (record.name, counts[key]) for key, record in records.items() if key in counts
    ]


def _hosts(lookups: Lookups, rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """Return the machines that run some of the binaries, with how many each runs."""
    # Count by ids first, because there are many rows and few builds.
    platform_position = KEY_POSITIONS["platform"]
    target_position = KEY_POSITIONS["target"]
    counts_of_ids = Counter(
        [(row.keys[platform_position], row.keys[target_position]) for row in rows]
    )
    platforms = lookups.words["platform"]
    targets = lookups.words["target"]
    builds = {
        Build(platforms[platform], targets[target]): count
        for (platform, target), count in counts_of_ids.items()
    }

    hosts = []
    for host in chain.from_iterable(hosts_of(builds).values()):
        counts = [
            count for build, count in builds.items() if build_runs_on(build, host)
        ]
        hosts.append((host, sum(counts)))
    return hosts


def _variant_name(text: str) -> str:
    """Return the name of a variant; the text if Spack could not read it."""
    variant = readable_variant(text)
    return text if variant is None else variant.name
