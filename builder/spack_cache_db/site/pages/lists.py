"""The lists of all packages, releases and stacks, filtered and sorted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from operator import contains
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from spack_cache_db.query.conditions import COLUMNS as CONFIGURATION_COLUMNS
from spack_cache_db.query.database import Lookups, Release, Stack, filled_tables, select
from spack_cache_db.query.packages import known_packages, versions_behind
from spack_cache_db.query.totals import PACKAGES, Count, count_by, releases_with
from spack_cache_db.site.pages.filters import (
    PLACES,
    AddressFields,
    Pagination,
    condition_of,
    hosts_of,
    page_number,
    paginated,
)

PAGE_ROWS = 200
CONFIGURATION_FILTERS = ("host", "target", "compiler", "os")
"""Filters of configurations, which a package's page has as well."""
FAULTS = {
    "release": "There is no release {}: all are shown.",
    "stack": "There is no stack {}: all are shown.",
    "host": "No package in this database runs on {}.",
    "has": "No package in this database is for the target {}.",
    "lacks": "No package in this database is for the target {}.",
    "target": "No package in this database is for the target {}.",
    "compiler": "No package in this database has the Compiler {}.",
    "os": "No package in this database has the OS {}.",
}
"""Messages about filters with unknown names."""

ListRow = dict[str, Any]


class ListColumn(NamedTuple):
    """A column of a list; `name` is its key in addresses and rows.

    The default order is descending with `most_first`. Phones leave a minor column out.
    """

    name: str
    title: str
    is_count: bool = False
    most_first: bool = False
    is_minor: bool = False
    is_sortable: bool = True

    @property
    def classes(self) -> Markup:
        """The class attribute of its cells."""
        names = ["count"] * self.is_count + ["minor"] * self.is_minor
        return Markup(f' class="{" ".join(names)}"' if names else "")

    def of(self, record: Release | Stack) -> Any:
        """Return the value of a record."""
        return getattr(
            record, f"{self.name.removesuffix('s')}_count" if self.is_count else self.name
        )


def _count(name: str, title: str = "", *, is_minor: bool = False) -> ListColumn:
    title = title or name.capitalize()
    return ListColumn(name, title, is_count=True, most_first=True, is_minor=is_minor)


_SPECS = _count("specs", "Binaries")
_LATEST = ListColumn("latest", "Spack has", is_sortable=False)
COLUMNS: Mapping[str, tuple[ListColumn, ...]] = {
    "packages": (
        ListColumn("name", "Package"),
        ListColumn("version", "Newest version", is_sortable=False),
        _count("configurations", is_minor=True),
        _SPECS,
        _count("releases", is_minor=True),
        ListColumn("last_seen", "Last snapshot", most_first=True, is_minor=True),
    ),
    "behind": (_LATEST, _count("behind", "Versions behind")),
    "missing": (
        ListColumn("name", "Package"),
        _LATEST,
        _count("dependents", "Depend on it"),
        ListColumn("summary", "Description", is_minor=True, is_sortable=False),
    ),
    "releases": (
        ListColumn("position", "Release"),
        ListColumn("kind", "Kind", is_minor=True),
        ListColumn("date", "Snapshot of", most_first=True, is_minor=True),
        _count("packages"),
        _SPECS,
    ),
    "stacks": (ListColumn("name", "Stack"), _count("releases"), _SPECS),
}


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

    def values(self, *names: str) -> dict[str, str]:
        """Return the values of those of some filters that are set."""
        return {name: value for name in names if (value := getattr(self, name))}

    def has_text(self, name: str) -> bool:
        """Return whether a name has the text of the filter `q`."""
        return self.q.strip().lower() in name.lower()


class NewestRelease(NamedTuple):
    """The newest release with packages that match a list's filters, and their number."""

    subject: str
    release: str
    packages: int


