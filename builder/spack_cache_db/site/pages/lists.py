"""The lists of all packages, releases and stacks: sorted and narrowed as their address says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from operator import contains
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from spack_cache_db.query.conditions import COLUMNS as CONFIGURATION_COLUMNS
from spack_cache_db.query.database import Lookups, Release, Stack, select
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

_LISTED = "AS listed JOIN configurations ON configurations.id = listed.configuration"
# Of the versions of a package, Spack prefers the one with the largest id.
_NEWEST = "max(configurations.version)"
ANYWHERE = f"""
count(*), sum(spec_count), {_NEWEST} FROM configurations WHERE configurations.spec_count > 0
"""
IN_RELEASE = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_releases {_LISTED}
WHERE listed.release = :release
"""
PACKAGES_IN_RELEASE = """
SELECT package, configuration_count, spec_count, newest_version FROM release_packages
WHERE release = :release
"""
IN_STACK = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_stacks {_LISTED}
WHERE listed.stack = :stack AND listed.spec_count > 0
"""
IN_BOTH = f"""
count(DISTINCT configurations.id), count(*), {_NEWEST}
FROM release_specs AS shown JOIN configurations ON configurations.id = shown.configuration
WHERE shown.release = :release
  AND shown.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
"""  # noqa: S608 - our own column
RELEASES_WITH = """
SELECT DISTINCT release FROM facet_counts
WHERE facet = :facet AND release IS NOT NULL AND value IN (SELECT value FROM json_each(:values))
"""

MOST_COUNTED = 16
"""So many counts are kept in a process: a large one takes a megabyte."""


class Count(NamedTuple):
    """How many there are of something; `newest` is the id of a package's newest version there."""

    configurations: int
    specs: int
    newest: int

    def __add__(self, other: Count) -> Count:  # type: ignore[override]
        """Return the count of two sets of configurations that share none."""
        return Count(
            self.configurations + other.configurations,
            self.specs + other.specs,
            max(self.newest, other.newest),
        )


def counts(
    lookups: Lookups, release: Release | None, stack: Stack | None, *columns: str
) -> dict[tuple[str, ...], Count]:
    """Return how many configurations and specs share each value of some columns, in words.

    They are counted in a release, in a stack, in that stack of that release, or everywhere.
    """
    # Every visitor of a long list asks the same; counts by three columns would fill the memory.
    count = _counted if len(columns) < 3 else _counted.__wrapped__
    return count(lookups, release and release.id, stack and stack.id, columns)


@lru_cache(maxsize=MOST_COUNTED)
def _counted(
    lookups: Lookups, release: int | None, stack: int | None, columns: tuple[str, ...]
) -> dict[tuple[str, ...], Count]:
    words = [lookups.words[column] for column in columns]
    found = {}
    for row in select(
        lookups.conn, _counting(release, stack, columns), release=release, stack=stack
    ):
        keys = zip(words, row[: len(columns)], strict=True)
        found[tuple(names[key] for names, key in keys)] = Count(*row[len(columns) :])
    return found


def _counting(release: int | None, stack: int | None, columns: tuple[str, ...]) -> str:
    """Return the statement that counts by some columns in a release and a stack."""
    if columns == ("package",) and release is not None and stack is None:
        return PACKAGES_IN_RELEASE
    by = ", ".join(f"configurations.{column}" for column in columns)
    counted = {(False, False): ANYWHERE, (True, False): IN_RELEASE, (False, True): IN_STACK}
    sql = counted.get((release is not None, stack is not None), IN_BOTH)
    return f"SELECT {by}, {sql} GROUP BY {by}"


PACKAGES = """
SELECT name, newest_version, configuration_count, spec_count, release_count, last_seen
FROM packages WHERE release_count > 0 ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list: its name in the address and in a row, its heading, and its order.

    Attributes:
        is_count: whether it holds numbers.
        most_first: whether its first order is from the most, or the latest, to the least.
        is_minor: whether a phone may do without it.
        is_sortable: whether its words have an order across rows.
    """

    name: str
    title: str
    is_count: bool = False
    most_first: bool = False
    is_minor: bool = False
    is_sortable: bool = True


PAGE_ROWS = 200

