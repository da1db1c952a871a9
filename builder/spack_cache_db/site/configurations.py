"""Rows of the table of configurations, as the package and search pages show it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spack_cache_db.query.configurations import Counted
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select, select_in
from spack_cache_db.records import Configuration

MOST_HASHES = 5
"""So many hashes of a configuration stand in its row."""

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
class ReleaseSpan:
    """How many releases list a configuration, and the first and last of them on the page."""

    count: int
    newest: str
    oldest: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a configuration and what belongs beside it.

    `variants` are those that do not stand above the table; `spec_count` counts the specs that match
    the filters, and `hashes` are the first of them.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    stacks: tuple[str, ...]
    releases: ReleaseSpan
    hashes: tuple[str, ...]


def table_rows(
    conn: sqlite3.Connection,
    lookups: Lookups,
    found: Sequence[Counted],
    folded: Iterable[str] = (),
    release: int | None = None,
    stack: int | None = None,
) -> tuple[Row, ...]:
    """Return the lines for `found`, without the variants that are `folded` into one line above."""
    ids = [each.id for each in found]
    spans = _spans(conn, lookups, ids)
    stacks = _stacks(conn, lookups, ids)
    hidden = frozenset(folded)
    where = {"release": release, "stack": stack, "limit": MOST_HASHES}
    sql = _hashes_sql(release, stack)
    return tuple(
        Row(
            each.configuration,
            variants=tuple(text for text in each.configuration.variants if text not in hidden),
            spec_count=each.spec_count,
            stacks=stacks.get(each.id, ()),
            releases=spans.get(each.id, ReleaseSpan(0, "", "")),
            hashes=tuple(row[0] for row in select(conn, sql, id=each.id, **where)),
        )
        for each in found
    )


def _hashes_sql(release: int | None, stack: int | None) -> str:
    if release is None:
        return HASHES_OF if stack is None else HASHES_IN_STACK
    return HASHES_IN_RELEASE if stack is None else HASHES_IN_BOTH


def _spans(conn: sqlite3.Connection, lookups: Lookups, ids: list[int]) -> dict[int, ReleaseSpan]:
    names = {each.position: each.name for each in lookups.releases.values()}
    return {
        configuration: ReleaseSpan(count, names[first], names[last])
        for configuration, count, first, last in select_in(conn, RELEASES_OF, ids)
    }


def _stacks(
    conn: sqlite3.Connection, lookups: Lookups, ids: list[int]
) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for configuration, stack in select_in(conn, STACKS_OF, ids):
        if stack in lookups.stacks:
            found.setdefault(configuration, []).append(lookups.stacks[stack].name)
    return {key: tuple(sorted(names)) for key, names in found.items()}
