"""Lists of packages compared with Spack: behind its latest version, and without a binary."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from spack_cache_db.query.database import Lookups
from spack_cache_db.query.packages import (
    has_package_data,
    known_packages,
    versions_behind,
)
from spack_cache_db.site.pages.lists import ListColumn, ListFilters, ListPage, load_packages

_LATEST = ListColumn("latest", "Spack has", is_sortable=False)
_BEHIND = ListColumn("behind", "Versions behind", is_count=True, most_first=True)
_DEPENDENTS = ListColumn("dependents", "Depend on it", is_count=True, most_first=True)
_SUMMARY = ListColumn("summary", "Description", is_minor=True, is_sortable=False)


def load_package_list(lookups: Lookups, filters: ListFilters) -> ListPage:
    """Return the list of packages, filtered by `behind` or `missing` if the address has these."""
    page = load_packages(lookups, filters)
    if not filters.behind and not filters.missing:
        return page
    fault = None
    if not has_package_data(lookups.conn):
        fault = "This database has no package data: it cannot be compared with Spack."
    elif filters.missing and (filters.behind or filters.lacks):
        other = "behind" if filters.behind else "lacks"
        fault = f"missing and {other} exclude each other: ask for one of them."
    if fault is not None:
        return replace(page, faults=(*page.faults, fault))
    return _behind(lookups.conn, page) if filters.behind else _missing(lookups.conn, page)


def _sorted_by(page: ListPage, column: ListColumn) -> ListFilters:
    """Return the filters of a page, with a column to sort by unless they have one."""
    return page.filters if page.filters.sort else replace(page.filters, sort=column.name)


def _behind(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return the rows whose newest version is older than Spack's latest."""
    behind = versions_behind(conn)
    rows = (
        {**row, "latest": latest, "behind": newer}
        for row in page.rows
        for newer, latest in (behind.get((row["name"], row["version"]), (0, "")),)
        if newer
    )
    name, version, *columns = page.columns
    columns = [name, version, _LATEST, _BEHIND, *columns]
    filters = _sorted_by(page, _BEHIND)
    return replace(page, filters=filters, rows=tuple(rows), columns=tuple(columns))


def _missing(conn: sqlite3.Connection, page: ListPage) -> ListPage:
    """Return Spack's packages without a binary instead of the rows of a page."""
    has_binary = {row["name"] for row in page.rows}
    packages = [*known_packages(conn)]
    rows = (
        {"name": name, "latest": latest, "dependents": dependents, "summary": summary, "specs": 0}
        for name, latest, dependents, summary in packages
        if name not in has_binary and page.filters.q.lower() in name.lower()
    )
    return replace(
        page,
        filters=_sorted_by(page, _DEPENDENTS),
        rows=tuple(rows),
        total=len(packages),
        columns=(page.columns[0], _LATEST, _DEPENDENTS, _SUMMARY),
    )
