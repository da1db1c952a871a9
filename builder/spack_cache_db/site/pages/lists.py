"""The lists of all packages, releases and stacks, filtered and sorted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from spack_cache_db.query.conditions.conditions import Condition, OneOf
from spack_cache_db.query.open.lookups import Lookups, filled_tables
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import Rows
from spack_cache_db.query.stored.package_data import (
    known_packages,
    versions_behind,
)
from spack_cache_db.query.stored.totals import (
    PACKAGES,
    count_packages,
    newest_release,
    words_with,
)
from spack_cache_db.site.filters import (
    PLACES,
    AddressFields,
    DataLinks,
    Filters,
    Pagination,
    condition_of,
    paginated,
    place_condition,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

LIST_ROWS = 200
FAULTS = {
    "release": "There is no release {}: all are shown.",
    "stack": "There is no stack {}: all are shown.",
    "host": "No package in this database runs on {}.",
    **dict.fromkeys(
        ("target", "has", "lacks"), "No package in this database is for the target {}."
    ),
    "compiler": "No package in this database has the Compiler {}.",
    "os": "No package in this database has the OS {}.",
}
"""Messages about filters with unknown names."""

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
        return " ".join(["count"] * (self.kind == "count") + ["minor"] * self.is_minor)


RECORDS = {
    "releases": ("position", "name", "kind", "date", "package_count", "spec_count"),
    "stacks": ("name", "release_count", "spec_count"),
}
"""The fields of records in a list; `spec_count` is called `specs` there."""
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
        has: a target, family or release for which a package must have a binary.
        lacks: a target, family or release for which a package must not have a binary.
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
    has: str = ""
    lacks: str = ""
    behind: str = ""
    missing: str = ""
    sort: str = ""
    order: str = ""
    page: str = ""

    def has_text(self, name: str) -> bool:
        """Return whether a name has the text of the filter `q`."""
        return self.q.strip().lower() in name.lower()


@dataclass(frozen=True, slots=True)
class ListPage:
    """The content of a list.

    Attributes:
        total: the number of rows without filters.
        package_query: the query string that filters a package's page like the list.
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
    newest: tuple[str, int] | None = None

    @property
    def sortable(self) -> dict[str, ListColumn]:
        """The columns by which the list can be sorted, by name."""
        return {column.name: column for column in self.columns if column.kind != "text"}

    @property
    def sort(self) -> ListColumn:
        """The column by which the rows are sorted."""
        names = (self.filters.sort, *SORTED_BY, self.columns[0].name)
        return next(self.sortable[name] for name in names if name in self.sortable)

    @property
    def notices(self) -> tuple[str, ...]:
        """The faults, and messages about an order that the list does not have."""
        filters, notices = self.filters, [*self.faults]
        if filters.sort not in ("", *self.sortable):
            message = f"This list cannot be sorted by {filters.sort}"
            notices.append(f"{message}: choose one of {', '.join(self.sortable)}.")
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
        descending = (
            not self.is_descending if column == self.sort else column.is_most_first
        )
        return self.filters.address(
            sort=column.name, order="desc" if descending else "asc"
        )

    @property
    def window(self) -> Pagination:
        """The part of the sorted rows that this page shows."""
        return paginated(len(self.rows), self.filters.page, LIST_ROWS)

    @property
    def csv_columns(self) -> list[str]:
        """The columns of the list as CSV, the name first."""
        return [*dict.fromkeys(("name", *(column.name for column in self.columns)))]

    def in_order(self) -> list[ListRow]:
        """Return the sorted rows; rows without a value come last."""
        key = self.sort.name
        rows = [row for row in self.rows if row[key] is not None]
        rows.sort(key=lambda row: row[key], reverse=self.is_descending)
        return rows + [row for row in self.rows if row[key] is None]


def load_list(lookups: Lookups, kind: str, filters: ListFilters) -> ListPage:
    """Return the list of packages, of releases, or of stacks without `root`."""
    if kind == "packages":
        return load_packages(lookups, filters)
    rows = [
        {
            field.replace("_count", "s"): getattr(record, field)
            for field in RECORDS[kind]
        }
        for record in getattr(lookups, kind).values()
    ]
    matches = (row for row in rows if filters.kind in ("", row.get("kind")))
    named = tuple(row for row in matches if filters.has_text(row["name"]))
    return ListPage(kind, filters, named, len(rows), COLUMNS[kind])


