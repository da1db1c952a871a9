"""The list of packages: those that have a binary, are behind Spack, or have none."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    without,
)
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.names.scope import (
    UnknownNameError,
    named_conditions,
    unknown_name,
)
from spack_cache_db.query.open.lookups import Lookups, filled_tables
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.package_data import known_packages, versions_behind
from spack_cache_db.query.stored.recipe_facts import RECIPE_KINDS, packages_with
from spack_cache_db.query.stored.totals import (
    PACKAGES,
    count_packages,
    newest_release,
    words_with,
)
from spack_cache_db.site.filters import PLACES, Filters, condition_of, place_condition
from spack_cache_db.site.names_for_people import sentence
from spack_cache_db.site.pages.list_page import COLUMNS, ListFilters, ListPage, ListRow
from spack_cache_db.site.pages.processor_columns import (
    MACHINE_KINDS,
    ProcessorCounts,
    counts_by_processor,
)

FAULTS = {
    "release": "All releases are shown.",
    "stack": "All stacks are shown.",
    "host": "No package in this database runs on {}.",
    **dict.fromkeys(
        ("target", "has", "lacks"), "No package in this database is for the target {}."
    ),
    "compiler": "No package in this database is built with {}.",
    "os": "No package in this database is built for the system {}.",
    "stable": "No package in this database has {}.",
}
"""What a filter with a name that no binary has does to the list."""
NAMED = (*PLACES, "host")
"""Filters whose unknown names are told apart from names without a binary."""


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
            faults.append(_fault(lookups, name, condition.text))
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


def _fault(lookups: Lookups, name: str, value: str) -> str:
    """Return the message about a filter with a name that no binary has."""
    unknown = unknown_name(lookups, **{name: value}) if name in NAMED else ""
    effect = FAULTS[name].format(value)
    if not unknown:
        return effect
    # The list is not limited to an unknown release or stack; on an unknown machine,
    # nothing runs.
    if name in PLACES:
        return f"{sentence(unknown)}. {effect}"
    return f"{sentence(unknown)}."


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
