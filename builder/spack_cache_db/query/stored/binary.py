"""Specs by their hashes and configurations."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Set
from typing import Any, NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import (
    PLACE_KINDS,
    Conditions,
    condition_value,
    only,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import (
    IDS_AT_ONCE,
    json_pieces,
    select,
    select_ids,
    select_in,
)
from spack_cache_db.query.stored.configurations import OF_IDS, configurations_by_id

OF_PLACE = """
SELECT configuration_id, spec_count FROM {table}
WHERE {place}_id = :{place} AND spec_count > 0
  AND configuration_id IN (SELECT value FROM json_each(:ids))
"""
"""The number of specs of each configuration in a `release` or a `stack`."""
COUNTED_BY = {"release": "configuration_history", "stack": "configuration_stacks"}
"""The tables with numbers of specs by place. Rows of `configuration_history` may have
none.
"""
HASH_BEGINS = "specs.hash >= :hash AND specs.hash < :hash || '{'"
"""The specs whose hashes begin with a text, by the index of hashes.

Hashes have digits and the letters a to z, and `{` is the character after z.
"""
HASH_BEGINS_OR_ANY = f"(:hash = '' OR ({HASH_BEGINS}))"
"""Without a text, all specs; SQLite does not search these specs by their hashes."""
IN_STACK = """
(:stack IS NULL OR {}.stack_set_id IN (
  SELECT stack_set_id FROM stack_set_members WHERE stack_id = :stack))
"""
"""The specs or listings (a table or its alias) in a stack; all if the stack is NULL."""
HASHES_AT_ONCE = 4_000
"""Number of hashes in a JSON text below 200 kB, the longest value that the site
allows.
"""
IDS_OF_HASHES = (
    "SELECT hash, id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"
)
SPEC_COLUMNS = (
    "specs.id, specs.hash, specs.stack_set_id, "
    "specs.first_seen, specs.last_seen, specs.is_gone, specs.is_current"
)
AVAILABLE = "specs.release_count > 0 AND NOT specs.is_gone"
"""The specs that count without a release: listed, and not lost by their mirror."""
_OF_DATABASE = f"specs WHERE {AVAILABLE}"
_OF_RELEASE = f"""specs
CROSS JOIN listings ON listings.release_id = :release AND listings.spec_id = specs.id
WHERE {IN_STACK.format("listings")}"""
_OF_STACK = f"specs WHERE {AVAILABLE} AND {IN_STACK.format('specs')}"
BEGINNING = f"""
SELECT id, hash FROM specs WHERE {HASH_BEGINS} ORDER BY hash LIMIT :limit
"""
CONFIGURATIONS_BEGINNING = f"""
SELECT hash, configuration_id FROM specs WHERE {HASH_BEGINS} ORDER BY hash LIMIT :limit
"""


class Spec(NamedTuple):
    """A spec.

    Attributes:
        stacks: the id of the set of stacks that have it in any release.
        is_gone: 1 if its mirror has lost it, or else 0.
        is_current: 1 if a branch or a release lists it, and not only a snapshot, or
            else 0.
    """

    id: int
    hash: str
    stacks: int
    first_seen: str | None
    last_seen: str | None
    is_gone: int = 0
    is_current: int = 0


def configurations_of_listed(
    conn: sqlite3.Connection, specs: Iterable[int]
) -> Set[int]:
    """Return the configurations of those specs that a release lists, all by id."""
    sql = f"SELECT configuration_id FROM specs WHERE id {OF_IDS} AND release_count > 0"
    return select_ids(conn, sql, specs)


def specs_in_scope(
    conn: sqlite3.Connection, ids: Iterable[int], conditions: Conditions
) -> dict[int, list[Spec]]:
    """Return the specs of configurations that satisfy conditions, by configuration id.

    Conditions on words are ignored; with a release, the stack is that of the release.
    Specs are sorted by their first release in the database's order, then by hash; those
    that their mirror has lost come last. Configurations without such a spec are left
    out.
    """
    specs: dict[int, list[Spec]] = {}
    # Ids are in the order of first releases and hashes.
    order = "ORDER BY specs.is_gone, specs.id"
    rows = _rows_in_scope(conn, ids, conditions, SPEC_COLUMNS, order)
    for configuration, *spec in rows:
        specs.setdefault(configuration, []).append(Spec._make(spec))
    return specs


def ids_of_hashes(conn: sqlite3.Connection, hashes: Iterable[str]) -> dict[str, int]:
    """Return the ids of specs by their hashes; unknown hashes have no key."""
    ids: dict[str, int] = {}
    for piece in json_pieces(hashes, HASHES_AT_ONCE):
        ids.update(select(conn, IDS_OF_HASHES, hashes=piece))
    return ids


def counts_in_scope(
    lookups: Lookups, ids: Collection[int], conditions: Conditions
) -> Counter[int]:
    """Return the number of specs that `specs_in_scope` would return, by
    configuration.
    """
    kinds = {condition.kind for condition in only(conditions, *PLACE_KINDS)}
    verdict = condition_value(conditions, "specs")

    # The counts of a release and of a stack are stored.
    if kinds in ({"release"}, {"stack"}):
        (place,) = kinds
        sql = OF_PLACE.format(place=place, table=COUNTED_BY[place])
        value = {place: condition_value(conditions, place)}
        return Counter(dict(select_in(lookups.conn, sql, ids, **value)))

    # Many specs of the whole database are counted without SQLite, which is faster.
    if (
        verdict is not None
        and kinds == {"specs"}
        and not _is_few(verdict.matching, ids)
    ):
        # A spec that does not count has 0 instead of its configuration.
        counted_for = lookups.column("specs", f"configuration_id * ({AVAILABLE})")
        wanted = set(ids)
        configurations = (counted_for[spec] for spec in verdict.matching)
        return Counter(key for key in configurations if key in wanted)

    rows = _rows_in_scope(lookups.conn, ids, conditions, "specs.id")
    return Counter(configuration for configuration, _ in rows)


def _rows_in_scope(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    conditions: Conditions,
    columns: str,
    order: str = "",
) -> Iterator[tuple[Any, ...]]:
    """Return rows of the specs of some configurations that satisfy conditions.

    A row has the id of the configuration, and then `columns`: the id of the spec first.
    """
    values = {
        "release": condition_value(conditions, "release"),
        "stack": condition_value(conditions, "stack"),
        "hash": condition_value(conditions, "hash") or "",
    }
    if values["release"] is not None:
        listed = _OF_RELEASE
    elif values["stack"] is not None:
        listed = _OF_STACK
    else:
        listed = _OF_DATABASE

    # Search by configurations, or by the specs themselves if these are fewer.
    verdict = condition_value(conditions, "specs")
    configurations = list(ids) if verdict is None else set(ids)
    column = "configuration_id"
    searched: Collection[int] = configurations
    if verdict is not None and _is_few(verdict.matching, configurations):
        column = "id"
        searched = verdict.matching
    sql = f"""
