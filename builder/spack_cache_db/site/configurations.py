"""Rows of the table of configurations, as the package and search pages show it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.configurations import Counted, presence_of_configurations
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.specs import specs_in_scope
from spack_cache_db.records import Configuration

MOST_HASHES = 5
"""So many hashes of a configuration stand in its row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a configuration and what belongs beside it.

    Attributes:
        variants: those that do not stand above the table.
        spec_count: how many specs match the filters or the search.
        releases: all that show the configuration, in the file's order.
        hashes: the first of the specs, what is current first.
    """

    configuration: Configuration
    variants: tuple[str, ...]
    spec_count: int
    stacks: tuple[str, ...]
    releases: tuple[str, ...]
    hashes: tuple[str, ...]


def table_rows(
    conn: sqlite3.Connection,
    lookups: Lookups,
    found: Sequence[Counted],
    folded: Iterable[str],
    scope: Scope,
    prefix: str | None = None,
    among: Set[int] | None = None,
) -> tuple[Row, ...]:
    """Return the lines for `found`, without the variants that are `folded` into one line above.

    Args:
        scope: the release and the stack whose specs count.
        prefix: what their hashes begin with.
        among: the ids of those that a search found, where not all of a configuration are.
    """
    presence = presence_of_configurations(conn, lookups, [each.id for each in found])
    hidden = frozenset(folded)
    return tuple(
        Row(
            each.configuration,
            variants=tuple(text for text in each.configuration.variants if text not in hidden),
            spec_count=each.spec_count,
            stacks=presence[each.id].stacks,
            releases=presence[each.id].releases,
            hashes=tuple(
                spec.hash
                for specs in specs_in_scope(
                    conn, [each.id], scope, prefix, MOST_HASHES, among
                ).values()
                for spec in specs
            ),
        )
        for each in found
    )