@dataclass(frozen=True, slots=True)
class ListPage:
    """The content of a list.

    Attributes:
        total: the number of rows without filters.
        package_query: the query string that filters a package's page like the list.
        newest: only with filters of configurations and without a release.
    """

    kind: str
    filters: ListFilters
    rows: tuple[ListRow, ...]
    total: int
    columns: tuple[ListColumn, ...]
    faults: tuple[str, ...] = ()
    package_query: str = ""
    newest: NewestRelease | None = None

    @property
    def sort(self) -> ListColumn:
        """The column by which the rows are sorted."""
        matches = [item for item in self.columns if item.name == self.filters.sort]
        return next((column for column in matches if column.is_sortable), self.columns[0])

    @property
    def notices(self) -> tuple[str, ...]:
        """The faults, and messages about an order that the list does not have."""
        names = [column.name for column in self.columns if column.is_sortable]
        filters, notices = self.filters, [*self.faults]
        if filters.sort not in ("", *names):
            message = f"This list cannot be sorted by {filters.sort}"
            notices.append(f"{message}: choose one of {', '.join(names)}.")
        if filters.order not in ("", "asc", "desc"):
            notices.append(f"There is no order {filters.order}: choose asc or desc.")
        return tuple(notices)

    @property
    def is_descending(self) -> bool:
        """Whether the rows are in descending order."""
        order = self.filters.order
        return order == "desc" if order else self.sort.most_first

    def sorted_by(self, column: ListColumn) -> str | None:
        """Return the address of the list sorted by a column, or reversed if it already is."""
        if not column.is_sortable:
            return None
        descending = not self.is_descending if column == self.sort else column.most_first
        return self.filters.address(sort=column.name, order="desc" if descending else "asc")

    @property
    def window(self) -> Pagination:
        """The part of the sorted rows that this page shows."""
        return paginated(len(self.rows), page_number(self.filters.page), PAGE_ROWS)

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
    records: Mapping[int, Release] | Mapping[int, Stack]
    records = lookups.releases if kind == "releases" else lookups.stacks
    rows = []
    for record in records.values():
        if filters.has_text(record.name) and filters.kind in ("", getattr(record, "kind", "")):
            first, *others = ((column.name, column.of(record)) for column in COLUMNS[kind])
            rows.append(dict([first, ("name", record.name), *others]))
    return ListPage(kind, filters, tuple(rows), len(records), COLUMNS[kind])


