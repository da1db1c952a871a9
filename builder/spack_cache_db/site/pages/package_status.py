"""Lists of packages with package data: those behind Spack's version, and those without a binary."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from spack_cache_db.query.database import Lookups
from spack_cache_db.query.packages import (
    has_package_data,
    known_packages,
    latest_versions,
    summary_of,
    versions_behind,
)
from spack_cache_db.site.pages.lists import ListColumn, ListFilters, ListPage, load_packages

_LATEST = ListColumn("latest", "Spack has", is_sortable=False)
_BEHIND = ListColumn("behind", "Versions behind", is_count=True, most_first=True)
_DEPENDENTS = ListColumn("dependents", "Depend on it", is_count=True, most_first=True)
_SUMMARY = ListColumn("summary", "What it is for", is_minor=True, is_sortable=False)


def load_package_list(lookups: Lookups, asked: ListFilters) -> ListPage:
    """Return the list of packages, with what `behind` or `missing` ask for."""
    page = load_packages(lookups, asked)
    if not asked.behind and not asked.missing:
        return page
    if not has_package_data(lookups.conn):
        return _faulty(page, "There is no package data here, so nothing is compared with Spack.")
    if asked.missing and (asked.behind or asked.lacks):
        other = "behind" if asked.behind else "lacks"
        return _faulty(page, f"missing and {other} exclude each other: ask for one of them.")
    return _behind(lookups.conn, page) if asked.behind else _missing(lookups.conn, page)


def _faulty(page: ListPage, fault: str) -> ListPage:
    return replace(page, faults=(*page.faults, fault))


def _by_default(asked: ListFilters, column: ListColumn) -> ListFilters:
    return asked if asked.sort else replace(asked, sort=column.name)


def _behind(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Keep the rows whose newest version is older than one that Spack has."""
    behind = versions_behind(conn)
    latest = latest_versions(conn)
    rows = (
        {**row, "latest": latest[row["name"]], "behind": newer}
        for row in page.rows
        if (newer := behind.get((row["name"], row["version"])))
    )
    name, version, *others = page.columns
    columns = (name, version, _LATEST, _BEHIND, *others)
    return replace(page, asked=_by_default(page.asked, _BEHIND), rows=tuple(rows), columns=columns)


def _missing(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Have the packages that Spack has and no binary exists of, in place of the others."""
    has_binary = {row["name"] for row in page.rows}
    known = [*known_packages(conn)]
    rows = (
        {
            "name": name,
            "latest": latest,
            "dependents": dependents,
            "summary": summary_of(description or ""),
            "specs": 0,
        }
        for name, latest, dependents, description in known
        if name not in has_binary and page.asked.q.lower() in name.lower()
    )
    return replace(
        page,
        asked=_by_default(page.asked, _DEPENDENTS),
        rows=tuple(rows),
        total=len(known),
        columns=(page.columns[0], _LATEST, _DEPENDENTS, _SUMMARY),
    )
