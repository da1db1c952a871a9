"""The page of one package: its configurations, filters with counts, and a grid of versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from spack_cache_db.site.catalog import Catalog
from spack_cache_db.site.configurations import Configuration, Row, table_rows
from spack_cache_db.site.facets import Facet, Grid, facets_of, grid_of
from spack_cache_db.site.filters import Filters

PAGE_ROWS = 25

PACKAGE = """
SELECT id, name, spec_count, configuration_count, release_count, newest_version,
  first_seen, last_seen
FROM packages WHERE name = :name
"""
VERSIONS = "SELECT id, name, position FROM versions WHERE package = :package"
CONFIGURATIONS = """
SELECT id, version, compiler, os, platform, target, variants, spec_count
FROM configurations WHERE package = :package
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
    facets: tuple[Facet, ...]
    grid: Grid
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    rows: tuple[Row, ...]
    page_count: int


def load_package(
    conn: sqlite3.Connection, catalog: Catalog, name: str, filters: Filters
) -> PackagePage | None:
    """Read the page of the package called `name`; `None` if there is no such package."""
    found = conn.execute(PACKAGE, {"name": name}).fetchone()
    if found is None:
        return None
    package = Package(*found)
    every = _configurations(conn, catalog, package)
    matching = sorted(
        (each for each in _listed(conn, catalog, package, filters, every) if _fits(each, filters)),
        key=lambda each: (-each.position, each.target, each.compiler, each.os, each.variants),
    )
    common, common_variants = ((), ()) if filters.common else folded(matching)
    pages = max(1, -(-len(matching) // PAGE_ROWS))
    start = (min(filters.page, pages) - 1) * PAGE_ROWS
    release, stack = catalog.release(filters.release), catalog.stack(filters.stack)
    return PackagePage(
        package=package,
        filters=filters.at_page(min(filters.page, pages)),
        configuration_count=len(matching),
        spec_count=sum(each.spec_count for each in matching),
        facets=facets_of(conn, catalog, filters, matching),
        grid=grid_of(matching, filters.all_versions),
        common=common,
        common_variants=common_variants,
        rows=table_rows(
            conn,
            catalog,
            matching[start : start + PAGE_ROWS],
            common_variants,
            release.id if release else None,
            stack.id if stack else None,
        ),
        page_count=pages,
    )


def folded(
    matching: Sequence[Configuration],
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the columns and the variants whose value is the same in all of several rows."""
    if len(matching) < 2:
        return (), ()
    columns = []
    for name in ("version", "compiler", "os", "platform", "target"):
        values = {getattr(each, name) for each in matching}
        if len(values) == 1:
            columns.append((name, str(values.pop())))
    shared = set(matching[0].variants).intersection(*(each.variants for each in matching[1:]))
    return tuple(columns), tuple(each for each in matching[0].variants if each in shared)


def _configurations(
    conn: sqlite3.Connection, catalog: Catalog, package: Package
) -> list[Configuration]:
    versions = {row[0]: (row[1], row[2]) for row in conn.execute(VERSIONS, {"package": package.id})}
    rows = conn.execute(CONFIGURATIONS, {"package": package.id}).fetchall()
    variants = catalog.variants(conn, {row[6] for row in rows})
    return [
        Configuration(
            id=key,
            package=package.name,
            version=versions[version][0],
            position=versions[version][1],
            compiler=catalog.compilers[compiler],
            os=catalog.systems[system],
            platform=catalog.platforms[platform],
            target=catalog.targets[target],
            variants=variants[variant_set],
            spec_count=count,
        )
        for key, version, compiler, system, platform, target, variant_set, count in rows
    ]


def _listed(
    conn: sqlite3.Connection,
    catalog: Catalog,
    package: Package,
    filters: Filters,
    every: list[Configuration],
) -> list[Configuration]:
    """Return the configurations of the chosen release and stack, with their counts there."""
    if filters.release is None and filters.stack is None:
        return every
    release, stack = catalog.release(filters.release), catalog.stack(filters.stack)
    if (filters.release and release is None) or (filters.stack and stack is None):
        return []
    sql = IN_STACK if release is None else IN_RELEASE if stack is None else IN_BOTH
    places = {
        "package": package.id,
        "release": release.id if release else None,
        "stack": stack.id if stack else None,
    }
    counts: dict[int, int] = dict(conn.execute(sql, places))
    return [_counted(each, counts[each.id]) for each in every if each.id in counts]


def _counted(each: Configuration, count: int) -> Configuration:
    # Spelled out: dataclasses.replace takes ten times as long, and some packages have thousands.
    return Configuration(
        each.id,
        each.package,
        each.version,
        each.position,
        each.compiler,
        each.os,
        each.platform,
        each.target,
        each.variants,
        count,
    )


def _fits(each: Configuration, filters: Filters) -> bool:
    return (
        filters.version in (None, each.version)
        and filters.compiler in (None, each.compiler)
        and filters.os in (None, each.os)
        and filters.platform in (None, each.platform)
        and filters.target in (None, each.target)
        and all(variant in each.variants for variant in filters.variants)
    )