SELECT specs.configuration_id, {columns} FROM {listed}
  AND specs.{column} {OF_IDS}
  AND {HASH_BEGINS_OR_ANY} {order}
"""
    rows = select_in(conn, sql, searched, **values)
    if verdict is None:
        return rows
    return (
        row for row in rows if row[0] in configurations and row[1] in verdict.matching
    )


def _is_few(specs: Collection[int], configurations: Collection[int]) -> bool:
    """Return whether specs are searched by their own ids, not by ids of
    configurations.
    """
    # Rows of several pieces (`json_pieces`) would be out of order.
    return len(specs) <= min(len(configurations), IDS_AT_ONCE)


def specs_beginning(
    conn: sqlite3.Connection, prefix: str, limit: int = -1
) -> dict[int, str]:
    """Return the first specs whose hashes begin with a text, listed or not.

    The hashes are in order, by the ids of the specs; a limit of -1 is none.
    """
    return dict(select(conn, BEGINNING, hash=prefix, limit=limit))


def configurations_beginning(
    lookups: Lookups, prefix: str, limit: int
) -> list[tuple[str, Configuration]]:
    """Return the first hashes that begin with a text, listed or not, with their
    configurations.
    """
    rows = list(
        select(lookups.conn, CONFIGURATIONS_BEGINNING, hash=prefix, limit=limit)
    )
    ids = [configuration for _, configuration in rows]
    records = configurations_by_id(lookups, ids)
    return [
        (dag_hash, record.configuration)
        for (dag_hash, _), record in zip(rows, records, strict=True)
    ]


def specs_of_configurations(
    conn: sqlite3.Connection, ids: Collection[int]
) -> frozenset[int]:
    """Return the ids of the specs of some configurations."""
    return select_ids(
        conn, f"SELECT id FROM specs WHERE configuration_id {OF_IDS}", ids
    )
