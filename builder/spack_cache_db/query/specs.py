"""The specs of configurations: which count, by release, stack and hash, and where they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.open import select, select_in

# Of all specs of a configuration: counted when the file was built.
ALL_SEEN = """
SELECT id, first_seen, last_seen FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
ALL_RELEASES = """
SELECT configuration, releases.name FROM configuration_releases
JOIN releases ON releases.id = configuration_releases.release
WHERE configuration IN (SELECT value FROM json_each(:ids)) ORDER BY releases.position
"""
ALL_STACKS = """
SELECT configuration, stacks.name FROM configuration_stacks
JOIN stacks ON stacks.id = configuration_stacks.stack
WHERE configuration IN (SELECT value FROM json_each(:ids)) AND NOT is_root ORDER BY stacks.name
"""
_CHOSEN = "SELECT specs.configuration, specs.id, specs.hash FROM specs"
_LISTED = " JOIN listings ON listings.release = :release AND listings.spec = specs.id"
_OF_THESE = """
WHERE configuration IN (SELECT value FROM json_each(:ids))
  AND (:hash = '' OR (hash >= :hash AND hash < :hash || '{'))"""
_IN_STACK = " AND specs.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)"
_LAST_FIRST = " ORDER BY specs.last_seen DESC, specs.hash"
SPECS = {
    (False, False): _CHOSEN + _OF_THESE + _LAST_FIRST,
    (False, True): _CHOSEN + _OF_THESE + _IN_STACK + _LAST_FIRST,
    (True, False): _CHOSEN + _LISTED + _OF_THESE + _LAST_FIRST,
    (True, True): _CHOSEN
    + _LISTED
    + _OF_THESE
    + _IN_STACK.replace("specs.stacks", "listings.stacks")
    + _LAST_FIRST,
}
"""The specs that count, by whether a release and a stack narrow them."""

# Of single specs: those whose hash begins as asked.
SPECS_SEEN = """
SELECT configuration, min(first_seen), max(last_seen) FROM specs
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY configuration
"""
# Releases are few and specs many, and only (release, spec) is a key of listings.
SPEC_RELEASES = """
SELECT DISTINCT specs.configuration, releases.name
FROM releases CROSS JOIN specs CROSS JOIN listings
  ON listings.release = releases.id AND listings.spec = specs.id
WHERE specs.id IN (SELECT value FROM json_each(:ids)) ORDER BY releases.position
"""
SPEC_STACKS = """
SELECT DISTINCT specs.configuration, stacks.name
FROM specs JOIN stack_set_members AS member ON member.stack_set = specs.stacks
JOIN stacks ON stacks.id = member.stack
WHERE specs.id IN (SELECT value FROM json_each(:ids)) AND NOT is_root ORDER BY stacks.name
"""
BY_PREFIX = """
SELECT hash FROM specs WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""


class Spec(NamedTuple):
    """A spec of a file."""

    id: int
    hash: str


class Presence(NamedTuple):
    """Where configurations are, by their ids: names of releases and stacks, first and last day."""

    releases: dict[int, tuple[str, ...]]
    stacks: dict[int, tuple[str, ...]]
    seen: dict[int, tuple[str | None, str | None]]


def specs_in_scope(
    conn: sqlite3.Connection, ids: Iterable[int], scope: Scope, prefix: str | None
) -> dict[int, list[Spec]]:
    """Return the specs of configurations that are in the scope, last seen first."""
    sql = SPECS[scope.release is not None, scope.stack is not None]
    wanted = {"release": scope.release, "stack": scope.stack, "hash": prefix or ""}
    found: dict[int, list[Spec]] = {}
    for configuration, key, dag_hash in select_in(conn, sql, ids, **wanted):
        found.setdefault(configuration, []).append(Spec(key, dag_hash))
    return found


def presence_of_configurations(conn: sqlite3.Connection, ids: Iterable[int]) -> Presence:
    """Return where configurations are by any of their specs."""
    ids = [*ids]
    return Presence(
        _grouped(select_in(conn, ALL_RELEASES, ids)),
        _grouped(select_in(conn, ALL_STACKS, ids)),
        {key: (first, last) for key, first, last in select_in(conn, ALL_SEEN, ids)},
    )


def presence_of_specs(conn: sqlite3.Connection, specs: Iterable[Spec]) -> Presence:
    """Return where configurations are by these of their specs."""
    ids = [spec.id for spec in specs]
    return Presence(
        _grouped(select_in(conn, SPEC_RELEASES, ids)),
        _grouped(select_in(conn, SPEC_STACKS, ids)),
        {key: (first, last) for key, first, last in select_in(conn, SPECS_SEEN, ids)},
    )


def hashes_beginning(conn: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    """Return the first hashes that begin with `prefix`, in order."""
    return tuple(row[0] for row in select(conn, BY_PREFIX, prefix=prefix, limit=limit))


def _grouped(pairs: Iterable[tuple[Any, ...]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return {key: tuple(names) for key, names in found.items()}
