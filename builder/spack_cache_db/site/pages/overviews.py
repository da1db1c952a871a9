"""The first page, the page about the site, and the pages of a release, a stack and its gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from urllib.parse import urlencode

from spack_cache_db.query.changes import amounts_of_releases
from spack_cache_db.query.configurations import packages_in_stacks
from spack_cache_db.query.database import (
    Lookups,
    Release,
    Stack,
    facets_of_release,
    releases_of_stack,
    select,
)
from spack_cache_db.query.installation import (
    Commands,
    explicit_count,
    install_example,
    read_examples,
    read_origin,
)
from spack_cache_db.query.totals import (
    PAGES,
    PROBLEMS,
    Mirror,
    Totals,
    count_by,
    facet_counts,
    newest_snapshot,
    read_mirrors,
    read_totals,
)
from spack_cache_db.site.pages.changes import Sides, latest_changes
from spack_cache_db.site.pages.filters import (
    AddressFields,
    NameCounts,
    Pagination,
    most_first,
    page_number,
    paginated,
    value_of,
)

OLD = 30
"""Days after which a snapshot is called old."""
BARS = 12
"""Stacks in the chart of the largest stacks."""
FACETS = {
    "target": "Targets",
    "compiler": "Compilers",
    "os": "Operating systems",
    "stack": "Stacks",
}
"""Facets of a release, which are filters as well, with their titles."""
PAGE_ROWS = 100
COLUMN_KINDS = ("family", "target", "stack")


class LatestChange(NamedTuple):
    """The number of binaries that the newest snapshot added and removed, and its comparison."""

    sides: Sides
    added: int
    removed: int


class Home(NamedTuple):
    """The first page; `age` is that of the newest snapshot, None unless it is old."""

    owner: str
    examples: tuple[str, ...]
    totals: Totals
    targets: int
    age: str | None
    change: LatestChange | None


class About(NamedTuple):
    """The page about the site, with the largest stacks, and a release as an example in the text.

    `over_time` has the number of binaries in each snapshot, the oldest first; `pages` the number
    of pages that the database was built from, by format.
    """

    totals: Totals
    over_time: NameCounts
    families: NameCounts
    stacks: NameCounts
    example: Release | None
    first_snapshot: str | None
    pages: NameCounts
    mirrors: tuple[Mirror, ...]
    problem_count: int


def load_home(lookups: Lookups) -> Home:
    """Return the content of the first page."""
    return Home(
        owner=read_origin(lookups.conn).owner,
        examples=read_examples(lookups.conn),
        totals=read_totals(lookups.conn),
        targets=len(lookups.families),
        age=age_of(newest_snapshot(lookups), date.today()),
        change=latest_change(lookups),
    )


def latest_change(lookups: Lookups) -> LatestChange | None:
    """Return how much the newest snapshot changed; None without two snapshots."""
    for release in lookups.releases.values():
        before = lookups.before(release)
        if release.kind == "snapshot" and before is not None:
            amounts = amounts_of_releases(lookups.conn, [release.id])[release.id]
            return LatestChange(Sides(before.name, release.name), *amounts)
    return None


def age_of(day: str | None, today: date) -> str | None:
    """Return the age of a day in words; None if it is not older than `OLD` days."""
    try:
        days = (today - date.fromisoformat(day or "")).days
    except ValueError:
        return None
    if days <= OLD:
        return None
    months = days // 30
    if months < 12:
        return f"{months} month{'' if months == 1 else 's'} old"
    return f"{days // 365 or 1} year{'s' if days >= 730 else ''} old"


def load_about(lookups: Lookups) -> About:
    """Return the content of the page about the site."""
    releases = [*lookups.releases.values()]
    dated = sorted(
        (release.date, release.name, release.spec_count) for release in releases if release.date
    )
    families: Counter[str] = Counter()
    for target, count in facet_counts(lookups.conn, "target").items():
        families[lookups.families.get(target, target)] += count
    stacks = most_first({stack.name: stack.spec_count for stack in lookups.stacks.values()})
    return About(
        totals=read_totals(lookups.conn),
        over_time=tuple((name, count) for _, name, count in dated),
        families=most_first(families),
        stacks=stacks[:BARS],
        example=releases[0] if releases else None,
        first_snapshot=dated[0][0] if dated else None,
        pages=tuple((name, count) for name, count in select(lookups.conn, PAGES)),
        mirrors=read_mirrors(lookups.conn),
        problem_count=next(select(lookups.conn, PROBLEMS))[0],
    )


class Chart(NamedTuple):
    """A bar chart of the specs for each value of a filter, and the list of packages for each."""

    facet: str
    bars: NameCounts
    addresses: Mapping[str, str]

    @property
    def title(self) -> str:
        """The plural of the filter's name."""
        return FACETS[self.facet]


class ReleasePage(NamedTuple):
    """The page of a release: it links to the releases before and after."""

    release: Release
    packages: NameCounts
    charts: tuple[Chart, ...]
    before: str | None
    after: str | None
    install: Commands
    explicit_count: int


class StackPage(NamedTuple):
    """The page of a stack, with its number of specs in each release."""

    stack: Stack
    packages: NameCounts
    charts: tuple[Chart, ...]
    releases: NameCounts
    changes: tuple[Sides, ...]


