"""Binaries that their mirrors have lost, as records and sentences."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from spack_cache_db.errors import counted
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select

# Most databases have no copies, and many specs. SQLite would read all specs for AND,
# whose result it computes from both sides.
HAS_GONE = """
SELECT CASE WHEN EXISTS (SELECT 1 FROM releases WHERE is_copy)
  THEN EXISTS (SELECT 1 FROM specs WHERE is_gone) END
"""
OF_PACKAGE = """
SELECT count(*), max(specs.last_seen)
FROM packages
JOIN configurations ON configurations.package_id = packages.id
JOIN specs ON specs.configuration_id = configurations.id
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
        these = (
            "1 of these binaries"
            if self.count == 1
            else f"{self.count:,} of these binaries"
        )
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
            return (
                f"such a binary is gone from its mirror, last listed {self.last_listed}"
            )
        binaries = counted(self.count, "such binary", "such binaries")
        return f"{binaries} are gone from their mirror, last listed {self.last_listed}"


def gone_of_package(conn: sqlite3.Connection, package: str) -> Gone | None:
    """Return the lost binaries of a package, given its name; None if there are none."""
    ((count, last_listed),) = select(conn, OF_PACKAGE, package=package)
    return Gone(count, last_listed or "") if count else None


def has_gone(lookups: Lookups) -> bool:
    """Return whether a database has a lost binary: most have none."""

    def read() -> bool:
        ((found,),) = select(lookups.conn, HAS_GONE)
        return bool(found)

    return lookups.once(HAS_GONE, read)
