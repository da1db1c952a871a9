"""Binaries that their mirrors have lost, of those that satisfy conditions.

Only copies of releases that `build --snapshot` made list them. An answer about such a
copy includes them, and all other answers leave them out; each answer has a note on
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import (
    Conditions,
    condition_value,
    without,
)
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored.binary import HASH_BEGINS_OR_ANY, IN_STACK
from spack_cache_db.query.stored.gone import Gone, has_gone

OF_CONFIGURATIONS = f"""
SELECT specs.id, specs.configuration_id, specs.last_seen
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration_id = wanted.value
WHERE specs.is_gone AND {HASH_BEGINS_OR_ANY} AND {IN_STACK.format("specs")}
  AND (:release IS NULL OR EXISTS (
    SELECT 1 FROM listings
    WHERE listings.release_id = :release AND listings.spec_id = specs.id
      AND {IN_STACK.format("listings")}))
"""
"""The lost specs of configurations, whose hashes begin with a text, in a stack and a
release; an empty text and NULL are all.
"""


def gone_among(lookups: Lookups, conditions: Conditions) -> Gone | None:
    """Return the lost binaries that satisfy conditions; None if there are none.

    With a release, only binaries that this release lists.
    """
    if not has_gone(lookups):
        return None
    # A configuration has only the stacks of its other binaries, so `_lost_of` compares
    # the stacks of specs instead.
    others = without(conditions, "stack")
    ids = configuration_ids(lookups, others, every=True)
    return _gone_of(_lost_of(lookups, ids, conditions))


def gone_note(lookups: Lookups, conditions: Conditions) -> tuple[str, ...]:
    """Return a note on the lost binaries that satisfy conditions, for an answer with
    others.

    Answers about a release include what it listed; all other answers leave lost
    binaries out.
    """
    gone = gone_among(lookups, conditions)
    if gone is None:
        return ()
    is_of_release = condition_value(conditions, "release") is not None
    return (gone.among_these if is_of_release else gone.more,)


def gone_beside(lookups: Lookups, spec: int, configuration: int) -> Gone | None:
    """Return the other lost binaries of a spec's configuration, both given by id."""
    if not has_gone(lookups):
        return None
    lost = _lost_of(lookups, [configuration], ())
    return _gone_of([binary for binary in lost if binary.spec != spec])


def gone_counts(
    lookups: Lookups, ids: Iterable[int], conditions: Conditions
) -> Counter[int]:
    """Return how many binaries of each configuration in an answer are lost, by the id
    of the configuration.

    Only answers about a release include lost binaries.
    """
    if condition_value(conditions, "release") is None or not has_gone(lookups):
        return Counter()
    lost = _lost_of(lookups, ids, conditions)
    return Counter(binary.configuration for binary in lost)


class _Lost(NamedTuple):
    """A lost binary: the ids of its spec and configuration, and the day of the last
    copy that lists it.
    """

    spec: int
    configuration: int
    last_seen: str | None


def _lost_of(
    lookups: Lookups, ids: Iterable[int], conditions: Conditions
) -> list[_Lost]:
    """Return the lost binaries of configurations, of those that satisfy conditions on
    specs, a release and a stack.
    """
    parameters = {
        "release": condition_value(conditions, "release"),
        "stack": condition_value(conditions, "stack"),
        "hash": condition_value(conditions, "hash") or "",
    }
    rows = select_in(lookups.conn, OF_CONFIGURATIONS, ids, **parameters)
    lost = [_Lost._make(row) for row in rows]
    verdict = condition_value(conditions, "specs")
    if verdict is None:
        return lost
    return [binary for binary in lost if binary.spec in verdict.matching]


def _gone_of(lost: list[_Lost]) -> Gone | None:
    """Return the number of lost binaries, and the last of their days."""
    if not lost:
        return None
    # A binary may have no day: only snapshots have one.
    days = [binary.last_seen or "" for binary in lost]
    return Gone(len(lost), max(days))
