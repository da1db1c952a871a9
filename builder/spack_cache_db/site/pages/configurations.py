"""Rows of the table of configurations, as the package and search pages show it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spack_cache_db.query.catalogue import Counted, presence_of_configurations, specs_in_scope
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.records import Configuration


@dataclass(frozen=True, slots=True)
class ConfigurationRow:
    """One line of the table: a configuration and what belongs beside it.

    Attributes:
        variants: those that do not stand above the table.
        spec_count: how many specs match the filters or the search.
        releases: all that show the configuration, in the file's order.
        last_seen: the day of the last snapshot that shows it.
        hashes: the specs, what is current first; of a row that is not opened the first alone.
        is_open: whether all of the hashes and releases are to be shown.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    stacks: tuple[str, ...]
    releases: tuple[str, ...]
    last_seen: str | None
    hashes: tuple[str, ...]
    is_open: bool


def table_rows(
    conn: sqlite3.Connection,
    lookups: Lookups,
    found: Sequence[Counted],
    folded: Iterable[str],
    conditions: Conditions,
    opened: str | None = None,
) -> tuple[ConfigurationRow, ...]:
    """Return the lines for `found`, without the variants that are `folded` into one line above.

    Args:
        conditions: what the specs that count satisfy.
        opened: the first hash of the configuration of which all hashes are wanted.
    """
    presence = presence_of_configurations(conn, lookups, [each.id for each in found])
    hidden = frozenset(folded)

    def hashes(each: Counted, limit: int) -> tuple[str, ...]:
        specs = specs_in_scope(conn, [each.id], conditions, limit).get(each.id, ())
        return tuple(spec.hash for spec in specs)

    def row(each: Counted) -> ConfigurationRow:
        first = hashes(each, 1)
        is_open = opened is not None and first == (opened,)
        return ConfigurationRow(
            each.configuration,
            variants=tuple(text for text in each.configuration.variants if text not in hidden),
            spec_count=each.spec_count,
            stacks=presence[each.id].stacks,
            releases=presence[each.id].releases,
            last_seen=presence[each.id].last_seen,
            hashes=hashes(each, -1) if is_open else first,
            is_open=is_open,
        )

    return tuple(map(row, found))
