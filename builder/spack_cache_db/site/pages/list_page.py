"""The content of a list, as records: its columns, filters, rows and order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.model import INSTALLED
from spack_cache_db.query.conditions.conditions import Conditions, without
from spack_cache_db.site.filters import AddressFields, Pagination, paginated

LIST_ROWS = {"packages": 50, "releases": 100, "stacks": 100}
"""Rows on a page of each list; those of packages have a cell for each processor."""
ListRow = dict[str, Any]


class ListColumn(NamedTuple):
    """A column of a list; `name` is its key in addresses and rows.

    A list can be sorted by all columns except texts. Phones leave a minor column out.
    """

    name: str
    title: str
    kind: Literal["name", "text", "count", "day"] = "name"
    is_minor: bool = False

    @property
    def is_most_first(self) -> bool:
        """Whether the default order of the column is descending."""
        return self.kind in ("count", "day")

    @property
    def classes(self) -> str:
        """The classes of its cells in HTML."""
        classes = []
        if self.kind == "count":
            classes.append("count")
        if self.is_minor:
            classes.append("minor")
        return " ".join(classes)


_SPECS = ListColumn("specs", "Binaries", "count")
_LATEST = ListColumn("latest", "Spack has", "text")
COLUMNS: Mapping[str, tuple[ListColumn, ...]] = {
    "packages": (
        ListColumn("name", "Package"),
        ListColumn("version", "Newest version", "text"),
        ListColumn("configurations", "Configurations", "count", is_minor=True),
        _SPECS,
        ListColumn("releases", "Releases", "count", is_minor=True),
        ListColumn("last_seen", "Last snapshot", "day", is_minor=True),
    ),
    "behind": (_LATEST, ListColumn("behind", "Versions behind", "count")),
    "missing": (
        ListColumn("name", "Package"),
        _LATEST,
        ListColumn("dependents", "Depend on it", "count"),
        ListColumn("summary", "Description", "text", is_minor=True),
    ),
    "releases": (
        ListColumn("position", "Release"),
        ListColumn("kind", "Kind", is_minor=True),
        ListColumn("date", "Snapshot of", "day", is_minor=True),
        ListColumn("packages", "Packages", "count"),
        _SPECS,
    ),
    "stacks": (
        ListColumn("name", "Stack"),
        ListColumn("releases", "Releases", "count"),
        _SPECS,
    ),
}
SORTED_BY = ("behind", "dependents")
"""Columns by which a list is sorted by default, if it has one; otherwise by the first
column.
"""


@dataclass(frozen=True, slots=True)
class ListFilters(AddressFields):
    """The filters, order and page of a list; an empty text is no filter.

    Attributes:
        q: a part of the name, ignoring case.
        kind: only releases of this kind.
        host: the CPU target of a machine; only binaries that run on it count.
        stable: any text: branches such as `develop` and versions of git do not count.
        has: a target, family or release for which a package must have a binary.
        lacks: a target, family or release for which a package must not have a binary.
        maintainer: only packages whose recipe this account maintains.
        license: only packages with this license.
        tag: only packages whose recipe has this tag.
        behind: any text: only packages with binaries older than Spack's latest version.
        missing: any text: Spack's packages without a binary.
    """

    q: str = ""
    release: str = ""
    stack: str = ""
    kind: str = ""
    host: str = ""
    target: str = ""
    compiler: str = ""
    os: str = ""
    stable: str = ""
    has: str = ""
    lacks: str = ""
    maintainer: str = ""
    license: str = ""
    tag: str = ""
    behind: str = ""
    missing: str = ""
    sort: str = ""
    order: str = ""
    page: str = ""

    def has_text(self, name: str) -> bool:
        """Return whether a name has the text of the filter `q`."""
        # Most lists have no such filter, and a thousand names.
        return not self.q or self.q.strip().lower() in name.lower()


class Highlight(NamedTuple):
    """A row that the sentence above a list names: the `newest`, `develop`."""

    what: str
    name: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class ListPage:
    """The content of a list.

    Attributes:
        total: the number of rows without filters.
        package_query: the query string that filters a package's page like the list.
        conditions: the conditions on binaries that the database can compare.
        newest: the newest release with matching packages, and their number; only with
            filters of configurations and without a release.
    """

    kind: str
    filters: ListFilters
    rows: tuple[ListRow, ...]
    total: int
    columns: tuple[ListColumn, ...]
    faults: tuple[str, ...] = ()
    package_query: str = ""
    conditions: Conditions = ()
    newest: tuple[str, int] | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the list is of Spack's packages without a binary."""
        is_compared = bool(self.filters.missing) and not self.faults
        return self.kind == "packages" and is_compared

    @property
    def highlight(self) -> Highlight | None:
        """The newest of releases, or the largest of stacks; None of packages."""
        if not self.rows:
            return None
        first = self.rows[0]
        if self.kind == "releases":
            # Installations have no order in time.
            if first["kind"] == INSTALLED:
                return None
            more = f", with {counted(first['packages'], 'package')}"
            return Highlight("newest", first["name"], more)
        if self.kind == "stacks":
            # Of stacks of one size, the last one.
            *_, largest = sorted(self.rows, key=lambda row: row["specs"])
            return Highlight("largest", largest["name"])
        return None

    @property
    def sortable(self) -> dict[str, ListColumn]:
        """The columns by which the list can be sorted, by name."""
        return {column.name: column for column in self.columns if column.kind != "text"}

    @property
    def sort(self) -> ListColumn:
        """The column by which the rows are sorted."""
        sortable = self.sortable
        for name in (self.filters.sort, *SORTED_BY):
            if name in sortable:
                return sortable[name]
        return self.columns[0]

    @property
    def notices(self) -> tuple[str, ...]:
        """The faults, and messages about an order that the list does not have."""
        filters = self.filters
        notices = list(self.faults)
        if filters.sort not in ("", *self.sortable):
            columns = ", ".join(self.sortable)
            notices.append(
                f"This list cannot be sorted by {filters.sort}: choose one of {columns}."
            )
        if filters.order not in ("", "asc", "desc"):
            notices.append(f"There is no order {filters.order}: choose asc or desc.")
        return tuple(notices)

    @property
    def is_descending(self) -> bool:
        """Whether the rows are in descending order."""
        order = self.filters.order
        return order == "desc" if order else self.sort.is_most_first

    def sorted_by(self, column: ListColumn) -> str:
        """Return the address of the list sorted by a column, or reversed if it already
        is.
        """
        is_sorted = column == self.sort
        descending = not self.is_descending if is_sorted else column.is_most_first
        order = "desc" if descending else "asc"
        return self.filters.address(sort=column.name, order=order)

    @property
    def build_filters(self) -> Conditions:
        """The filters on how a binary was built and where it runs."""
        return without(self.filters.conditions, "stable")

    @property
    def window(self) -> Pagination:
        """The part of the sorted rows that this page shows."""
        rows_on_page = LIST_ROWS[self.kind]
        return paginated(len(self.rows), self.filters.page, rows_on_page)

    @property
    def csv_columns(self) -> list[str]:
        """The columns of the list as CSV, the name first."""
        others = [column.name for column in self.columns if column.name != "name"]
        return ["name", *others]

    def in_order(self) -> list[ListRow]:
        """Return the sorted rows; rows without a value come last."""
        key = self.sort.name
        with_value = [row for row in self.rows if row[key] is not None]
        without_value = [row for row in self.rows if row[key] is None]
        with_value.sort(key=lambda row: row[key], reverse=self.is_descending)
        return with_value + without_value
