"""Reads configurations and specs by their ids: words, counts, releases, stacks and
installations.

Statements consist of the fixed fragments below, never of input. A spec that no release
lists is not a binary and is not counted. A binary that the mirror has lost counts in
the releases that list it, and not in the database or a stack as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_in
from spack_cache_db.schema.tables import CONFIGURATION

_CONFIGURATION = ", ".join(("id", *CONFIGURATION, "spec_count"))
OF_IDS = "IN (SELECT value FROM json_each(:ids))"
CONFIGURATIONS_BEGINNING = """
SELECT hash, configuration FROM specs
WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""
# The positions in rows (`_CONFIGURATION`) of the two columns whose words are read at
# first use.
_VERSION, _VARIANTS = (
    1 + [*CONFIGURATION].index(column) for column in ("version", "variants")
)


class Counted(NamedTuple):
    """A configuration, the position of its version in Spack's order, and its number of
    specs.
    """

    id: int
    configuration: Configuration
    position: int
    spec_count: int


def configurations_of_package(lookups: Lookups, package: int) -> list[Counted]:
    """Return the configurations of a package, given its id; `spec_count` counts all
    specs.
    """
    sql = f"SELECT {_CONFIGURATION} FROM configurations WHERE package = :package"
    return _in_words(lookups, [*select(lookups.conn, sql, package=package)])


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of `ids`; `spec_count` counts all specs."""
    sql = f"SELECT {_CONFIGURATION} FROM configurations WHERE id {OF_IDS}"
    by_id = {
        row.id: row for row in _in_words(lookups, [*select_in(lookups.conn, sql, ids)])
    }
    return [by_id[key] for key in ids]


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    positions = lookups.positions
    return [
        Counted(
            row[0],
            configuration_of(lookups, row[1:-1]),
            positions[row[_VERSION]],
            row[-1],
        )
        for row in rows
    ]


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of rows: an id and the columns of a configuration
    (`Lookups.learn`).
    """
    rows = [*rows]
    lookups.learn({row[_VERSION] for row in rows}, {row[_VARIANTS] for row in rows})


def configuration_of(lookups: Lookups, keys: Iterable[int]) -> Configuration:
    """Return a configuration in words, which `learn` has read."""
    words = zip(CONFIGURATION, keys, strict=True)
    return Configuration._make(lookups.words[column][key] for column, key in words)


def shared_variants(configurations: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the variants that all configurations share; none for a single one."""
    if len(configurations) < 2:
        return ()
    shared = set[str].intersection(*map(set, configurations))
    return tuple(text for text in configurations[0] if text in shared)


def configurations_beginning(
    lookups: Lookups, prefix: str, limit: int
) -> list[tuple[str, Configuration]]:
    """Return the first specs whose hashes begin with `prefix`, listed or not."""
    rows = [*select(lookups.conn, CONFIGURATIONS_BEGINNING, prefix=prefix, limit=limit)]
    counted = configurations_by_id(lookups, [key for _, key in rows])
    return [
        (row[0], item.configuration) for row, item in zip(rows, counted, strict=True)
    ]
