"""The page of a package: how to install it, where it runs, and its configurations."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    Word,
)
from spack_cache_db.query.match.candidates import Candidate, Candidates
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.match.misses import Misses, misses_of
from spack_cache_db.query.match.selection import ResultSet, counted_part
from spack_cache_db.query.names.known import KnownName, known_name
from spack_cache_db.query.names.scope import explicitly
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import json_text
from spack_cache_db.query.stored.binary import counts_in_scope, specs_of_configurations
from spack_cache_db.query.stored.configurations import shared_variants
from spack_cache_db.query.stored.gone import Gone, gone_of_package
from spack_cache_db.query.stored.graph import Node, dependent_packages, read_nodes
from spack_cache_db.query.stored.package_data import (
    PackageData,
    PackageTotals,
    VariantNote,
    newest_binary,
    package_totals,
    read_package,
    recipe_links,
)
from spack_cache_db.query.stored.presence import count_by_place, releases_of
from spack_cache_db.site.filters import (
    LABELS,
    PLACES,
    Filters,
    NameCounts,
    Pagination,
    package_links,
    paginated,
    place_condition,
    value_of,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.changes import latest_changes
from spack_cache_db.site.pages.configurations import ConfigurationRow, table_rows
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.pages.package_versions import (
    Timeline,
    WhereItRuns,
    timeline_of,
    versions_of,
    where_installed,
    where_it_runs,
)
from spack_cache_db.site.pages.proposed import ProposedBuild, proposed_build
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.targets import hosts_of, runs_on

CONFIGURATION_ROWS = 25
MOST_KNOWN = 100
VARIANTS = ("+mpi", "+cuda", "+shared")
"""Well-known variants, the best known first."""
_OFFERED = {"version": 1, "variant": 3, "compiler": 1, "os": 1, "stack": 1}
"""Filters that are offered above the rows, and the number of values of each."""


@dataclass(frozen=True, slots=True)
class PackagePage:
    """The content of the page of a package.

    Attributes:
        gone: the binaries that the mirror has lost and that match the filters. Those of
            a chosen release are in the rows.
        proposed: the build for which the page has commands.
        installed: versions by installation; None if there is only one installation.
        known: specs of a package without a binary that other specs depend on.
        is_explicit: whether a spec of it was installed explicitly.
        notes: Spack's notes on its variants.
    """

    package: PackageTotals
    filters: Filters
    configuration_count: int
    spec_count: int
    gone: Gone | None
    choices: tuple[Choice, ...]
    proposed: ProposedBuild | None
    runs: WhereItRuns
    installed: WhereItRuns | None
    common_variants: tuple[str, ...]
    rows: tuple[ConfigurationRow, ...]
    window: Pagination
    is_compiler: bool
    recipes: Mapping[str, str]
    needed_by: tuple[str, ...]
    known: Sequence[Node]
    known_name: KnownName
    changes: tuple[Sides, ...]
    timeline: Timeline
    data: PackageData
    is_explicit: bool
    notes: Mapping[str, VariantNote]

    @property
    def install(self) -> Commands | None:
        """The commands that install or load the proposed build."""
        return None if self.proposed is None else self.proposed.commands

    @property
    def offers(self) -> list[tuple[str, str, int]]:
        """Filters that leave fewer configurations: names, values, and how many they
        leave.
        """
        offers = []
        by_name = {
            choice.name: choice.values
            for choice in self.choices
            if choice.chosen is None
        }
        for name, most in _OFFERED.items():
            values = [
                (value, count)
                for value, count in by_name.get(name, ())
                if count < self.configuration_count
                and (name != "variant" or value[0] == "+")
            ]
            # The newest version comes first, and other values by the number of
            # configurations.
            if name != "version":
                values.sort(
                    key=lambda item: ([*VARIANTS, item[0]].index(item[0]), -item[1])
                )
            offers += [(name, *item) for item in values[:most]]
        return offers


def load_package(lookups: Lookups, name: str, filters: Filters) -> PackagePage | None:
    """Return the page of the package called `name`; None if there is no such
    package.
    """
    conn = lookups.conn
    package, data = package_totals(conn, name), read_package(conn, name)
    if package is None or data is None:
        return None
    places = ((name, value) for name, value in filters.pairs if name in PLACES)
    scope = tuple(place_condition(lookups, name, value) for name, value in places)
    conditions = (Condition("package", name, Word(name)), *filters.conditions, *scope)
    misses = misses_of(Candidates(lookups, conditions), conditions)
    ids, variants_of = [row.id for row in misses.rows], lookups.words["variants"]
    fitting = misses.fitting()
    matching = {row.id: count for row, count in fitting.items()}
    results = ResultSet(scope, [*matching], matching)
    window = paginated(len(matching), filters.page, CONFIGURATION_ROWS)
    sets = {row.key("variants") for row in misses.rows}
    variants = {
        *filters.variant,
        *chain.from_iterable(variants_of[key] for key in sets),
    }
    notes = data.variant_notes(variants)
    defaults = {text for text, note in notes.items() if note.is_default}
    common = shared_variants([variants_of[row.key("variants")] for row in fitting])

    def rows_of(part: slice) -> tuple[ConfigurationRow, ...]:
        configurations = counted_part(lookups, results, part)
        return table_rows(
            lookups, configurations, scope, common, filters.open, defaults
        )

    rows = rows_of(window.rows)
    proposal = propose(lookups, [*fitting], conditions)
    specs = () if package.release_count else sorted(specs_of_configurations(conn, ids))
    known = read_nodes(conn, specs[:MOST_KNOWN])
    releases = releases_of(conn, ids)
    versions = versions_of(lookups, misses.rows, releases)
    return PackagePage(
        package=package,
        filters=filters,
        configuration_count=len(matching),
        spec_count=sum(matching.values()),
        gone=gone_among(lookups, conditions),
        choices=tuple(choices_of(lookups, filters, misses)),
        proposed=proposed_build(lookups, proposal, filters.release),
        runs=where_it_runs(lookups, versions, releases),
        installed=where_installed(lookups, versions, releases),
        common_variants=tuple(sorted(common, key=defaults.__contains__)),
        rows=rows,
        window=window,
        is_compiler=name in lookups.compilers,
        recipes=recipe_links(conn, name),
        needed_by=tuple(dependent_packages(conn, package.id)),
        known=sorted(known.values(), key=lambda node: node.hash),
        known_name=known_name(lookups, name),
        changes=latest_changes(lookups, package=name),
        timeline=timeline_of(lookups, versions, releases),
        data=data,
        is_explicit=bool(
            lookups.trees() and counts_in_scope(lookups, ids, explicitly(lookups))
        ),
        notes=notes,
    )


class Choice(NamedTuple):
    """A filter, its value if it has one, and for each possible value the configurations
    left.

    The label of a chosen variant is the variant's name.
    """

    name: str
    label: str
    chosen: str | None
    values: NameCounts


def choices_of(lookups: Lookups, filters: Filters, misses: Misses) -> Iterator[Choice]:
    """Yield the filters that have a value or offer one, while the others keep their
    values.

    `misses` has the configurations of the package that do not satisfy a filter.
    """
    fitting, conditions = misses.fitting(), misses.conditions
    positions = {
        (condition.kind, condition.text): [at]
        for at, condition in enumerate(conditions)
    }
    names = [name for name in LABELS if name not in ("package", "variant")]
    chosen_values = [(name, getattr(filters, name)) for name in names]
    for name, chosen in (
        *chosen_values,
        *(("variant", text) for text in filters.variant),
    ):
        own = positions.get((name, chosen))
        rows: Iterable[Candidate] = misses.fitting(own) if own else fitting
        if name == "release":
            # A release may list binaries that the mirror has lost since.
            rows = misses.satisfied_by_words(own or ())
        values = _values(lookups, name, rows, conditions)
        label = LABELS[name]
        if name == "variant":
            label = _variant_name(chosen)
            values = [item for item in values if _variant_name(item[0]) == label]
        if chosen is not None and chosen not in dict(values):
            values = [(chosen, len(fitting)), *values]
        # A filter with a single value is useful only if nothing matches the others.
        if chosen is not None or len(values) > bool(fitting):
            yield Choice(name, label, chosen, tuple(values))
    # Variants that all configurations have are no choice.
    every = _values(lookups, "variant", fitting, conditions)
    if varying := tuple(item for item in every if item[1] < len(fitting)):
        yield Choice("variant", LABELS["variant"], None, varying)


def _values(
    lookups: Lookups, name: str, rows: Iterable[Candidate], conditions: Conditions
) -> list[tuple[str, int]]:
    """Return the values of a filter that configurations have, in the order of a
    form.
    """
    if name in PLACES:
        records = getattr(lookups, f"{name}s")
        counts = count_by_place(
            lookups.conn, name, [row.id for row in rows], conditions
        )
        return [
            (record.name, counts[key])
            for key, record in records.items()
            if key in counts
        ]
    column = COLUMNS[name]
    words, keys = lookups.words[column], Counter(row.key(column) for row in rows)
    if name == "version":
        newest_first = sorted(keys, key=lookups.positions.__getitem__, reverse=True)
        return [(words[key], keys[key]) for key in newest_first]
    if name == "host":
        targets = {words[key]: count for key, count in keys.items()}
        return [
            (
                host,
                sum(
                    count for target, count in targets.items() if runs_on(target, host)
                ),
            )
            for hosts in hosts_of(targets).values()
            for host in hosts
        ]
    if name == "variant":
        variants = Counter[str]()
        for key, count in keys.items():
            variants.update(dict.fromkeys(words[key], count))
        return sorted(variants.items())
    return sorted((value_of(name, words[key]), count) for key, count in keys.items())


def _variant_name(text: str) -> str:
    """Return the name of a variant; the text if Spack could not read it."""
    variant = readable_variant(text)
    return text if variant is None else variant.name


def package(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>`."""
    filters = Filters.parse(request.pairs)
    page = load_package(site.lookups, package, filters)
    if page is None:
        package_data = read_package(site.conn, package)
        if package_data is None:
            return missing(site, request, "package", package)
        name = known_name(site.lookups, package)
        return site.page(
            request,
            "unbuilt.html",
            data=package_data,
            known_name=name,
            shell_quoted=shlex.quote,
        )
    links = package_links(site.settings.route, package, filters)
    feed = Topic(package=package).feed
    return site.page(request, "package.html", page=page, links=links, feed=feed)


def package_json(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>.json`: the number of binaries, and Spack's data about the
    package.
    """
    package_data = read_package(site.conn, package)
    if package_data is None:
        return refused(known_name(site.lookups, package).sentence, "json", 404)
    return data(json_text(package_data.as_dict()), "json")


def badge(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/badge/<package>.svg`, a picture for a README."""
    text = newest_binary(site.conn, package)
    if text is None and gone_of_package(site.conn, package) is not None:
        text = "gone from its mirror"
    if text is None:
        return missing(site, request, "package", package)
    return site.page(request, "badge.svg", package=package, text=text, kind="svg")
