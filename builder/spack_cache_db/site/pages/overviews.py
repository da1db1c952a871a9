"""`/`, `/about`, and the pages of a release, a stack and the gaps of a release.

These are `/release/<name>`, `/stack/<name>` and `/coverage/<release>`. The functions
called `load_…` return the variables of a template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote

from spack_cache_db.data_source import LICENSE_ROW, MIRROR_ROW
from spack_cache_db.query.answers.install import choose_example
from spack_cache_db.query.answers.release_amounts import amounts_of_releases
from spack_cache_db.query.commands.install import setup_of
from spack_cache_db.query.commands.load import explicit_count
from spack_cache_db.query.conditions.conditions import Condition
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.open.lookups import Lookups, Release, Stack, releases_of_stack
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.mirrors import mirrored_release
from spack_cache_db.query.stored.origin import origin_facts, read_examples, read_origin
from spack_cache_db.query.stored.presence import packages_in_release, packages_in_stacks
from spack_cache_db.query.stored.totals import (
    PAGES,
    count_by,
    facet_counts,
    newest_snapshot,
    read_mirrors,
    read_totals,
)
from spack_cache_db.site.charts.grids import heat_of
from spack_cache_db.site.charts.records import Value
from spack_cache_db.site.data_links import data_links
from spack_cache_db.site.filters import (
    AddressFields,
    NameCounts,
    Pairs,
    most_first,
    paginated,
    value_of,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.changes import latest_changes
from spack_cache_db.site.pages.feeds import Topic, date_of
from spack_cache_db.site.pages.list_page import LIST_ROWS
from spack_cache_db.site.pages.missing import missing
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.pages.snapshots import (
    MOST_SHRUNK,
    age_of,
    binaries_over_time,
    branch_of,
    newest_of,
    points_of,
    shrunk_stacks,
    snapshots_of,
)
from spack_cache_db.site.site import Site
from spack_cache_db.site.words import BINARIES, INSTALLED
from spack_cache_db.spack.targets import MAC

BARS = 12
"""Stacks in the chart of the largest stacks."""
COVERAGE_ROWS = 100
COLUMN_KINDS = ("family", "target", "stack")


def home(site: Site, request: PageRequest) -> PageResponse:
    """Return `/`."""
    return site.page(
        request,
        "home.html",
        page=load_home(site.lookups),
        feed=Topic().feed,
        look_day=site.look_day,
    )


def load_home(lookups: Lookups) -> dict[str, Any]:
    """Return the first page, with the state of the cache in its newest snapshot."""
    page = {
        "owner": read_origin(lookups.conn).owner,
        "examples": read_examples(lookups.conn),
        "totals": lookups.once(read_totals, lambda: read_totals(lookups.conn)),
        "targets": len(lookups.families),
        "age": age_of(newest_snapshot(lookups), date.today()),
        "change": last_change(lookups),
    }
    newest = newest_of(lookups)
    if newest is None:
        return {**page, "newest": None}
    return {
        **page,
        "newest": newest,
        "over_time": binaries_over_time(snapshots_of(lookups, branch_of(newest))),
        "shrunk": shrunk_stacks(lookups, newest)[:MOST_SHRUNK],
    }


class LastChange(NamedTuple):
    """The comparison of a snapshot with the one before, and its numbers of binaries."""

    sides: Sides
    added: int
    removed: int


def last_change(lookups: Lookups) -> LastChange | None:
    """Return what the newest snapshot with other binaries than the one before it
    changed; None if there is none.
    """
    pairs = []
    for release in lookups.releases.values():
        before = lookups.before(release)
        if date_of(release.date) is not None and before is not None:
            pairs.append((release, before))
    amounts = amounts_of_releases(lookups, sorted(release.id for release, _ in pairs))
    for release, before in pairs:
        added, removed = amounts[release.id]
        if added or removed:
            return LastChange(Sides(before.name, release.name), added, removed)
    return None


def about(site: Site, request: PageRequest) -> PageResponse:
    """Return `/about`."""
    return site.page(
        request,
        "about.html",
        # It depends on nothing in the request, and counts all pages of the sources.
        page=site.lookups.once(load_about, lambda: load_about(site.lookups)),
        others=request.databases,
        look_day=site.look_day,
    )


def load_about(lookups: Lookups) -> dict[str, Any]:
    """Return the page about the site, with the binaries of each snapshot, the oldest
    first.
    """
    newest = newest_of(lookups)
    snapshots = snapshots_of(lookups, branch_of(newest)) if newest else []
    families: Counter[str] = Counter()
    for target, count in facet_counts(lookups.conn)["target"].items():
        families[lookups.families[target]] += count
    binaries_of_stack = {
        stack.name: stack.spec_count for stack in lookups.stacks.values()
    }
    facts = origin_facts(lookups.conn)
    return {
        "totals": lookups.once(read_totals, lambda: read_totals(lookups.conn)),
        "over_time": binaries_over_time(snapshots),
        "families": _bars(most_first(families), "/packages?has="),
        "stacks": _bars(most_first(binaries_of_stack)[:BARS], "/stack/"),
        "first_snapshot": snapshots[0].date if snapshots else None,
        "pages": list(select(lookups.conn, PAGES)),
        "mirrors": read_mirrors(lookups.conn),
        "license": facts.get(LICENSE_ROW, ""),
        "mirror_urls": facts.get(MIRROR_ROW, "").split(),
    }


def _bars(counts: NameCounts, path: str) -> list[Value]:
    """Return counts as bars that link to addresses beginning with `path`.

    The name `gcc@` is the compiler whose version is unknown.
    """
    return [
        Value(name.removesuffix("@"), count, path + quote(name, safe="/"))
        for name, count in counts
    ]


def overview(
    site: Site, request: PageRequest, subject: str, **names: str
) -> PageResponse:
    """Return `/release/<name>`, `/stack/<name>` or `/coverage/<release>`.

    `names` is the name in the address, by its kind: `release` or `stack`.
    """
    subject_page = OVERVIEWS[subject]
    ((kind, name),) = names.items()
    lookups = site.lookups
    record = lookups.release(name) if kind == "release" else lookups.stack(name)
    if record is None:
        return missing(site, request, kind, name)
    return site.page(
        request,
        f"{subject}.html",
        page=subject_page.load(site.lookups, record, request.pairs),
        links=data_links(
            site.settings.route, subject_page.table, [(kind, name)], many=True
        ),
        feed=Topic(stack=name).feed if kind == "stack" else None,
        first_rows=LIST_ROWS["packages"],
    )


def load_release(lookups: Lookups, release: Release, _: Pairs) -> dict[str, Any]:
    """Return the page of a release, with the releases before and after."""
    before = lookups.before(release)
    # Several releases may be compared with this one; the first counts.
    after = [
        other.name
        for other in lookups.releases.values()
        if other.previous == release.id
    ]
    query = f"?release={quote(release.name)}"
    condition = Condition("release", release.name, release.id)
    branch = branch_of(release)
    snapshots = snapshots_of(lookups, branch)
    is_installed = release.kind == "installed"
    example = choose_example(lookups, release)
    return {
        "release": release,
        "words": INSTALLED if is_installed else BINARIES,
        "packages": list(packages_in_release(lookups.conn, release.id)),
        "charts": _charts(facet_counts(lookups.conn, release.id), query),
        "branch": branch,
        "over_time": binaries_over_time(snapshots, release),
        "before": before.name if before else None,
        "after": after[0] if after else None,
        # An installation has nothing to set up: an example is loaded.
        "example": example if is_installed else None,
        "setup": setup_of(example.commands) if example and not is_installed else None,
        "mirror": mirrored_release(lookups, release),
        "gone": gone_among(lookups, (condition,)),
        "explicit_count": explicit_count(lookups.conn, release.name),
    }


def load_stack(lookups: Lookups, stack: Stack, _: Pairs) -> dict[str, Any]:
    """Return the page of a stack, with its binaries in each release."""
    # One statement counts by all three columns, because each reads the whole stack.
    packages: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    compilers: Counter[str] = Counter()
    counts = count_by(lookups, None, stack.id, "package", "target", "compiler")
    for (package, target, compiler), count in counts.items():
        packages[package] += count.specs
        targets[target] += count.specs
        compilers[compiler] += count.specs
    query = f"?stack={quote(stack.name)}"
    facets = {"target": targets, "compiler": compilers}
    # In the order of releases.
    binaries_in_release = releases_of_stack(lookups.conn, stack.name)
    releases = [
        (release.name, binaries_in_release[key])
        for key, release in lookups.releases.items()
        if key in binaries_in_release
    ]
    condition = Condition("stack", stack.name, stack.id)
    newest = newest_of(lookups)
    snapshots = snapshots_of(lookups, branch_of(newest)) if newest else []
    return {
        "stack": stack,
        "branch": branch_of(newest) if newest else None,
        "over_time": points_of(snapshots, binaries_in_release),
        "words": BINARIES,
        "packages": sorted(packages.items()),
        "gone": gone_among(lookups, (condition,)),
        "charts": _charts(facets, query),
        "releases": releases,
        "changes": latest_changes(lookups, stack=stack.name),
    }


def _charts(
    facets: Mapping[str, Mapping[str, int]], query: str
) -> dict[str, list[Value]]:
    """Return the values of each filter with their numbers of binaries, the most first.

    They link to the packages that a query, such as `?stack=e4s`, and the value select.
    """
    charts = {}
    for facet, counts in facets.items():
        by_value = {value_of(facet, word): count for word, count in counts.items()}
        charts[facet] = _bars(most_first(by_value), f"/packages{query}&{facet}=")
    return charts


@dataclass(frozen=True, slots=True)
class CoverageFilters(AddressFields):
    """The kind of columns, the reference, and the page of rows."""

    by: str = ""
    reference: str = ""
    page: str = ""

    @property
    def kind(self) -> str:
        """The kind of the columns; families by default."""
        return self.by if self.by in COLUMN_KINDS else COLUMN_KINDS[0]


Cell = tuple[str, str]
"""A package and a column."""


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """The binaries of a package in a column.

    Attributes:
        column: the name of the column.
        count: the number of binaries.
        is_gap: whether only the reference has one.
        heat: the colour of the count, from 1 to 4.
    """

    column: str
    count: int
    is_gap: bool
    heat: int

    @property
    def is_empty(self) -> bool:
        """Whether neither the column nor the reference has a binary."""
        return not self.count and not self.is_gap


def load_coverage(lookups: Lookups, release: Release, pairs: Pairs) -> dict[str, Any]:
    """Return the gaps of a release.

    A gap is a package without a binary in a column where the reference has one. The
    reference is a column, by default the one with most packages, or another release.
    """
    filters = CoverageFilters.parse(pairs)
    fault = None
    binaries = _binaries(lookups, release, filters.kind)
    packages = Counter(column for _, column in binaries)

    # The cells that should have a binary.
    reference = filters.reference
    other = lookups.release(reference)
    if other is not None:
        expected = set(_binaries(lookups, other, filters.kind))
    else:
        if reference not in packages:
            if reference:
                fault = f"Neither a release nor a column is called {reference}."
            reference = most_first(packages)[0][0] if packages else ""
        expected = _cells_like(binaries, reference, packages)
    if filters.by not in ("", *COLUMN_KINDS):
        kinds = ", ".join(COLUMN_KINDS)
        fault = f"There are no columns by {filters.by}: choose {kinds}."

    # The cells that have none. A column of another release may have no package here.
    gaps = expected - binaries.keys()
    gap_counts = Counter(column for _, column in gaps)
    columns = most_first({column: packages[column] for column in packages | gap_counts})
    rows = sorted({package for package, _ in gaps})
    window = paginated(len(rows), filters.page, COVERAGE_ROWS)
    shown = rows[window.rows]
    return {
        "release": release,
        "filters": filters,
        "lines": _coverage_lines(shown, columns, binaries, gaps),
        "reference": reference,
        "columns": columns,
        "gaps": gaps,
        "gap_counts": gap_counts,
        "binaries": binaries,
        "rows": shown,
        "row_count": len(rows),
        "window": window,
        "fault": fault,
    }


def _coverage_lines(
    packages: Sequence[str],
    columns: Sequence[tuple[str, int]],
    binaries: Mapping[Cell, int],
    gaps: Collection[Cell],
) -> list[tuple[str, list[CoverageCell]]]:
    """Return packages with a cell for each column; a package has its own colours."""
    lines = []
    for package in packages:
        counts = [binaries.get((package, column), 0) for column, _ in columns]
        top = max(counts, default=0)
        cells = []
        for (column, _), count in zip(columns, counts, strict=True):
            is_gap = (package, column) in gaps
            cell = CoverageCell(column, count, is_gap, heat=heat_of(count, top))
            cells.append(cell)
        lines.append((package, cells))
    return lines


def _cells_like(
    binaries: Collection[Cell], reference: str, columns: Collection[str]
) -> set[Cell]:
    """Return the cells of all columns, for each package that a reference column has."""
    packages = [package for package, column in binaries if column == reference]
    return set(product(packages, columns))


def _binaries(lookups: Lookups, release: Release, kind: str) -> Counter[Cell]:
    """Return the number of binaries in a release, by package and column.

    Binaries of macOS have columns of their own, such as `darwin aarch64`: they fill no
    gap of other machines with such a target.
    """
    binaries: Counter[Cell] = Counter()
    if kind == "stack":
        for package, stack, count in packages_in_stacks(lookups.conn, release.id):
            binaries[package, stack] = count
        return binaries
    columns = ("package", "target", "platform")
    counts = count_by(lookups, release.id, None, *columns)
    for (package, target, platform), total in counts.items():
        column = lookups.families[target] if kind == "family" else target
        if platform == MAC:
            column = f"{MAC} {column}"
        binaries[package, column] += total.specs
    return binaries


class Overview(NamedTuple):
    """The function that loads a page about a release or a stack, and the table of its
    data.
    """

    load: Callable[..., dict[str, Any]]
    table: str


OVERVIEWS = {
    "release": Overview(load_release, "build_listings"),
    "stack": Overview(load_stack, "spec_stacks"),
    "coverage": Overview(load_coverage, "release_counts"),
}
"""The pages about a release or a stack, by the first part of their addresses."""
