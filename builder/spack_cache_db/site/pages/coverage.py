"""The page `/coverage/<release>`: the targets or stacks for which packages have binaries.

A gap is a package without a binary in a column for which the reference has one. The reference is
one of the columns, or the same column of another release.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.configurations import packages_in_stacks
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.query.totals import count_by
from spack_cache_db.site.pages.filters import AddressFields, most_first, page_number, paginated

PAGE_ROWS = 100
COLUMN_KINDS = ("family", "target", "stack")


@dataclass(frozen=True, slots=True)
class CoverageFilters(AddressFields):
    """The fields of an address: the kind of columns, the reference, and the page of rows."""

    by: str = ""
    reference: str = ""
    page: str = ""

    @property
    def kind(self) -> str:
        """The kind of the columns; families by default."""
        return self.by if self.by in COLUMN_KINDS else COLUMN_KINDS[0]

    def address(self, page: int = 1, **changes: str) -> str:
        """Return the query string of another page, with some changes."""
        values = {"by": self.kind, "page": str(page) if page > 1 else "", **changes}
        return "?" + self.query_string(**values)


class CoverageColumn(NamedTuple):
    """A family, target or stack, with the number of packages that have a binary, and of gaps."""

    name: str
    packages: int
    gaps: int


class CoverageRow(NamedTuple):
    """A package with a gap, with the number of its binaries in each column; None for a gap."""

    package: str
    counts: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CoveragePage:
    """The content of the page.

    Attributes:
        reference: the reference; by default the column with most packages.
        columns: the columns, those with most packages first.
        rows: one page of the packages that have a gap, by name.
        row_count: the number of packages that have a gap.
        fault: a message about an unknown reference or kind of columns.
    """

    release: Release
    filters: CoverageFilters
    reference: str
    columns: tuple[CoverageColumn, ...]
    rows: tuple[CoverageRow, ...]
    row_count: int
    page: int
    page_count: int
    fault: str | None = None


def load_coverage(lookups: Lookups, name: str, filters: CoverageFilters) -> CoveragePage | None:
    """Return the page of a release; None if it does not exist."""
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
        page=window.page,
        page_count=window.page_count,
        fault=fault,
    )


def _binaries(lookups: Lookups, release: Release, kind: str) -> dict[tuple[str, str], int]:
    """Return the number of binaries in a release, by package and column."""
    counts: Counter[tuple[str, str]] = Counter()
    if kind == "stack":
        names = lookups.words["package"]
        for key, stack, binaries in packages_in_stacks(lookups.conn, release.id):
            if stack in lookups.stacks:
                counts[names[key], lookups.stacks[stack].name] = binaries
        return counts
    by_target = count_by(lookups, release, None, "package", "target")
    for (package, target), count in by_target.items():
        column = lookups.families[target] if kind == "family" else target
        counts[package, column] += count.specs
    return counts