def load_packages(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages, compared with Spack by the filters `behind` and
    `missing`.
    """
    page = _with_binary(lookups, filters)
    if not (filters.behind or filters.missing):
        return page
    if "known_packages" not in filled_tables(lookups.conn):
        fault = "This database has no package data: it cannot be compared with Spack."
    elif filters.missing and (filters.behind or filters.lacks):
        other = "behind" if filters.behind else "lacks"
        fault = f"missing and {other} exclude each other: ask for one of them."
    else:
        return (
            _behind(lookups.conn, page)
            if filters.behind
            else _missing(lookups.conn, page)
        )
    return replace(page, faults=(*page.faults, fault))


def _with_binary(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages that have a binary."""
    conn, columns, newest = lookups.conn, COLUMNS["packages"], None
    names = [column.name for column in columns]
    every = lookups.once(
        PACKAGES,
        lambda: {
            row[0]: dict(zip(names, row, strict=True)) for row in select(conn, PACKAGES)
        },
    )
    # If two sources disagree about the package of a hash, a listed package may have no
    # binary.
    rows = matches = [row for row in every.values() if row["specs"]]
    conditions = {
        name: _condition(lookups, name, value)
        for name, value in filters.pairs
        if name in FAULTS
    }
    faults = tuple(
        FAULTS[name].format(condition.text)
        for name, condition in conditions.items()
        if not (
            condition.asked
            if condition.kind in PLACES
            else words_with(lookups, condition)
        )
    )
    if conditions:
        lacks, versions = conditions.pop("lacks", None), lookups.words["version"]
        # An unknown release or stack is ignored.
        known = tuple(
            condition for condition in conditions.values() if condition.asked != 0
        )
        counts = count_packages(lookups, known, lacks)
        matches = [
            every[name]
            | {
                "version": versions[version],
                "configurations": configurations,
                "specs": specs,
            }
            for name, (configurations, specs, version) in sorted(counts.items())
        ]
        if matches and filters.conditions and not filters.release:
            newest = newest_release(lookups, known, lacks)
        # The last two columns ignore the filters.
        overall = (
            column._replace(title=f"{column.title} overall") for column in columns[-2:]
        )
        columns = (*columns[:-2], *overall)
    return ListPage(
        "packages",
        filters,
        tuple(row for row in matches if filters.has_text(row["name"])),
        len(rows),
        columns,
        faults,
        _package_query(lookups, filters, conditions.get("has")),
        newest,
    )


def _behind(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return the rows whose newest version is older than Spack's latest."""
    behind = versions_behind(conn)
    rows = (
        {**row, "latest": latest, "behind": newer}
        for row in page.rows
        for newer, latest in (behind.get((row["name"], row["version"]), (0, "")),)
        if newer
    )
    columns = (*page.columns[:2], *COLUMNS["behind"], *page.columns[2:])
    return replace(page, rows=tuple(rows), columns=columns)


def _missing(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return Spack's packages without a binary instead of the rows of a page."""
    has_binary, packages = {row["name"] for row in page.rows}, [*known_packages(conn)]
    rows = (
        {
            "name": name,
            "latest": latest,
            "dependents": dependents,
            "summary": summary,
            "specs": 0,
        }
        for name, latest, dependents, summary in packages
        if name not in has_binary and page.filters.has_text(name)
    )
    return replace(
        page, rows=tuple(rows), total=len(packages), columns=COLUMNS["missing"]
    )


def _condition(lookups: Lookups, name: str, value: str) -> Condition:
    """Return the condition of a filter; an unknown release or stack has the id 0."""
    families = lookups.families.items()
    targets = frozenset(
        target for target, family in families if value in (target, family)
    )
    if name in PLACES:
        return place_condition(lookups, name, value)
    if name in ("has", "lacks") and lookups.release(value) and not targets:
        return place_condition(lookups, "release", value)
    if name in ("has", "lacks"):
        return Condition("target", value, OneOf(targets))
    return condition_of(name, value)


def _package_query(
    lookups: Lookups, filters: ListFilters, has: Condition | None
) -> str:
    # The first pair of each name counts.
    pairs = filters.chosen
    if has is not None and has.kind == "release":
        pairs.append(("release", has.text))
    elif has is not None and (filters.target or ":").endswith(":"):
        # Two conditions on the target: a single target is stricter than its family.
        is_family = has.text in lookups.families.values()
        pairs.insert(0, ("target", f"{has.text}:" if is_family else has.text))
    return Filters.parse(pairs).query()


def listed(
    site: Site, request: PageRequest, kind: str, form: str | None
) -> PageResponse:
    """Return `/packages`, `/releases` or `/stacks`, as a page, `.json` or `.csv`."""
    filters = ListFilters.parse(request.pairs)
    page = load_list(site.lookups, kind, filters)
    if form is not None:
        if page.notices:
            return refused(" ".join(page.notices), form)
        if not page.rows:
            none = (
                f"none of {page.total:,} {kind} matches" if page.total else f"no {kind}"
            )
            return refused(f"{none} in this database", form, 404)
        rows = Rows(page.csv_columns, page.in_order())
        return data(form_of(rows.records, rows, form), form)
    return site.page(
        request,
        "list.html",
        page=page,
        filters=filters,
        links=DataLinks.of_page(f"/{kind}", filters.address()) if page.rows else None,
        feed=Topic().feed if kind == "releases" else None,
    )
