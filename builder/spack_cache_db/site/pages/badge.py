"""The badge `/badge/<package>.svg`: the newest version that has a binary, and what it runs on."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.connection import select
from spack_cache_db.query.lookups import Lookups

NEWEST = """
SELECT DISTINCT packages.newest_version, targets.family
FROM packages
JOIN versions ON versions.package = packages.id AND versions.name = packages.newest_version
JOIN configurations ON configurations.version = versions.id AND configurations.spec_count > 0
JOIN targets ON targets.id = configurations.target
WHERE packages.name = :name ORDER BY targets.family
"""
_CHARACTER, _SPACE = 7, 12
"""The width of a character at 11 pixels, at most, and of what is beside a text."""


@dataclass(frozen=True, slots=True)
class Badge:
    """Two texts side by side, each with its width in pixels."""

    package: str
    text: str

    @property
    def widths(self) -> tuple[int, int]:
        """How much room the package and the text take."""
        package, text = (len(each) * _CHARACTER + _SPACE for each in (self.package, self.text))
        return package, text


def load_badge(conn: sqlite3.Connection, lookups: Lookups, name: str) -> Badge | None:
    """Return the badge of the package called `name`; None where it has no binary."""
    found = [*select(conn, NEWEST, name=name)]
    if not found:
        return None
    families = ", ".join(family for _, family in found)
    return Badge(name, f"{found[0][0]} on {families}")