def load_release(lookups: Lookups, name: str) -> ReleasePage | None:
    """Return the page of a release; None if it does not exist."""
    release = lookups.release(name)
    if release is None:
        return None
    stacks = {stack.name for stack in lookups.stacks.values()}
    counts: dict[str, dict[str, int]] = {}
    for facet, value, count in facets_of_release(lookups.conn, release.id):
        if facet != "stack" or value in stacks:
            counts.setdefault(facet, {})[value] = count
    before = lookups.before(release)
    after = (item.name for item in lookups.releases.values() if item.previous == release.id)
    packages = count_by(lookups, release, None, "package")
    return ReleasePage(
        release=release,
        packages=tuple(sorted((package, count.specs) for (package,), count in packages.items())),
        charts=_charts(counts, {"release": name}),
        before=before.name if before else None,
        after=next(after, None),
        install=install_example(lookups.conn, release.name),
        explicit_count=explicit_count(lookups.conn, name),
    )


def load_stack(lookups: Lookups, name: str) -> StackPage | None:
    """Return the page of a stack; None if it does not exist."""
    stack = lookups.stack(name)
    if stack is None:
        return None
    columns = ("package", "target", "compiler")
    counts: dict[str, Counter[str]] = {column: Counter() for column in columns}
    for words, count in count_by(lookups, None, stack, *columns).items():
        for column, word in zip(columns, words, strict=True):
            counts[column][word] += count.specs
    in_releases = releases_of_stack(lookups.conn, name)
    return StackPage(
        stack=stack,
        packages=tuple(sorted(counts["package"].items())),
        charts=_charts(counts, {"stack": name}),
        releases=tuple(
            (release.name, in_releases[key])
            for key, release in lookups.releases.items()
            if key in in_releases
        ),
        changes=latest_changes(lookups, stack=name),
    )


def _charts(counts: Mapping[str, Mapping[str, int]], scope: dict[str, str]) -> tuple[Chart, ...]:
    """Return a chart for each facet; `scope` is the release or stack that is counted."""

    def address(facet: str, word: str) -> str:
        return f"/packages?{urlencode(scope | {facet: value_of(facet, word)})}"

    return tuple(
        Chart(facet, most_first(words), {word: address(facet, word) for word in words})
        for facet in FACETS
        if (words := counts.get(facet))
    )


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


class CoverageColumn(NamedTuple):
    """A family, target or stack, with the number of packages that have a binary, and of gaps."""

    name: str
    packages: int
    gaps: int


class CoverageRow(NamedTuple):
    """A package with a gap, with the number of its binaries in each column; None for a gap."""

    package: str
    counts: tuple[int | None, ...]


class CoveragePage(NamedTuple):
    """The gaps of a release: packages without a binary in a column where the reference has one.

    The reference is a column, by default the one with most packages, or another release.
    """

    release: Release
    filters: CoverageFilters
    reference: str
    columns: tuple[CoverageColumn, ...]
    rows: tuple[CoverageRow, ...]
    row_count: int
    window: Pagination
    fault: str | None


def load_coverage(lookups: Lookups, name: str, filters: CoverageFilters) -> CoveragePage | None:
    """Return the gaps of a release; None if it does not exist."""
    release = lookups.release(name)
    if release is None:
        return None
    binaries = _binaries(lookups, release, filters.kind)
    packages = Counter(column for _, column in binaries)
    reference, fault = filters.reference, None
    other = lookups.release(reference)
    if other is not None:
        expected = {*_binaries(lookups, other, filters.kind)}
    else:
        if reference not in packages:
            fault = f"Neither a release nor a column is called {reference}." if reference else None
            reference = most_first(packages)[0][0] if packages else ""
        names = [package for package, column in binaries if column == reference]
        expected = {(package, column) for package in names for column in packages}
    missing = expected - binaries.keys()
    gaps = Counter(column for _, column in missing)
    columns = most_first({column: packages[column] for column in packages | gaps})
    rows = sorted({package for package, _ in missing})
    window = paginated(len(rows), page_number(filters.page), PAGE_ROWS)

    def row(package: str) -> CoverageRow:
        cells = [(package, column) for column, _ in columns]
        counts = (None if cell in missing else binaries.get(cell, 0) for cell in cells)
        return CoverageRow(package, tuple(counts))

    if filters.by not in ("", *COLUMN_KINDS):
        fault = f"There are no columns by {filters.by}: choose {', '.join(COLUMN_KINDS)}."
    return CoveragePage(
        release=release,
        filters=filters,
        reference=reference,
        columns=tuple(CoverageColumn(column, count, gaps[column]) for column, count in columns),
        rows=tuple(map(row, rows[window.rows])),
        row_count=len(rows),
        window=window,
        fault=fault,
    )


def _binaries(lookups: Lookups, release: Release, kind: str) -> dict[tuple[str, str], int]:
    """Return the number of binaries in a release, by package and column."""
    if kind == "stack":
        names = lookups.words["package"]
        return {
            (names[key], lookups.stacks[stack].name): count
            for key, stack, count in packages_in_stacks(lookups.conn, release.id)
            if stack in lookups.stacks
        }
    counts: Counter[tuple[str, str]] = Counter()
    for (package, target), count in count_by(lookups, release, None, "package", "target").items():
        column = lookups.families[target] if kind == "family" else target
        counts[package, column] += count.specs
    return counts
