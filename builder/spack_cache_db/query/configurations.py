"""Ids of configurations → what they are, in words, and where: the one place of this join."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select, select_in
from spack_cache_db.query.specs import Presence
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION

_COLUMNS = ", ".join(("id", *CONFIGURATION, "spec_count"))
OF_PACKAGE = f"SELECT {_COLUMNS} FROM configurations WHERE package = :package"  # noqa: S608
BY_ID = f"""
SELECT {_COLUMNS} FROM configurations WHERE id IN (SELECT value FROM json_each(:ids))
"""  # noqa: S608
RELEASES = """
SELECT configuration, release FROM configuration_releases
WHERE configuration IN (SELECT value FROM json_each(:ids))
"""
STACKS = """
SELECT configuration, stack FROM configuration_stacks
WHERE configuration IN (SELECT value FROM json_each(:ids))
"""
LISTED_STACKS = """
SELECT DISTINCT listed.configuration, member.stack
FROM listings AS listed
JOIN stack_set_members AS member ON member.stack_set = listed.stacks
WHERE listed.configuration IN (SELECT value FROM json_each(:ids))
"""
SEEN = """
SELECT id, first_seen, last_seen FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""

# Where the two columns stand in these rows whose words are not all known beforehand.
_VERSION, _VARIANTS = (1 + [*CONFIGURATION].index(column) for column in ("version", "variants"))


class Counted(NamedTuple):
    """A configuration of a file, and how many specs count for whom it is found.

    `position` is that of its version in Spack's order within the package.
    """

    id: int
    configuration: Configuration
    position: int
    spec_count: int


def configurations_of_package(
    conn: sqlite3.Connection, lookups: Lookups, package: int
) -> list[Counted]:
    """Return the configurations of a package, given its id; `spec_count` counts all specs."""
    return _in_words(conn, lookups, [*select(conn, OF_PACKAGE, package=package)])


def configurations_by_id(
    conn: sqlite3.Connection, lookups: Lookups, ids: Sequence[int]
) -> list[Counted]:
    """Return configurations in the order of their ids here; `spec_count` counts all specs."""
    found = {each.id: each for each in _in_words(conn, lookups, [*select_in(conn, BY_ID, ids)])}
    return [found[key] for key in ids]


def learn(conn: sqlite3.Connection, lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of some rows, each an id and the columns of a configuration, once."""
    rows = [*rows]
    lookups.learn(conn, {row[_VERSION] for row in rows}, {row[_VARIANTS] for row in rows})


def configuration_of(lookups: Lookups, row: tuple[Any, ...]) -> Configuration:
    """Return such a row in words, which `learn` has read; what follows in it is passed over."""
    keys = zip(CONFIGURATION, row[1:], strict=False)
    return Configuration._make(lookups.words[column][key] for column, key in keys)


def _in_words(
    conn: sqlite3.Connection, lookups: Lookups, rows: list[tuple[Any, ...]]
) -> list[Counted]:
    learn(conn, lookups, rows)
    return [
        Counted(row[0], configuration_of(lookups, row), lookups.positions[row[_VERSION]], row[-1])
        for row in rows
    ]


def presence_of_configurations(
    conn: sqlite3.Connection, lookups: Lookups, ids: Sequence[int]
) -> dict[int, Presence]:
    """Return where configurations are, by their ids.

    They are in the releases that show them, and in the stacks of the specs whose own they are; one
    that is no spec's own is in the stacks of the listings that show it.
    """
    releases = _grouped(select_in(conn, RELEASES, ids))
    stacks = _grouped(select_in(conn, STACKS, ids))
    stacks |= _grouped(select_in(conn, LISTED_STACKS, [key for key in ids if key not in stacks]))
    # Very many configurations are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    return {
        key: Presence(
            names(tuple(releases.get(key, ()))),
            lookups.stack_names(stacks.get(key, ())),
            first_seen,
            last_seen,
        )
        for key, first_seen, last_seen in select_in(conn, SEEN, ids)
    }


def _grouped(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, number in pairs:
        found.setdefault(key, []).append(number)
    return found
