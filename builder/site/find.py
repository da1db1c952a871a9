"""The search page: a package's name, a hash, or the configurations that match all terms."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from builder.site.catalog import Catalog
from builder.site.configurations import Configuration, Row, table_rows
from builder.site.package import folded
from builder.site.spec import CANDIDATES_SHOWN, hashes_beginning, is_hash_prefix
from builder.site.terms import Terms, parse

PAGE_ROWS = 25
COUNTED = 10_000
PACKAGES_SHOWN = 40

PACKAGE_BY_NAME = "SELECT id FROM packages WHERE name = :name"
PACKAGES_LIKE = """
SELECT packages.name, packages.spec_count
FROM packages_fts JOIN packages ON packages.id = packages_fts.rowid
WHERE packages_fts MATCH :match
ORDER BY packages.spec_count DESC, packages.name LIMIT :limit
"""
MATCHING = """
SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :match
ORDER BY rowid LIMIT :limit
"""
MATCHING_IN_PACKAGE = """
SELECT configurations_fts.rowid FROM configurations_fts
JOIN configurations ON configurations.id = configurations_fts.rowid
WHERE configurations_fts MATCH :match AND configurations.package = :package
ORDER BY configurations_fts.rowid LIMIT :limit
"""
CONFIGURATIONS = """
SELECT configurations.id, packages.name, versions.name, versions.position,
  configurations.compiler, configurations.os, configurations.platform, configurations.target,
  configurations.variants, configurations.spec_count
FROM configurations
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
WHERE configurations.id IN (SELECT value FROM json_each(:ids))
ORDER BY packages.name, versions.position DESC, configurations.id
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The configurations that match, one page of them."""

    count: int
    is_more: bool
    rows: tuple[Row, ...]
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    page: int
    page_count: int


@dataclass(frozen=True, slots=True)
class FindPage:
    """What a search leads to: another page (`package` or `hashes`), or rows to show here."""

    terms: Terms
    package: str | None = None
    hashes: tuple[str, ...] = ()
    packages: tuple[tuple[str, int], ...] = ()
    found: Found | None = None
    unknown_hash: bool = False


def find(conn: sqlite3.Connection, catalog: Catalog, text: str, page: int = 1) -> FindPage:
    """Answer a search."""
    terms = parse(text)
    if terms.name is not None and terms.text == terms.name and _package(conn, terms.name):
        return FindPage(terms, package=terms.name)
    if terms.hash is not None and is_hash_prefix(terms.hash):
        hashes = hashes_beginning(conn, terms.hash, CANDIDATES_SHOWN)
        if hashes:
            return FindPage(terms, hashes=hashes)
    if not terms.words:
        return FindPage(terms, unknown_hash=terms.hash is not None)
    return FindPage(
        terms,
        packages=_packages(conn, terms),
        found=find_configurations(conn, catalog, terms, page),
        unknown_hash=terms.hash is not None,
    )


def find_configurations(
    conn: sqlite3.Connection, catalog: Catalog, terms: Terms, page: int
) -> Found:
    """Return the configurations that match all terms: the seam for another search language."""
    package = _package(conn, terms.name) if terms.name else None
    query = {"match": terms.match(), "package": package, "limit": COUNTED + 1}
    sql = MATCHING if package is None else MATCHING_IN_PACKAGE
    ids = [row[0] for row in conn.execute(sql, query)]
    count = min(len(ids), COUNTED)
    pages = max(1, -(-count // PAGE_ROWS))
    start = (min(page, pages) - 1) * PAGE_ROWS
    shown = _configurations(conn, catalog, ids[start : start + PAGE_ROWS])
    common, variants = folded(shown) if pages == 1 else ((), ())
    return Found(
        count=count,
        is_more=len(ids) > COUNTED,
        rows=table_rows(conn, catalog, shown, variants),
        common=common,
        common_variants=variants,
        page=min(page, pages),
        page_count=pages,
    )


def _package(conn: sqlite3.Connection, name: str) -> int | None:
    row = conn.execute(PACKAGE_BY_NAME, {"name": name}).fetchone()
    return None if row is None else int(row[0])


def _packages(conn: sqlite3.Connection, terms: Terms) -> tuple[tuple[str, int], ...]:
    """Return the packages whose name the searched name is part of."""
    if terms.name is None:
        return ()
    match = '"' + terms.name.replace('"', '""') + '"'
    rows = conn.execute(PACKAGES_LIKE, {"match": match, "limit": PACKAGES_SHOWN})
    return tuple((name, count) for name, count in rows)


def _configurations(
    conn: sqlite3.Connection, catalog: Catalog, ids: list[int]
) -> list[Configuration]:
    rows = conn.execute(CONFIGURATIONS, {"ids": json.dumps(ids)}).fetchall()
    variants = catalog.variants(conn, {row[8] for row in rows})
    return [
        Configuration(
            id=key,
            package=package,
            version=version,
            position=position,
            compiler=catalog.compilers[compiler],
            os=catalog.systems[system],
            platform=catalog.platforms[platform],
            target=catalog.targets[target],
            variants=variants[variant_set],
            spec_count=count,
        )
        for (
            key,
            package,
            version,
            position,
            compiler,
            system,
            platform,
            target,
            variant_set,
            count,
        ) in rows
    ]