_SPECS = ListColumn("specs", "Binaries", is_count=True, most_first=True)
COLUMNS: Mapping[str, tuple[ListColumn, ...]] = {
    "packages": (
        ListColumn("name", "Package"),
        ListColumn("version", "Newest version", is_sortable=False),
        ListColumn(
            "configurations", "Configurations", is_count=True, most_first=True, is_minor=True
        ),
        _SPECS,
        ListColumn("releases", "Releases", is_count=True, most_first=True, is_minor=True),
        ListColumn("last_seen", "Last snapshot", most_first=True, is_minor=True),
    ),
    "releases": (
        ListColumn("position", "Release"),
        ListColumn("kind", "Kind", is_minor=True),
        ListColumn("date", "Snapshot of", most_first=True, is_minor=True),
        ListColumn("packages", "Packages", is_count=True, most_first=True),
        _SPECS,
    ),
    "stacks": (
        ListColumn("name", "Stack"),
        ListColumn("releases", "Releases", is_count=True, most_first=True),
        _SPECS,
    ),
}
OF_CONFIGURATIONS = ("host", "target", "compiler", "os")
"""Filters of what is counted of a package, which its page has as well."""

ListRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListFilters(AddressFields):
    """What an address asks of a list.

    Attributes:
        q: part of a name, capitals aside.
        release: only packages of this release, counted in it.
        stack: only packages of this stack, counted in it; in that release, where one is asked.
        kind: only releases of this kind.
        host: the CPU target of a machine; only packages with a spec that runs there, so counted.
        target: the very target that specs were built for.
        compiler: the compiler that built them; without a version any of its versions.
        os: the operating system that they were built for.
        has: a target, a family of targets or a release that a package must have a spec for.
        lacks: one for or in which it must have none.
        behind: whatever is given: only packages of which Spack has a newer version.
        missing: whatever is given: the packages that Spack has and no binary exists of.
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
        """The pairs that ask for anything but an order."""
        return replace(self, sort="", order="", page="").pairs

    @property
    def is_narrowed(self) -> bool:
        """Whether anything but an order is asked."""
        return bool(self.narrowed)

    def address(self, **changes: str) -> str:
        """Return the query string of the first page that asks the same but for `changes`."""
        return "?" + self.query_string(**{"page": "", **changes})


class NewestRelease(NamedTuple):
    """The newest release with a package that a list asks for, and how many it has."""

    subject: str
    release: str
    packages: int


@dataclass(frozen=True, slots=True)
class ListPage:
    """Everything a list shows.

    Attributes:
        newest: where the list asks for a machine, a target, a compiler or a system in any release.
        total: how many rows there are before anything is asked of them.
        faults: what is asked for and not known, in words.
        package_query: what to add to a package's address so that it is narrowed as the list is.
    """

    kind: str
    asked: ListFilters
    rows: tuple[ListRow, ...]
    total: int
    columns: tuple[ListColumn, ...]
    faults: tuple[str, ...] = ()
    package_query: str = ""
    newest: NewestRelease | None = None

    @property
    def sort(self) -> ListColumn:
        """The column by which the rows are sorted."""
        found = (each for each in self.columns if each.name == self.asked.sort)
        return next((each for each in found if each.is_sortable), self.columns[0])

    @property
    def notices(self) -> tuple[str, ...]:
        """The faults, and an order that this list does not have."""
        names = [each.name for each in self.columns if each.is_sortable]
        asked, found = self.asked, [*self.faults]
        if asked.sort not in ("", *names):
            found.append(f"No list is sorted by {asked.sort}: choose one of {', '.join(names)}.")
        if asked.order not in ("", "asc", "desc"):
            found.append(f"There is no order {asked.order}: choose asc or desc.")
        return tuple(found)

    @property
    def is_descending(self) -> bool:
        """Whether the rows are in descending order."""
        return self.sort.most_first if not self.asked.order else self.asked.order == "desc"

    def sorted_by(self, column: ListColumn) -> str | None:
        """Return the address of the list sorted by a column, the other way if it is already."""
        if not column.is_sortable:
            return None
        descending = column.most_first
        if column == self.sort:
            descending = not self.is_descending
        return self.asked.address(sort=column.name, order="desc" if descending else "asc")

    @property
    def window(self) -> Pagination:
        """Which of the rows, as they are sorted, this page shows."""
        return paginated(len(self.rows), page_number(self.asked.page), PAGE_ROWS)

    def at_page(self, page: int) -> str:
        """Return the address of another page of the same rows."""
        return self.asked.address(page=str(page) if page > 1 else "")

    @property
    def spec_count(self) -> int:
        """How many binaries the rows have."""
        return sum(row["specs"] for row in self.rows)

    @property
    def csv_columns(self) -> list[str]:
        """The columns of the list as CSV: the name first."""
        return [*dict.fromkeys(("name", *(column.name for column in self.columns)))]

    def in_order(self) -> list[ListRow]:
        """Return the rows as they are sorted; those without a value last."""
        key = self.sort.name
        known = [row for row in self.rows if row[key] is not None]
        known.sort(key=lambda row: row[key], reverse=self.is_descending)
        return known + [row for row in self.rows if row[key] is None]


def load_packages(lookups: Lookups, asked: ListFilters) -> ListPage:
    """Return the list of packages that have a binary."""
    columns = COLUMNS["packages"]
    every = lookups.once(PACKAGES, lambda: _packages(lookups.conn))
    # A release may show a spec of a package, and a release before it show its hash as another's.
    rows = wanted = {name: row for name, row in every.items() if row["specs"]}
    if any(getattr(asked, each) for each in (*PLACES, *OF_CONFIGURATIONS, "has", "lacks")):
        found = _counts(lookups, asked)
        lookups.learn({count.newest for count in found.values()}, set())
        versions, columns = lookups.words["version"], tuple(map(_overall, columns))
        wanted = {
            name: every[name]
            | {"version": versions[newest], "configurations": configurations, "specs": specs}
            for name, (configurations, specs, newest) in sorted(found.items())
        }
    return ListPage(
        "packages",
        asked,
        tuple(row for row in wanted.values() if _fits(row, asked)),
        len(rows),
        columns,
        _faults(lookups, asked),
        _package_query(lookups, asked),
        newest_release(lookups, asked) if wanted else None,
    )


def newest_release(lookups: Lookups, asked: ListFilters) -> NewestRelease | None:
    """Return the newest release with a package that a list asks for; None if it names one."""
    names = [name for name in OF_CONFIGURATIONS if getattr(asked, name)]
    if asked.release or not names:
        return None
    having = set(lookups.releases)
    for name in names:
        column, holds = CONFIGURATION_COLUMNS[name], condition_of(name, getattr(asked, name)).holds
        values = [word for word in lookups.words[column].values() if holds(word)]
        facet = {"facet": f"{column}s", "values": json.dumps(values)}
        having &= {release for (release,) in select(lookups.conn, RELEASES_WITH, **facet)}
    for key, release in lookups.releases.items():
        if key in having and (found := _counts(lookups, replace(asked, release=release.name))):
            subject = ", ".join(getattr(asked, name) for name in names)
            return NewestRelease(subject, release.name, len(found))
    return None


def _package_query(lookups: Lookups, asked: ListFilters) -> str:
    values = {name: getattr(asked, name) for name in (*PLACES, *OF_CONFIGURATIONS)}
    if _release_of(lookups, asked.has):
        values["release"] = values["release"] or asked.has
    elif asked.has and (not values["target"] or values["target"].endswith(":")):
        # Of two conditions on the target, the one that leaves less: a target of its family.
        is_family = asked.has in lookups.families.values()
        values["target"] = f"{asked.has}:" if is_family else asked.has
    query = urlencode({name: value for name, value in values.items() if value})
    return query and f"?{query}"


def _packages(conn: sqlite3.Connection) -> dict[str, ListRow]:
    names = [column.name for column in COLUMNS["packages"]]
    return {row[0]: dict(zip(names, row, strict=True)) for row in select(conn, PACKAGES)}


def _counts(lookups: Lookups, asked: ListFilters) -> dict[str, Count]:
    """Return the counts of packages in release and stack, and for the columns that are asked."""
    has, lacking = (_release_of(lookups, each) for each in (asked.has, asked.lacks))
    release, stack = lookups.release(asked.release) or has, lookups.stack(asked.stack)
    tests: list[tuple[str, Callable[[Any], bool]]] = [
        (CONFIGURATION_COLUMNS[name], condition_of(name, getattr(asked, name)).holds)
        for name in OF_CONFIGURATIONS
        if getattr(asked, name)
    ]
    if asked.has and not has:
        tests.append(("target", _target_test(lookups, asked.has)))
    columns = [*dict.fromkeys([column for column, _ in tests] + ["target"] * bool(asked.lacks))]
    fitting = [_words_passing(lookups, column, tests) for column in columns]
    unwanted = _words_passing(lookups, "target", [("target", _target_test(lookups, asked.lacks))])
    kept: dict[str, Count] = {}
    without: set[str] = set()
    if lacking:
        without |= {name for (name,) in counts(lookups, lacking, None, "package")}
    for (name, *words), count in counts(lookups, release, stack, "package", *columns).items():
        if asked.lacks and words[columns.index("target")] in unwanted:
            without.add(name)
        if all(map(contains, fitting, words)):
            kept[name] = kept[name] + count if name in kept else count
    if has and release != has:
        within = {name for (name,) in counts(lookups, has, None, "package")}
        kept = {name: count for name, count in kept.items() if name in within}
    return {name: count for name, count in kept.items() if name not in without}


def _words_passing(
    lookups: Lookups, column: str, tests: Iterable[tuple[str, Callable[[Any], bool]]]
) -> set[str]:
    """Return the words of a column that pass all tests on it."""
    own = [holds for name, holds in tests if name == column]
    return {word for word in lookups.words[column].values() if all(holds(word) for holds in own)}


def _release_of(lookups: Lookups, name: str) -> Release | None:
    """Return the release of which a package has, or lacks, a spec; None for a target."""
    is_target = name in lookups.families or name in lookups.families.values()
    return None if is_target else lookups.release(name)


def _overall(column: ListColumn) -> ListColumn:
    """Return a column of the whole list as it is called where rows are narrowed."""
    if column.name not in ("releases", "last_seen"):
        return column
    return replace(column, title=f"{column.title} overall")


def _target_test(lookups: Lookups, wanted: str) -> Callable[[Any], bool]:
    return lambda target: wanted in (target, lookups.families.get(target))


def _fits(row: ListRow, asked: ListFilters) -> bool:
    return asked.q.lower() in row["name"].lower()


def _faults(lookups: Lookups, asked: ListFilters) -> tuple[str, ...]:
    """Return what is asked for that the file does not have."""
    machines = {name for names in hosts_of(lookups.families).values() for name in names}
    known = {*lookups.families, *lookups.families.values()}
    known |= {f"{name}:" for name in lookups.families.values()}
    places = {each.name for each in lookups.releases.values()}
    faults = []
    if asked.release and lookups.release(asked.release) is None:
        faults.append(f"There is no release {asked.release}: all are shown.")
    if asked.stack and lookups.stack(asked.stack) is None:
        faults.append(f"There is no stack {asked.stack}: all are shown.")
    if asked.host and asked.host not in machines:
        faults.append(f"Nothing here runs on {asked.host}.")
    faults += [
        f"Nothing here is for a target {each}."
        for each, more in ((asked.has, places), (asked.lacks, places), (asked.target, set()))
        if each and each not in known | more
    ]
    built = [name for name in ("compiler", "os") if getattr(asked, name)]
    faults += [
        f"Nothing here has the {LABELS[name]} {condition.text}."
        for name in built
        for condition in (condition_of(name, getattr(asked, name)),)
        if not any(map(condition.holds, lookups.words[name].values()))
    ]
    return tuple(faults)


def load_releases(lookups: Lookups, asked: ListFilters) -> ListPage:
    """Return the list of releases."""
    rows = [
        {
            "position": each.position,
            "name": each.name,
            "kind": each.kind,
            "date": each.date,
            "packages": each.package_count,
            "specs": each.spec_count,
        }
        for each in lookups.releases.values()
    ]
    wanted = [row for row in rows if asked.kind in ("", row["kind"]) and _fits(row, asked)]
    return ListPage("releases", asked, tuple(wanted), len(rows), COLUMNS["releases"])


def load_stacks(lookups: Lookups, asked: ListFilters) -> ListPage:
    """Return the list of stacks, without `root`."""
    rows = [
        {"name": each.name, "releases": each.release_count, "specs": each.spec_count}
        for each in lookups.stacks.values()
    ]
    wanted = [row for row in rows if _fits(row, asked)]
    return ListPage("stacks", asked, tuple(wanted), len(rows), COLUMNS["stacks"])


def list_rows(page: ListPage, start: str) -> Markup:
    """Return the body of a list's table.

    Args:
        start: the address below which each of its names has a page.
    """
    query = escape(page.package_query)
    columns = [(each.name, each.is_count, f"<td{classes(each)}>") for each in page.columns[1:]]
    lines = []
    for row in page.in_order()[page.window.rows]:
        name = row["name"]
        line = f'<tr><th scope="row"><a href="{start}{quote(name)}{query}">{escape(name)}</a></th>'
        for column, is_count, opening in columns:
            value = row[column]
            text = "" if value is None else f"{value:,}" if is_count else escape(value)
            line += f"{opening}{text}</td>"
        lines.append(line)
    # Names and words are escaped or quoted above; numbers need no escaping.
    return Markup("</tr>\n".join([*lines, ""]))


def classes(column: ListColumn) -> Markup:
    """Return the class attribute of a column's cells."""
    names = [
        name for name, holds in (("count", column.is_count), ("minor", column.is_minor)) if holds
    ]
    return Markup(f' class="{" ".join(names)}"' if names else "")
