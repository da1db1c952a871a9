"""The page `/coverage/<release>`: for what packages have binaries, and where there are gaps.

A gap is a package of which a reference has a binary and the release, in that column, has none. The
reference is one of the columns, or the same column of another release.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.configurations import packages_in_stacks
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.site.pages.filters import AddressFields, page_number, paginated
from spack_cache_db.site.pages.lists import counts

PAGE_ROWS = 100
KINDS = ("family", "target", "stack")


@dataclass(frozen=True, slots=True)
class CoverageFilters(AddressFields):
    """What an address asks: the columns, the reference, and the page of the rows."""

    by: str = ""
    reference: str = ""
    page: str = ""

    @property
    def kind(self) -> str:
        """What the columns are: families unless the address names another kind."""
        return self.by if self.by in KINDS else KINDS[0]

    def address(self, page: int = 1, **changes: str) -> str:
        """Return the query string that asks the same but for the page and `changes`."""
        values = {"by": self.kind, "page": str(page) if page > 1 else "", **changes}
        return "?" + self.query_string(**values)


class CoverageColumn(NamedTuple):
    """A family, a target or a stack: how many packages have a binary for it, and its gaps."""

    name: str
    packages: int
    gaps: int


class CoverageRow(NamedTuple):
    """A package with a gap; for each column how many binaries it has, None where a gap is."""

    package: str
    counts: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CoveragePage:
    """Everything the page shows.

    Attributes:
        reference: what the release is compared with; the column with most packages unless chosen.
        columns: those with most packages first.
        rows: one page of the packages that have a gap, by name.
        row_count: how many packages have one.
        fault: why the reference is not the one that is asked for.
    """

    release: Release
    asked: CoverageFilters
    reference: str
    columns: tuple[CoverageColumn, ...]
    rows: tuple[CoverageRow, ...]
    row_count: int
    page: int
    page_count: int
    fault: str | None = None


def load_coverage(lookups: Lookups, name: str, asked: CoverageFilters) -> CoveragePage | None:
    """Return the page of the release called `name`; None if there is none."""
    release = lookups.release(name)
    if release is None:
        return None
    held = _held(lookups, release, asked.kind)
    packages = Counter(column for _, column in held)
    wanted, reference, fault = {*held}, asked.reference, None
    other = lookups.release(reference)
    if other is not None:
        wanted = {*_held(lookups, other, asked.kind)}
    else:
        if reference not in packages:
            fault = f"Neither a release nor a column is called {reference}." if reference else None
            reference = min(packages, key=lambda each: (-packages[each], each), default="")
        having = [package for package, column in held if column == reference]
        wanted = {(package, column) for package in having for column in packages}
    missing = wanted - held.keys()
    columns = sorted(
        packages.keys() | {column for _, column in missing},
        key=lambda each: (-packages[each], each),
    )
    gaps = Counter(column for _, column in missing)
    rows = sorted({package for package, _ in missing})
    shown = paginated(len(rows), page_number(asked.page), PAGE_ROWS)
    return CoveragePage(
        release=release,
        asked=asked,
        reference=reference,
        columns=tuple(CoverageColumn(each, packages[each], gaps[each]) for each in columns),
        rows=tuple(
            CoverageRow(
                package,
                tuple(
                    None if (package, column) in missing else held.get((package, column), 0)
                    for column in columns
                ),
            )
            for package in rows[shown.rows]
        ),
        row_count=len(rows),
        page=shown.page,
        page_count=shown.page_count,
        fault=fault if asked.by in ("", *KINDS) else f"There are no columns by {asked.by}.",
    )


def _held(lookups: Lookups, release: Release, by: str) -> dict[tuple[str, str], int]:
    """Return how many binaries of each package a release has for each column."""
    found: Counter[tuple[str, str]] = Counter()
    if by == "stack":
        packages = lookups.words["package"]
        for package, stack, binaries in packages_in_stacks(lookups.conn, release.id):
            if stack in lookups.stacks:
                found[packages[package], lookups.stacks[stack].name] = binaries
        return found
    for (name, target), count in counts(lookups, release, None, "package", "target").items():
        column = lookups.families[target] if by == "family" else target
        found[name, column] += count.specs
    return found
