"""The search page: a package's name, a hash, or the configurations that satisfy a spec.

The text is read by the parser of Spack's spec syntax that the command line uses, and by nothing
else; where it is no spec, the page says what is wrong with it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.asked import Conditions, caveats
from spack_cache_db.query.conditions import asked_of, configuration_ids
from spack_cache_db.site.catalog import Catalog
from spack_cache_db.site.configurations import Configuration, Row, table_rows
from spack_cache_db.site.package import folded
from spack_cache_db.site.spec import CANDIDATES_SHOWN, hashes_beginning, is_hash_prefix
from spack_cache_db.site.spec_functions import parse
from spack_cache_db.spack.query import QuerySyntaxError, SpecQuery

PAGE_ROWS = 25
PACKAGES_SHOWN = 40

PACKAGE_BY_NAME = "SELECT id FROM packages WHERE name = :name"
PACKAGES_LIKE = """
SELECT packages.name, packages.spec_count
FROM packages_fts JOIN packages ON packages.id = packages_fts.rowid
WHERE packages_fts MATCH :match
ORDER BY packages.spec_count DESC, packages.name LIMIT :limit
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

_WORD = re.compile(r"[A-Za-z0-9][\w-]*")
_ONE_WORD = re.compile(r"\s*/?([a-z2-7]{7,32})\s*")


@dataclass(frozen=True, slots=True)
class Found:
    """The configurations that satisfy a spec, one page of them."""

    count: int
    rows: tuple[Row, ...]
    common: tuple[tuple[str, str], ...]
    common_variants: tuple[str, ...]
    page: int
    page_count: int


@dataclass(frozen=True, slots=True)
class FindPage:
    """What a search leads to: another page (`package` or `hashes`), rows, or what is wrong.

    Attributes:
        prefix: what was asked of a hash.
        error: why the text is no spec, or why pages cannot answer it.
        notes: what a reader should know of the answer.
    """

    package: str | None = None
    prefix: str | None = None
    hashes: tuple[str, ...] = ()
    packages: tuple[tuple[str, int], ...] = ()
    found: Found | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()


def find(conn: sqlite3.Connection, catalog: Catalog, text: str, page: int = 1) -> FindPage:
    """Answer a search."""
    if not text.strip():
        return FindPage()
    whole = _ONE_WORD.fullmatch(text)
    hashes = hashes_beginning(conn, whole[1], CANDIDATES_SHOWN) if whole else []
    if whole and hashes and not _package(conn, whole[1]):
        return FindPage(prefix=whole[1], hashes=tuple(hashes))
    try:
        query = parse(text)
        asked = asked_of(conn, query)
    except (QuerySyntaxError, UnsupportedQuery) as error:
        word = _WORD.match(text.strip())
        return FindPage(error=str(error), packages=_packages(conn, word and word.group()))
    if _is_name(query) and _package(conn, str(query.name)):
        return FindPage(package=query.name)
    hashes = _hashes(conn, asked.hash)
    found = find_configurations(conn, catalog, asked, page)
    if found.count == 1 and len(hashes) == 1:
        return FindPage(prefix=asked.hash, hashes=tuple(hashes))
    return FindPage(
        prefix=asked.hash,
        packages=() if found.count else _packages(conn, query.name),
        found=found,
        notes=caveats(query),
    )


def find_configurations(
    conn: sqlite3.Connection, catalog: Catalog, asked: Conditions, page: int
) -> Found:
    """Return the configurations that satisfy a query, newest versions first."""
    ids = configuration_ids(conn, catalog.dictionaries, asked)
    pages = max(1, -(-len(ids) // PAGE_ROWS))
    start = (min(page, pages) - 1) * PAGE_ROWS
    shown = _configurations(conn, catalog, ids[start : start + PAGE_ROWS])
    common, variants = folded(shown) if pages == 1 else ((), ())
    return Found(
        count=len(ids),
        rows=table_rows(conn, catalog, shown, variants),
        common=common,
        common_variants=variants,
        page=min(page, pages),
        page_count=pages,
    )


def _is_name(query: SpecQuery) -> bool:
    return query.name is not None and query == SpecQuery(name=query.name, text=query.text)


def _hashes(conn: sqlite3.Connection, prefix: str | None) -> list[str]:
    """Return the first specs whose hash begins so; none where it is too short to lead anywhere."""
    if prefix is None or not is_hash_prefix(prefix):
        return []
    return list(hashes_beginning(conn, prefix, CANDIDATES_SHOWN))


def _package(conn: sqlite3.Connection, name: str) -> int | None:
    row = conn.execute(PACKAGE_BY_NAME, {"name": name}).fetchone()
    return None if row is None else int(row[0])


def _packages(conn: sqlite3.Connection, name: str | None) -> tuple[tuple[str, int], ...]:
    """Return the packages whose name the searched name is part of."""
    if not name:
        return ()
    match = '"' + name.replace('"', '""') + '"'
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
