"""Rows of the table of configurations, as the package and search pages show it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spack_cache_db.site.catalog import Catalog

HASHES_SHOWN = 5

RELEASES_OF = """
SELECT configuration, count(*), min(position), max(position)
FROM configuration_releases JOIN releases ON releases.id = configuration_releases.release
WHERE configuration IN (SELECT value FROM json_each(:ids))
GROUP BY configuration
"""
STACKS_OF = """
SELECT configuration, stack FROM configuration_stacks
WHERE configuration IN (SELECT value FROM json_each(:ids))
"""
HASHES_OF = """
SELECT hash FROM specs WHERE configuration = :id
ORDER BY last_seen DESC, release_count DESC, hash LIMIT :limit
"""
HASHES_IN_RELEASE = """
SELECT specs.hash
FROM specs JOIN listings ON listings.spec = specs.id AND listings.release = :release
WHERE specs.configuration = :id
ORDER BY specs.last_seen DESC, specs.hash LIMIT :limit
"""
HASHES_IN_STACK = """
SELECT specs.hash
FROM specs JOIN stack_set_members AS member
  ON member.stack_set = specs.stacks AND member.stack = :stack
WHERE specs.configuration = :id
ORDER BY specs.last_seen DESC, specs.hash LIMIT :limit
"""
HASHES_IN_BOTH = """
SELECT specs.hash
FROM specs JOIN listings ON listings.spec = specs.id AND listings.release = :release
JOIN stack_set_members AS member
  ON member.stack_set = listings.stacks AND member.stack = :stack
WHERE specs.configuration = :id
ORDER BY specs.last_seen DESC, specs.hash LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a person can see of a spec. `spec_count` counts the specs that match the filters."""

    id: int
    package: str
    version: str
    position: int
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    spec_count: int


@dataclass(frozen=True, slots=True)
class ReleaseSpan:
    """How many releases list a configuration, and the first and last of them on the page."""

    count: int
    newest: str
    oldest: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a configuration and what belongs beside it."""

    configuration: Configuration
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    releases: ReleaseSpan
    hashes: tuple[str, ...]


def table_rows(
    conn: sqlite3.Connection,
    catalog: Catalog,
    shown: Sequence[Configuration],
    folded: Iterable[str] = (),
    release: int | None = None,
    stack: int | None = None,
) -> tuple[Row, ...]:
    """Return the lines for `shown`, without the variants that are `folded` into one line above."""
    ids = json.dumps([each.id for each in shown])
    spans = _spans(conn, catalog, ids)
    stacks = _stacks(conn, catalog, ids)
    hidden = frozenset(folded)
    where = {"release": release, "stack": stack, "limit": HASHES_SHOWN}
    sql = _hashes_sql(release, stack)
    return tuple(
        Row(
            configuration=each,
            variants=tuple(text for text in each.variants if text not in hidden),
            stacks=stacks.get(each.id, ()),
            releases=spans.get(each.id, ReleaseSpan(0, "", "")),
            hashes=tuple(row[0] for row in conn.execute(sql, {**where, "id": each.id})),
        )
        for each in shown
    )


def _hashes_sql(release: int | None, stack: int | None) -> str:
    if release is None:
        return HASHES_OF if stack is None else HASHES_IN_STACK
    return HASHES_IN_RELEASE if stack is None else HASHES_IN_BOTH


def _spans(conn: sqlite3.Connection, catalog: Catalog, ids: str) -> dict[int, ReleaseSpan]:
    names = {each.position: each.name for each in catalog.releases.values()}
    return {
        configuration: ReleaseSpan(count, names[first], names[last])
        for configuration, count, first, last in conn.execute(RELEASES_OF, {"ids": ids})
    }


def _stacks(conn: sqlite3.Connection, catalog: Catalog, ids: str) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for configuration, stack in conn.execute(STACKS_OF, {"ids": ids}):
        if stack in catalog.stacks:
            found.setdefault(configuration, []).append(catalog.stacks[stack].name)
    return {key: tuple(sorted(names)) for key, names in found.items()}
