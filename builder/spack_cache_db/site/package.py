"""The page of one package: its configurations, filters with counts, and a grid of versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from spack_cache_db.query.configurations import Counted, configurations_of_package
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select
from spack_cache_db.records import Configuration
from spack_cache_db.site.choices import Choice, Grid, choices_of, grid_of
from spack_cache_db.site.configurations import Row, table_rows
from spack_cache_db.site.filters import Filters

PAGE_ROWS = 25

PACKAGE = """
SELECT id, name, spec_count, configuration_count, release_count, newest_version,
  first_seen, last_seen
FROM packages WHERE name = :name
"""
IN_RELEASE = """
SELECT configuration, configuration_releases.spec_count
FROM configurations JOIN configuration_releases
  ON configuration_releases.configuration = configurations.id AND release = :release
WHERE package = :package
"""
IN_STACK = """
SELECT configuration, configuration_stacks.spec_count
FROM configurations JOIN configuration_stacks
  ON configuration_stacks.configuration = configurations.id AND stack = :stack
WHERE package = :package
"""
IN_BOTH = """
SELECT specs.configuration, count(*)
FROM configurations
JOIN specs ON specs.configuration = configurations.id
JOIN listings ON listings.spec = specs.id AND listings.release = :release
JOIN stack_set_members AS member
  ON member.stack_set = listings.stacks AND member.stack = :stack
WHERE package = :package
GROUP BY specs.configuration
"""


@dataclass(frozen=True, slots=True)
class Package:
    """One package and its totals."""

    id: int
    name: str
    spec_count: int
    configuration_count: int
    release_count: int
    newest_version: str
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class PackagePage:
    """Everything the page of a package shows."""

    package: Package
    filters: Filters
    configuration_count: int
    spec_count: int
    choices: tuple[Choice, ...]
    grid: Grid
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    rows: tuple[Row, ...]
    page_count: int


def load_package(
    conn: sqlite3.Connection, lookups: Lookups, name: str, filters: Filters
) -> PackagePage | None:
    """Return the page of the package called `name`; None if there is no such package."""
    found = next(select(conn, PACKAGE, name=name), None)
    if found is None:
        return None
    package = Package(*found)
    every = configurations_of_package(conn, lookups, package.id)
    listed = _listed(conn, lookups, package, filters, every)
    matching = sorted((each for each in listed if _fits(each.configuration, filters)), key=_place)
    common, common_variants = ((), ()) if filters.common else folded(matching)
    pages = max(1, -(-len(matching) // PAGE_ROWS))
    start = (min(filters.page, pages) - 1) * PAGE_ROWS
    release, stack = lookups.release(filters.release), lookups.stack(filters.stack)
    return PackagePage(
        package=package,
        filters=filters.at_page(min(filters.page, pages)),
        configuration_count=len(matching),
        spec_count=sum(each.spec_count for each in matching),
        choices=choices_of(conn, lookups, filters, matching),
        grid=grid_of(matching, filters.all_versions),
        common=common,
        common_variants=common_variants,
        rows=table_rows(
            conn,
            lookups,
            matching[start : start + PAGE_ROWS],
            common_variants,
            release.id if release else None,
            stack.id if stack else None,
        ),
        page_count=pages,
    )


def folded(
    matching: Sequence[Counted],
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the columns and the variants whose value is the same in all of several rows."""
    if len(matching) < 2:
        return (), ()
    configurations = [each.configuration for each in matching]
    columns = []
    for name in ("version", "compiler", "os", "platform", "target"):
        values = {getattr(each, name) for each in configurations}
        if len(values) == 1:
            columns.append((name, str(values.pop())))
    first, *others = configurations
    shared = set(first.variants).intersection(*(each.variants for each in others))
    return tuple(columns), tuple(each for each in first.variants if each in shared)


def _listed(
    conn: sqlite3.Connection,
    lookups: Lookups,
    package: Package,
    filters: Filters,
    every: list[Counted],
) -> list[Counted]:
    """Return the configurations of the chosen release and stack, with their counts there."""
    if filters.release is None and filters.stack is None:
        return every
    release, stack = lookups.release(filters.release), lookups.stack(filters.stack)
    if (filters.release and release is None) or (filters.stack and stack is None):
        return []
    sql = IN_STACK if release is None else IN_RELEASE if stack is None else IN_BOTH
    places = {
        "package": package.id,
        "release": release.id if release else None,
        "stack": stack.id if stack else None,
    }
    counts: dict[int, int] = dict(select(conn, sql, **places))
    # Spelled out: `_replace` takes several times as long, and some packages have thousands.
    return [
        Counted(each.id, each.configuration, each.position, counts[each.id])
        for each in every
        if each.id in counts
    ]


def _fits(each: Configuration, filters: Filters) -> bool:
    return (
        filters.version in (None, each.version)
        and filters.compiler in (None, each.compiler)
        and filters.os in (None, each.os)
        and filters.platform in (None, each.platform)
        and filters.target in (None, each.target)
        and all(variant in each.variants for variant in filters.variants)
    )


def _place(each: Counted) -> tuple[int, str, str, str, tuple[str, ...]]:
    """Return what puts a configuration in its place in the table: the newest version first."""
    what = each.configuration
    return -each.position, what.target, what.compiler, what.os, what.variants
