"""Binaries that their mirrors have lost: only copies that `build --snapshot` made list them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.query.conditions import Conditions, asked, without
from spack_cache_db.query.configurations import HASH_BEGINS, IN_STACK
from spack_cache_db.query.database import Lookups, select, select_in
from spack_cache_db.query.selection import configuration_ids

# Most databases have no copies, and many specs.
HAS_GONE = """
SELECT EXISTS (SELECT 1 FROM releases WHERE is_copy)
  AND EXISTS (SELECT 1 FROM specs WHERE is_gone)
"""
OF_CONFIGURATIONS = f"""
SELECT specs.id, specs.configuration, specs.last_seen
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration = wanted.value
WHERE specs.is_gone AND {HASH_BEGINS} AND {IN_STACK.format("specs")}
  AND (:release IS NULL OR EXISTS (
    SELECT 1 FROM listings
    WHERE listings.release = :release AND listings.spec = specs.id
      AND {IN_STACK.format("listings")}))
"""
OF_PACKAGE = """
SELECT count(*), max(specs.last_seen)
FROM packages
JOIN configurations ON configurations.package = packages.id
JOIN specs ON specs.configuration = configurations.id
WHERE packages.name = :package AND specs.is_gone
"""


@dataclass(frozen=True, slots=True)
class Gone:
    """Binaries that their mirrors have lost.

    Attributes:
        count: how many, at least one.
        last_listed: the day of the latest snapshot that lists one of them.
    """

    count: int
    last_listed: str

    @property
    def more(self) -> str:
        """A note beside binaries that a mirror lists."""
        return f"{self.count:,} more that the mirror has lost, last listed {self.last_listed}"

    @property
    def among_these(self) -> str:
        """A note on an answer that includes them."""
        these = "1 of these binaries" if self.count == 1 else f"{self.count:,} of these binaries"
        return f"the mirror has lost {these}, last listed {self.last_listed}"

    @property
    def of_package(self) -> str:
        """The sentence about a package that has no other binary."""
        binaries = "its only binary"
        if self.count > 1:
            binaries = f"all {self.count:,} binaries"
        return f"its mirror has lost {binaries}, last listed {self.last_listed}"

    @property
    def instead(self) -> str:
        """The sentence about a spec that no other binary satisfies."""
        if self.count == 1:
            return f"such a binary is gone from its mirror, last listed {self.last_listed}"
        binaries = counted(self.count, "such binary", "such binaries")
        return f"{binaries} are gone from their mirror, last listed {self.last_listed}"


def gone_among(lookups: Lookups, conditions: Conditions) -> Gone | None:
    """Return the lost binaries that satisfy conditions; None if there are none.

    With a release, only binaries that this release lists.
    """
    if not has_gone(lookups):
        return None
    # The stacks of configurations do not count lost binaries: `_rows` compares those of specs.
    ids = configuration_ids(lookups, without(conditions, "stack"), every=True)
    return _gone_of(_rows(lookups, ids, conditions))


def gone_note(lookups: Lookups, conditions: Conditions) -> tuple[str, ...]:
    """Return a note on the lost binaries that satisfy conditions, for an answer with others.

    Answers about a release include what it listed; all other answers leave lost binaries out.
    """
    gone = gone_among(lookups, conditions)
    if gone is None:
        return ()
    is_of_release = asked(conditions, "release") is not None
    return (gone.among_these if is_of_release else gone.more,)


def gone_of_package(conn: sqlite3.Connection, package: str) -> Gone | None:
    """Return the lost binaries of a package, given its name; None if there are none."""
    ((count, last_listed),) = select(conn, OF_PACKAGE, package=package)
    return Gone(count, last_listed or "") if count else None


def gone_beside(lookups: Lookups, spec: int, configuration: int) -> Gone | None:
    """Return the other lost binaries of a spec's configuration, both given by id."""
    if not has_gone(lookups):
        return None
    others = [lost for lost in _rows(lookups, [configuration], ()) if lost.spec != spec]
    return _gone_of(others)


def gone_counts(lookups: Lookups, ids: Iterable[int], conditions: Conditions) -> Counter[int]:
    """Return how many binaries of each configuration in an answer are lost.

    Only answers about a release include lost binaries.
    """
    if asked(conditions, "release") is None or not has_gone(lookups):
        return Counter()
    return Counter(lost.configuration for lost in _rows(lookups, ids, conditions))


def has_gone(lookups: Lookups) -> bool:
    """Return whether a database has a lost binary: most have none."""

    def read() -> bool:
        ((found,),) = select(lookups.conn, HAS_GONE)
        return bool(found)

    return lookups.once(HAS_GONE, read)


class _Lost(NamedTuple):
    """A lost binary: the ids of its spec and configuration, and the last day that lists it."""

    spec: int
    configuration: int
    last_seen: str | None


def _rows(lookups: Lookups, ids: Iterable[int], conditions: Conditions) -> list[_Lost]:
    """Return the lost binaries of configurations that satisfy conditions."""
    places = {kind: asked(conditions, kind) for kind in ("release", "stack")}
    prefix = asked(conditions, "hash") or ""
    verdict = asked(conditions, "specs")
    rows = select_in(lookups.conn, OF_CONFIGURATIONS, ids, hash=prefix, **places)
    lost = [_Lost._make(row) for row in rows]
    if verdict is None:
        return lost
    return [binary for binary in lost if binary.spec in verdict.holds]


def _gone_of(lost: list[_Lost]) -> Gone | None:
    if not lost:
        return None
    return Gone(len(lost), max(binary.last_seen or "" for binary in lost))
