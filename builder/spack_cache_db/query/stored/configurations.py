"""Reads configurations by their ids, or of a package: in words, with counts.

Tables have an id for each word. The short tables of words are cached; versions and
variants are read when they are needed (`learn`). `spec_count` is the number of
binaries that a release lists and that are not gone. Statements consist of fixed
fragments, never of input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_in
from spack_cache_db.schema.tables import CONFIGURATION, ID_COLUMNS

OF_IDS = "IN (SELECT value FROM json_each(:ids))"
"""The condition of a statement for `select_in`, which gives it `:ids`."""
_COLUMN_NAMES = ("id", *ID_COLUMNS.values(), "spec_count")
_COLUMNS = ", ".join(_COLUMN_NAMES)
# Where a row has the two ids whose words are read when they are needed (`learn`).
_VERSION = _COLUMN_NAMES.index(ID_COLUMNS["version"])
_VARIANTS = _COLUMN_NAMES.index(ID_COLUMNS["variants"])


class Counted(NamedTuple):
    """A configuration, the position of its version in Spack's order, and its number of
    specs.
    """

    id: int
    configuration: Configuration
    position: int
    spec_count: int


def configurations_of_package(lookups: Lookups, package: int) -> list[Counted]:
    """Return the configurations of a package, given its id; some have no binary."""
    sql = f"SELECT {_COLUMNS} FROM configurations WHERE package_id = :package"
    rows = select(lookups.conn, sql, package=package)
    return _in_words(lookups, list(rows))


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of `ids`."""
    sql = f"SELECT {_COLUMNS} FROM configurations WHERE id {OF_IDS}"
    rows = select_in(lookups.conn, sql, ids)
    by_id = {record.id: record for record in _in_words(lookups, list(rows))}
    return [by_id[key] for key in ids]


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    records = []
    for row in rows:
        key, *word_ids, spec_count = row
        version_id = row[_VERSION]
        configuration = configuration_of(lookups, word_ids)
        position = lookups.positions[version_id]
        records.append(Counted(key, configuration, position, spec_count))
    return records


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of the rows' versions and variants, before `configuration_of`
    uses them.

    A row begins with an id and the columns of a configuration.
    """
    versions = set()
    variant_sets = set()
    for row in rows:
        versions.add(row[_VERSION])
        variant_sets.add(row[_VARIANTS])
    lookups.learn(versions, variant_sets)


def configuration_of(lookups: Lookups, word_ids: Iterable[int]) -> Configuration:
    """Return a configuration in words, which `learn` has read."""
    words = []
    # For example ("compiler", 7): the compiler with the id 7.
    for column, word_id in zip(CONFIGURATION, word_ids, strict=True):
        words.append(lookups.words[column][word_id])
    return Configuration._make(words)


def shared_variants(variant_sets: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the variants that all sets share; none for a single set.

    >>> shared_variants([("+mpi", "~cuda"), ("+mpi", "+cuda")])
    ('+mpi',)
    """
    # A single one shares all with itself, and would be shown without variants.
    if len(variant_sets) < 2:
        return ()
    first, *others = variant_sets
    shared = set(first).intersection(*others)
    return tuple(text for text in first if text in shared)
