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

OF_IDS = "IN (SELECT value FROM json_each(:ids))"
_COLUMNS = ", ".join(("id", *CONFIGURATION, "spec_count"))
"""The columns of `_in_words`: id, the seven ids of words, number of specs."""
_VERSION = 1 + list(CONFIGURATION).index("version")
_VARIANTS = 1 + list(CONFIGURATION).index("variants")
"""The positions of the two columns whose words are read at first use."""


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
    sql = f"SELECT {_COLUMNS} FROM configurations WHERE package = :package"
    rows = select(lookups.conn, sql, package=package)
    return _in_words(lookups, list(rows))


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of `ids`; `spec_count` counts all specs."""
    sql = f"SELECT {_COLUMNS} FROM configurations WHERE id {OF_IDS}"
    rows = select_in(lookups.conn, sql, ids)
    by_id = {record.id: record for record in _in_words(lookups, list(rows))}
    return [by_id[key] for key in ids]


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    records = []
    for row in rows:
        key, *word_ids, spec_count = row
        configuration = configuration_of(lookups, word_ids)
        position = lookups.positions[row[_VERSION]]
        records.append(Counted(key, configuration, position, spec_count))
    return records


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the versions and variants of rows that begin with an id and the columns of a
    configuration (`Lookups.learn`).
    """
    versions = set()
    variant_sets = set()
    for row in rows:
        versions.add(row[_VERSION])
        variant_sets.add(row[_VARIANTS])
    lookups.learn(versions, variant_sets)


def configuration_of(lookups: Lookups, word_ids: Iterable[int]) -> Configuration:
    """Return a configuration in words, which `learn` has read."""
    words = lookups.words
    columns = zip(CONFIGURATION, word_ids, strict=True)
    return Configuration._make(words[column][word_id] for column, word_id in columns)


def shared_variants(configurations: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the variants that all configurations share; none for a single one.

    >>> shared_variants([("+mpi", "~cuda"), ("+mpi", "+cuda")])
    ('+mpi',)
    """
    if len(configurations) < 2:
        return ()
    first, *others = configurations
    shared = set(first).intersection(*others)
    return tuple(text for text in first if text in shared)
