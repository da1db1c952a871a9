"""`/packages`, `/releases` and `/stacks`: all of a kind, filtered and sorted.

Each list is also JSON and CSV.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.model import INSTALLED
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    without,
)
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.names.scope import UnknownNameError, named_conditions
from spack_cache_db.query.open.lookups import Lookups, filled_tables
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import Rows
from spack_cache_db.query.stored.package_data import (
    known_packages,
    versions_behind,
)
from spack_cache_db.query.stored.recipe_facts import RECIPE_KINDS, packages_with
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
from spack_cache_db.site.names_for_people import sentence
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.processor_columns import (
    MACHINE_KINDS,
    NO_COLUMNS,
    NO_COUNTS,
    ProcessorCounts,
    counts_by_processor,
    processor_columns,
)
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

LIST_ROWS = {"packages": 50, "releases": 100, "stacks": 100}
"""Rows on a page of each list; those of packages have a cell for each processor."""
FAULTS = {
    "release": "There is no release {}: all are shown.",
    "stack": "There is no stack {}: all are shown.",
    "host": "No package in this database runs on {}.",
    **dict.fromkeys(
        ("target", "has", "lacks"), "No package in this database is for the target {}."
    ),
    "compiler": "No package in this database has the Compiler {}.",
    "os": "No package in this database has the OS {}.",
    "stable": "No package in this database has {}.",
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
        classes = []
        if self.kind == "count":
            classes.append("count")
        if self.is_minor:
            classes.append("minor")
        return " ".join(classes)


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


def listed(
    site: Site, request: PageRequest, kind: str, form: str | None
) -> PageResponse:
    """Return `/packages`, `/releases` or `/stacks`, as a page, `.json` or `.csv`."""
    filters = ListFilters.parse(request.pairs)
    page = load_list(site.lookups, kind, filters)
    if form is not None:
        return _as_data(page, form)

    # A static list has no other pages.
    rows = page.in_order()
    if not site.settings.is_static:
        rows = rows[page.window.rows]
    processors = NO_COLUMNS
    counts = {}
    if kind == "packages" and not page.is_missing:
        names = [row["name"] for row in rows]
        of_package = processors_of_packages(site.lookups, names, page.conditions)
        processors = processor_columns(
            site.lookups, of_package.values(), page.conditions
        )
        for name in names:
            counts[name] = processors.in_order(of_package.get(name, NO_COUNTS))
    links = None
    if page.rows:
        links = DataLinks.of_page(f"/{kind}", filters.address())
    return site.page(
        request,
        "list.html",
        page=page,
        rows=rows,
        processors=processors,
        counts=counts,
        filters=filters,
        links=links,
        feed=_feed_of(kind, filters, page),
    )


def _feed_of(kind: str, filters: ListFilters, page: ListPage) -> str | None:
    """Return the address of the feed of a list; None for a list without one.

    Packages have one if a maintainer, a license or a tag chooses them.
    """
    if kind == "releases":
        return Topic().feed
    topic = Topic(
        stack=filters.stack or None,
        host=filters.host or None,
        maintainer=filters.maintainer or None,
        license=filters.license or None,
        tag=filters.tag or None,
    )
    # A feed of an unknown name would be an error.
    if kind != "packages" or not topic.recipe_names or page.faults:
        return None
    return topic.feed


def _as_data(page: ListPage, form: str) -> PageResponse:
    """Return a list as JSON or CSV; an error for a wrong filter or an empty list."""
    if page.notices:
        return refused(" ".join(page.notices), form)
    if not page.rows:
        none = f"no {page.kind}"
        if page.total:
            none = f"none of {page.total:,} {page.kind} matches"
        return refused(f"{none} in this database", form, 404)
    rows = Rows(page.csv_columns, page.in_order())
    return data(form_of(rows.records, rows, form), form)


def load_list(lookups: Lookups, kind: str, filters: ListFilters) -> ListPage:
    """Return the list of packages, of releases, or of stacks without `root`."""
    if kind == "packages":
        return load_packages(lookups, filters)
    records = lookups.releases if kind == "releases" else lookups.stacks
    rows = []
    for record in records.values():
        row = {}
        for field in RECORDS[kind]:
            # `spec_count` becomes `specs`.
            row[field.replace("_count", "s")] = getattr(record, field)
        # Stacks have no kind.
        has_kind = filters.kind in ("", row.get("kind"))
        if has_kind and filters.has_text(row["name"]):
            rows.append(row)
    return ListPage(kind, filters, tuple(rows), len(records), COLUMNS[kind])


def load_packages(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages, compared with Spack by the filters `behind` and
    `missing`.
    """
    page = _with_binary(lookups, filters)
    if not (filters.behind or filters.missing):
        return page
    fault = _fault_of_comparison(lookups, filters)
    if fault is not None:
        return replace(page, faults=(*page.faults, fault))
    if filters.behind:
        return _behind(lookups.conn, page)
    return _missing(lookups, page)


