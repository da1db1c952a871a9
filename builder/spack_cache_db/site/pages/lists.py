"""The lists of all packages, releases and stacks, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from operator import contains
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from spack_cache_db.query.conditions import COLUMNS as CONFIGURATION_COLUMNS
from spack_cache_db.query.database import Lookups, Release, select
from spack_cache_db.query.totals import PACKAGES, Count, count_by, releases_with
from spack_cache_db.site.pages.filters import (
    LABELS,
    PLACES,
    AddressFields,
    Pagination,
    condition_of,
    hosts_of,
    page_number,
    paginated,
)


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list.

    Attributes:
        name: the key in addresses and rows.
        title: the heading.
        is_count: whether the values are numbers.
        most_first: whether the default order is descending.
        is_minor: whether phones leave it out.
        is_sortable: whether the values of different rows can be compared.
    """

    name: str
    title: str
    is_count: bool = False
    most_first: bool = False
    is_minor: bool = False
    is_sortable: bool = True


PAGE_ROWS = 200


def _count(name: str, *, is_minor: bool = False) -> ListColumn:
    return ListColumn(name, name.capitalize(), is_count=True, most_first=True, is_minor=is_minor)


_SPECS = replace(_count("specs"), title="Binaries")
COLUMNS: Mapping[str, tuple[ListColumn, ...]] = {
    "packages": (
        ListColumn("name", "Package"),
        ListColumn("version", "Newest version", is_sortable=False),
        _count("configurations", is_minor=True),
        _SPECS,
        _count("releases", is_minor=True),
        ListColumn("last_seen", "Last snapshot", most_first=True, is_minor=True),
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
CONFIGURATION_FILTERS = ("host", "target", "compiler", "os")
"""Filters of configurations, which a package's page has as well."""

ListRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListFilters(AddressFields):
    """The filters, order and page of a list; an empty text is no filter.

    Attributes:
        q: a part of the name, ignoring case.
        release: only binaries of this release count.
        stack: only binaries of this stack count; with a release, of the stack in that release.
        kind: only releases of this kind.
        host: the CPU target of a machine; only binaries that run on it count.
        target: only binaries for this target count.
        compiler: only binaries of this compiler count; without a version, of all its versions.
        os: only binaries for this operating system count.
        has: a target, family or release for which a package must have a binary.
        lacks: a target, family or release for which a package must not have a binary.
        behind: any text: only packages of which Spack has a newer version.
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

    @property
    def narrowed(self) -> list[tuple[str, str]]:
        """The filters as pairs, without order and page."""
        return replace(self, sort="", order="", page="").pairs

    def address(self, **changes: str) -> str:
        """Return the query string of the first page, with some changes."""
        return "?" + self.query_string(**{"page": "", **changes})


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
        faults: messages about filters with unknown names.
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
        for column in self.columns:
            if column.is_sortable and column.name == self.filters.sort:
                return column
        return self.columns[0]

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

    def at_page(self, page: int) -> str:
        """Return the address of another page of the same rows."""
        return self.filters.address(page=str(page) if page > 1 else "")

    @property
    def spec_count(self) -> int:
        """The number of binaries in all rows."""
        return sum(row["specs"] for row in self.rows)

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


def load_packages(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages that have a binary."""
    columns = COLUMNS["packages"]

    def read() -> dict[str, ListRow]:
        names = [column.name for column in columns]
        rows = select(lookups.conn, PACKAGES)
        return {row[0]: dict(zip(names, row, strict=True)) for row in rows}

    every = lookups.once(PACKAGES, read)
    # If two sources disagree about the package of a hash, a listed package may have no binary.
    rows = matches = {name: row for name, row in every.items() if row["specs"]}
    if any(getattr(filters, name) for name in (*PLACES, *CONFIGURATION_FILTERS, "has", "lacks")):
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
            replace(column, title=f"{column.title} overall")
            if column.name in ("releases", "last_seen")
            else column
            for column in columns
        )
    return ListPage(
        "packages",
        filters,
        tuple(row for row in matches.values() if _has_text(row, filters)),
        len(rows),
        columns,
        _faults(lookups, filters),
        _package_query(lookups, filters),
        newest_release(lookups, filters) if matches else None,
    )


def newest_release(lookups: Lookups, filters: ListFilters) -> NewestRelease | None:
    """Return the newest release with matching packages; None if the filters name a release."""
    names = [name for name in CONFIGURATION_FILTERS if getattr(filters, name)]
    if filters.release or not names:
        return None
    candidates = set(lookups.releases)
    for name in names:
        column, condition = CONFIGURATION_COLUMNS[name], condition_of(name, getattr(filters, name))
        values = filter(condition.holds, lookups.words[column].values())
        candidates &= releases_with(lookups.conn, column, values)
    for key, release in lookups.releases.items():
        if key in candidates:
            counts = _counts(lookups, replace(filters, release=release.name))
            if counts:
                subject = ", ".join(getattr(filters, name) for name in names)
                return NewestRelease(subject, release.name, len(counts))
    return None


def _package_query(lookups: Lookups, filters: ListFilters) -> str:
    values = {name: getattr(filters, name) for name in (*PLACES, *CONFIGURATION_FILTERS)}
    if _release_of(lookups, filters.has):
        values["release"] = values["release"] or filters.has
    elif filters.has and (not values["target"] or values["target"].endswith(":")):
        # Two conditions on the target: a single target is stricter than its family.
        is_family = filters.has in lookups.families.values()
        values["target"] = f"{filters.has}:" if is_family else filters.has
    query = urlencode({name: value for name, value in values.items() if value})
    return query and f"?{query}"


def _counts(lookups: Lookups, filters: ListFilters) -> dict[str, Count]:
    """Return the counts of each package that matches the filters, except `q`."""
    has, lacks = (_release_of(lookups, name) for name in (filters.has, filters.lacks))
    release, stack = lookups.release(filters.release) or has, lookups.stack(filters.stack)
    tests: list[tuple[str, Callable[[Any], bool]]] = [
        (CONFIGURATION_COLUMNS[name], condition_of(name, getattr(filters, name)).holds)
        for name in CONFIGURATION_FILTERS
        if getattr(filters, name)
    ]
    if filters.has and not has:
        tests.append(("target", _target_test(lookups, filters.has)))
    columns = [*dict.fromkeys([column for column, _ in tests] + ["target"] * bool(filters.lacks))]
    allowed = [_words_passing(lookups, column, tests) for column in columns]
    unwanted = _words_passing(lookups, "target", [("target", _target_test(lookups, filters.lacks))])
    counts: dict[str, Count] = {}
    excluded = {name for (name,) in count_by(lookups, lacks, None, "package")} if lacks else set()
    for (name, *words), count in count_by(lookups, release, stack, "package", *columns).items():
        if filters.lacks and words[columns.index("target")] in unwanted:
            excluded.add(name)
        if all(map(contains, allowed, words)):
            counts[name] = counts[name] + count if name in counts else count
    if has and release != has:
        excluded |= counts.keys() - {name for (name,) in count_by(lookups, has, None, "package")}
    return {name: count for name, count in counts.items() if name not in excluded}


def _words_passing(
    lookups: Lookups, column: str, tests: Iterable[tuple[str, Callable[[Any], bool]]]
) -> set[str]:
    """Return the words of a column that pass all tests of this column."""
    holds = [test for name, test in tests if name == column]
    return {word for word in lookups.words[column].values() if all(test(word) for test in holds)}


def _release_of(lookups: Lookups, name: str) -> Release | None:
    """Return the release in a `has` or `lacks` filter; None for a target or family."""
    is_target = name in lookups.families or name in lookups.families.values()
    return None if is_target else lookups.release(name)


def _target_test(lookups: Lookups, name: str) -> Callable[[Any], bool]:
    return lambda target: name in (target, lookups.families.get(target))


def _has_text(row: ListRow, filters: ListFilters) -> bool:
    return filters.q.lower() in row["name"].lower()


def _faults(lookups: Lookups, filters: ListFilters) -> tuple[str, ...]:
    """Return messages about names in the filters that the database does not have."""
    hosts = {name for names in hosts_of(lookups.families).values() for name in names}
    families = {*lookups.families.values()}
    targets = {*lookups.families, *families, *(f"{name}:" for name in families)}
    releases = {release.name for release in lookups.releases.values()}
    faults = []
    if filters.release and filters.release not in releases:
        faults.append(f"There is no release {filters.release}: all are shown.")
    if filters.stack and lookups.stack(filters.stack) is None:
        faults.append(f"There is no stack {filters.stack}: all are shown.")
    if filters.host and filters.host not in hosts:
        faults.append(f"No package in this database runs on {filters.host}.")
    for name in ("has", "lacks", "target"):
        value = getattr(filters, name)
        if value and value not in (targets if name == "target" else targets | releases):
            faults.append(f"No package in this database is for the target {value}.")
    for name in ("compiler", "os"):
        value = getattr(filters, name)
        if value and not any(map(condition_of(name, value).holds, lookups.words[name].values())):
            faults.append(f"No package in this database has the {LABELS[name]} {value}.")
    return tuple(faults)


def load_releases(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of releases."""
    rows = [
        {
            "position": release.position,
            "name": release.name,
            "kind": release.kind,
            "date": release.date,
            "packages": release.package_count,
            "specs": release.spec_count,
        }
        for release in lookups.releases.values()
    ]
    matches = [row for row in rows if filters.kind in ("", row["kind"]) and _has_text(row, filters)]
    return ListPage("releases", filters, tuple(matches), len(rows), COLUMNS["releases"])


def load_stacks(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of stacks, without `root`."""
    rows = [
        {"name": stack.name, "releases": stack.release_count, "specs": stack.spec_count}
        for stack in lookups.stacks.values()
    ]
    matches = [row for row in rows if _has_text(row, filters)]
    return ListPage("stacks", filters, tuple(matches), len(rows), COLUMNS["stacks"])


def list_rows(page: ListPage, start: str) -> Markup:
    """Return the body of a list's table.

    Args:
        start: the address of the folder that contains the pages of all names.
    """
    query = escape(page.package_query)
    columns = [(item.name, item.is_count, f"<td{classes(item)}>") for item in page.columns[1:]]
    lines = []
    for row in page.in_order()[page.window.rows]:
        name = row["name"]
        line = f'<tr><th scope="row"><a href="{start}{quote(name)}{query}">{escape(name)}</a></th>'
        for column, is_count, opening in columns:
            value = row[column]
            text = "" if value is None else f"{value:,}" if is_count else escape(value)
            line += f"{opening}{text}</td>"
        lines.append(line)
    # Names and texts are escaped or quoted above; numbers do not need it.
    return Markup("</tr>\n".join([*lines, ""]))


def classes(column: ListColumn) -> Markup:
    """Return the class attribute of a column's cells."""
    names = ["count"] * column.is_count + ["minor"] * column.is_minor
    return Markup(f' class="{" ".join(names)}"' if names else "")