def load_packages(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages, compared with Spack by the filters `behind` and `missing`."""
    page = _with_binary(lookups, filters)
    if not filters.behind and not filters.missing:
        return page
    fault = None
    if "known_packages" not in filled_tables(lookups.conn):
        fault = "This database has no package data: it cannot be compared with Spack."
    elif filters.missing and (filters.behind or filters.lacks):
        other = "behind" if filters.behind else "lacks"
        fault = f"missing and {other} exclude each other: ask for one of them."
    if fault is not None:
        return replace(page, faults=(*page.faults, fault))
    return _behind(lookups.conn, page) if filters.behind else _missing(lookups.conn, page)


def _with_binary(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages that have a binary."""
    columns = COLUMNS["packages"]

    def read() -> dict[str, ListRow]:
        names = [column.name for column in columns]
        rows = select(lookups.conn, PACKAGES)
        return {row[0]: dict(zip(names, row, strict=True)) for row in rows}

    every = lookups.once(PACKAGES, read)
    # If two sources disagree about the package of a hash, a listed package may have no binary.
    rows = matches = {name: row for name, row in every.items() if row["specs"]}
    if filters.values(*PLACES, *CONFIGURATION_FILTERS, "has", "lacks"):
        counts = _counts(lookups, filters)
        lookups.learn({count.newest for count in counts.values()}, set())
        versions = lookups.words["version"]
        matches = {
            name: every[name]
            | {"version": versions[newest], "configurations": configurations, "specs": specs}
            for name, (configurations, specs, newest) in sorted(counts.items())
        }
        # These two columns ignore the filters.
        columns = tuple(
            column._replace(title=f"{column.title} overall")
            if column.name in ("releases", "last_seen")
            else column
            for column in columns
        )
    return ListPage(
        "packages",
        filters,
        tuple(row for row in matches.values() if filters.has_text(row["name"])),
        len(rows),
        columns,
        _faults(lookups, filters),
        _package_query(lookups, filters),
        newest_release(lookups, filters) if matches else None,
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
    filters = replace(page.filters, sort=page.filters.sort or "behind")
    return replace(page, filters=filters, rows=tuple(rows), columns=columns)


def _missing(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return Spack's packages without a binary instead of the rows of a page."""
    has_binary, packages = {row["name"] for row in page.rows}, [*known_packages(conn)]
    rows = (
        {"name": name, "latest": latest, "dependents": dependents, "summary": summary, "specs": 0}
        for name, latest, dependents, summary in packages
        if name not in has_binary and page.filters.has_text(name)
    )
    columns = COLUMNS["missing"]
    filters = replace(page.filters, sort=page.filters.sort or "dependents")
    return replace(page, filters=filters, rows=tuple(rows), total=len(packages), columns=columns)


def newest_release(lookups: Lookups, filters: ListFilters) -> NewestRelease | None:
    """Return the newest release with matching packages; None if the filters name a release."""
    values = filters.values(*CONFIGURATION_FILTERS)
    if filters.release or not values:
        return None
    candidates = set(lookups.releases)
    for name, value in values.items():
        column = CONFIGURATION_COLUMNS[name]
        candidates &= releases_with(lookups.conn, column, _words_of(lookups, name, value))
    for key, release in lookups.releases.items():
        if key in candidates:
            counts = _counts(lookups, replace(filters, release=release.name))
            if counts:
                return NewestRelease(", ".join(values.values()), release.name, len(counts))
    return None


def _package_query(lookups: Lookups, filters: ListFilters) -> str:
    values = filters.values(*PLACES, *CONFIGURATION_FILTERS)
    target = values.get("target", "")
    if _release_of(lookups, filters.has):
        values.setdefault("release", filters.has)
    elif filters.has and (not target or target.endswith(":")):
        # Two conditions on the target: a single target is stricter than its family.
        is_family = filters.has in lookups.families.values()
        values["target"] = f"{filters.has}:" if is_family else filters.has
    order = (*PLACES, *CONFIGURATION_FILTERS)
    query = urlencode(sorted(values.items(), key=lambda item: order.index(item[0])))
    return query and f"?{query}"


def _counts(lookups: Lookups, filters: ListFilters) -> dict[str, Count]:
    """Return the counts of each package that matches the filters, except `q`."""
    has, lacks = (_release_of(lookups, name) for name in (filters.has, filters.lacks))
    release, stack = lookups.release(filters.release) or has, lookups.stack(filters.stack)
    allowed: dict[str, set[str]] = {}
    for name, value in filters.values(*CONFIGURATION_FILTERS).items():
        column, words = CONFIGURATION_COLUMNS[name], _words_of(lookups, name, value)
        allowed[column] = allowed.get(column, words) & words
    if filters.has and not has:
        words = _targets_of(lookups, filters.has)
        allowed["target"] = allowed.get("target", words) & words
    unwanted = set() if lacks else _targets_of(lookups, filters.lacks)
    if unwanted:
        allowed.setdefault("target", {*lookups.words["target"].values()})
    columns = [*allowed]
    counts: dict[str, Count] = {}
    excluded = _packages_in(lookups, lacks) if lacks else set()
    for (package, *cells), count in count_by(lookups, release, stack, "package", *columns).items():
        if unwanted and cells[columns.index("target")] in unwanted:
            excluded.add(package)
        if all(map(contains, allowed.values(), cells)):
            counts[package] = counts[package] + count if package in counts else count
    if has and release != has:
        excluded |= counts.keys() - _packages_in(lookups, has)
    return {package: count for package, count in counts.items() if package not in excluded}


def _packages_in(lookups: Lookups, release: Release) -> set[str]:
    return {package for (package,) in count_by(lookups, release, None, "package")}


def _words_of(lookups: Lookups, name: str, value: str) -> set[str]:
    """Return the words of a column that satisfy a filter."""
    holds: Callable[[Any], bool] = condition_of(name, value).holds
    return set(filter(holds, lookups.words[CONFIGURATION_COLUMNS[name]].values()))


def _targets_of(lookups: Lookups, name: str) -> set[str]:
    """Return the targets with a name, or in a family with that name."""
    return {target for target, family in lookups.families.items() if name in (target, family)}


def _release_of(lookups: Lookups, name: str) -> Release | None:
    """Return the release in a `has` or `lacks` filter; None for a target or family."""
    is_target = name in lookups.families or name in lookups.families.values()
    return None if is_target else lookups.release(name)


def _faults(lookups: Lookups, filters: ListFilters) -> tuple[str, ...]:
    """Return messages about names in the filters that the database does not have."""
    families, releases = {*lookups.families.values()}, {*lookups.release_names(lookups.releases)}
    targets = {*lookups.families, *families, *(f"{name}:" for name in families)}
    known = {
        "release": releases,
        "stack": {stack.name for stack in lookups.stacks.values()},
        "host": {name for names in hosts_of(lookups.families).values() for name in names},
        "has": targets | releases,
        "lacks": targets | releases,
        "target": targets,
    }
    return tuple(
        FAULTS[name].format(value)
        for name, value in filters.values(*FAULTS).items()
        if not (value in known[name] if name in known else _words_of(lookups, name, value))
    )


def list_rows(page: ListPage, start: str) -> Markup:
    """Return the body of a list's table; three times as fast as a template.

    `start` is the address of the folder that contains the pages of all names.
    """
    query = escape(page.package_query)
    columns = [(item.name, item.is_count, f"<td{item.classes}>") for item in page.columns[1:]]
    lines = []
    for row in page.in_order()[page.window.rows]:
        name = row["name"]
        line = f'<tr><th scope="row"><a href="{start}{quote(name)}{query}">{escape(name)}</a></th>'
        for column, is_count, opening in columns:
            value = row[column]
            text = "" if value is None else f"{value:,}" if is_count else escape(value)
            line += f"{opening}{text}</td>"
        lines.append(f"{line}</tr>\n")
    # Names and texts are escaped or quoted above; numbers do not need it.
    return Markup("".join(lines))