def _fault_of_comparison(lookups: Lookups, filters: ListFilters) -> str | None:
    """Return why packages cannot be compared with Spack's; None if they can."""
    if "known_packages" not in filled_tables(lookups.conn):
        return "This database has no package data: it cannot be compared with Spack."
    # A package without any binary is neither behind, nor does it lack some of them.
    if filters.missing and (filters.behind or filters.lacks):
        other = "behind" if filters.behind else "lacks"
        return f"missing and {other} exclude each other: ask for one of them."
    return None


def _with_binary(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages that have a binary."""
    every = lookups.once(PACKAGES, lambda: _read_packages(lookups.conn))
    # If two sources disagree about the package of a hash, a listed package may have no
    # binary.
    rows = [row for row in every.values() if row["specs"]]
    conditions = {
        name: _condition(lookups, name, value)
        for name, value in filters.pairs
        if name in FAULTS
    }
    faults = []
    for name in RECIPE_KINDS:
        value = getattr(filters, name)
        if value:
            try:
                (conditions[name],) = named_conditions(lookups, **{name: value})
            except UnknownNameError as error:
                faults.append(sentence(str(error)))
                # No package has it.
                conditions[name] = Condition("package", value, OneOf(frozenset()))
    for name, condition in conditions.items():
        if name in FAULTS and not _is_known(lookups, condition):
            faults.append(FAULTS[name].format(condition.text))
    page = ListPage(
        "packages",
        filters,
        tuple(row for row in rows if filters.has_text(row["name"])),
        len(rows),
        COLUMNS["packages"],
        tuple(faults),
        _package_query(lookups, filters, conditions.get("has")),
    )
    if not conditions:
        return page
    return _counted_again(lookups, page, conditions, every)


def _read_packages(conn: sqlite3.Connection) -> dict[str, ListRow]:
    """Return the row of each package without filters, by name."""
    names = [column.name for column in COLUMNS["packages"]]
    packages = {}
    for values in select(conn, PACKAGES):
        row = dict(zip(names, values, strict=True))
        packages[row["name"]] = row
    return packages


def _is_known(lookups: Lookups, condition: Condition) -> bool:
    """Return whether the database has the name that a filter asks for."""
    if condition.kind in PLACES:
        # An unknown release or stack has the id 0.
        return bool(condition.value)
    return all(words_with(lookups, condition).values())


def _counted_again(
    lookups: Lookups,
    page: ListPage,
    conditions: Mapping[str, Condition],
    every: Mapping[str, ListRow],
) -> ListPage:
    """Return a list with only the binaries that satisfy conditions.

    Args:
        lookups: the database.
        page: the list without these conditions.
        conditions: the conditions by the names of their filters.
        every: the row of each package without filters.
    """
    lacks = conditions.get("lacks")
    # An unknown release or stack is ignored.
    known = tuple(
        condition
        for name, condition in conditions.items()
        if name != "lacks" and condition.value != 0
    )

    # The rows with the numbers of matching configurations and binaries.
    versions = lookups.words["version"]
    counts = count_packages(lookups, known, lacks)
    rows = []
    for name, (configurations, specs, version) in sorted(counts.items()):
        if page.filters.has_text(name):
            row = {
                **every[name],
                "version": versions[version],
                "configurations": configurations,
                "specs": specs,
            }
            rows.append(row)

    # Where the newest matching binaries are, unless a release is chosen.
    newest = None
    if counts and page.build_filters and not page.filters.release:
        newest = newest_release(lookups, known, lacks)

    # The last two columns ignore the filters.
    columns = list(page.columns[:-2])
    for column in page.columns[-2:]:
        columns.append(column._replace(title=f"{column.title}, any build"))
    return replace(
        page,
        rows=tuple(rows),
        columns=tuple(columns),
        conditions=known,
        newest=newest,
    )


def processors_of_packages(
    lookups: Lookups, names: Sequence[str], conditions: Conditions
) -> Mapping[str, ProcessorCounts]:
    """Return the number of binaries of some packages that satisfy conditions, for each
    kind of processor.
    """
    conditions = without(conditions, "package", *MACHINE_KINDS)
    if conditions:
        package = Condition("package", "", OneOf(frozenset(names)))
        results = matching(lookups, (package, *conditions), in_order=False)
        return counts_by_processor(lookups, results)

    # Without conditions, all packages are counted once.
    def count() -> Mapping[str, ProcessorCounts]:
        return counts_by_processor(lookups, matching(lookups, ()))

    of_package = lookups.once(processors_of_packages, count)
    return {name: of_package[name] for name in names if name in of_package}


def _behind(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return the rows whose newest version is older than Spack's latest."""
    behind = versions_behind(conn)
    rows = []
    for row in page.rows:
        # Spack does not know every version of which there is a binary.
        newer_count, latest = behind.get((row["name"], row["version"]), (0, ""))
        if newer_count:
            rows.append({**row, "latest": latest, "behind": newer_count})
    columns = (*page.columns[:2], *COLUMNS["behind"], *page.columns[2:])
    return replace(page, rows=tuple(rows), columns=columns)


def _missing(lookups: Lookups, page: ListPage) -> ListPage:
    """Return Spack's packages without a binary instead of the rows of a page."""
    has_binary = {row["name"] for row in page.rows}
    packages = list(known_packages(lookups.conn))
    # Only those with the maintainer, license and tag of the filters.
    for kind in RECIPE_KINDS:
        name = getattr(page.filters, kind)
        if name:
            named = packages_with(lookups, kind).get(name, ())
            packages = [package for package in packages if package[0] in named]
    rows = []
    for name, latest, dependents, summary in packages:
        if name not in has_binary and page.filters.has_text(name):
            row = {
                "name": name,
                "latest": latest,
                "dependents": dependents,
                "summary": summary,
                "specs": 0,
            }
            rows.append(row)
    return replace(
        page, rows=tuple(rows), total=len(packages), columns=COLUMNS["missing"]
    )


def _condition(lookups: Lookups, name: str, value: str) -> Condition:
    """Return the condition of a filter; an unknown release or stack has the id 0."""
    if name in PLACES:
        return place_condition(lookups, name, value)
    if name not in ("has", "lacks"):
        return condition_of(name, value)
    # A target, all targets of a family, or a release.
    targets = {
        target
        for target, family in lookups.families.items()
        if value in (target, family)
    }
    if not targets and lookups.release(value):
        return place_condition(lookups, "release", value)
    return Condition("target", value, OneOf(frozenset(targets)))


def _package_query(
    lookups: Lookups, filters: ListFilters, has: Condition | None
) -> str:
    """Return the query string that filters a package's page like the list.

    `has` is the condition of the filter `has`, which a package's page does not have.
    """
    # The first pair of each name counts.
    pairs = filters.chosen
    is_one_target = filters.target != "" and not filters.target.endswith(":")
    if has is not None and has.kind == "release":
        pairs.append(("release", has.text))
    # Two conditions on the target: a single target is stricter than its family.
    elif has is not None and not is_one_target:
        is_family = has.text in lookups.families.values()
        target = f"{has.text}:" if is_family else has.text
        pairs.insert(0, ("target", target))
    return Filters.parse(pairs).query()
