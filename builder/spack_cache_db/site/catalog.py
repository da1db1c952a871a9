"""The small tables of the file, read once, so that pages need no joins.

A published file never changes while it is served, and its dictionaries (releases, stacks,
compilers, targets, variant sets) hold a few thousand short rows in all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from spack_cache_db.query.conditions import Dictionaries, read_dictionaries

RELEASES = """
SELECT id, name, kind, date, position, package_count, spec_count FROM releases ORDER BY position
"""
STACKS = "SELECT id, name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name"
COMPILERS = "SELECT id, name FROM compilers"
SYSTEMS = "SELECT id, name FROM operating_systems"
PLATFORMS = "SELECT id, name FROM platforms"
TARGETS = "SELECT id, name FROM targets"
FAMILIES = "SELECT name, family FROM targets"
VARIANTS = """
SELECT variant_set_members.variant_set, variants.text
FROM variant_set_members JOIN variants ON variants.id = variant_set_members.variant
WHERE variant_set_members.variant_set IN (SELECT value FROM json_each(:sets))
ORDER BY variants.text
"""


@dataclass(frozen=True, slots=True)
class Release:
    """One release and its totals."""

    id: int
    name: str
    kind: str
    date: str | None
    position: int
    package_count: int
    spec_count: int


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack and its totals."""

    id: int
    name: str
    release_count: int
    spec_count: int


@dataclass(frozen=True)
class Catalog:
    """The dictionaries of one file. Dicts keep the order in which people read them."""

    releases: dict[int, Release]
    stacks: dict[int, Stack]
    compilers: dict[int, str]
    systems: dict[int, str]
    platforms: dict[int, str]
    targets: dict[int, str]
    families: dict[str, str]
    dictionaries: Dictionaries
    _variants: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def release(self, name: str | None) -> Release | None:
        """Return the release called `name`, if there is one."""
        return next((each for each in self.releases.values() if each.name == name), None)

    def stack(self, name: str | None) -> Stack | None:
        """Return the stack called `name`, if there is one; `root` is none."""
        return next((each for each in self.stacks.values() if each.name == name), None)

    def variants(self, conn: sqlite3.Connection, sets: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Return the texts of each variant set, reading those not seen before."""
        wanted = set(sets)
        missing = sorted(wanted - self._variants.keys())
        if missing:
            found: dict[int, list[str]] = {each: [] for each in missing}
            for variant_set, text in conn.execute(VARIANTS, {"sets": json.dumps(missing)}):
                found[variant_set].append(text)
            self._variants.update((key, tuple(texts)) for key, texts in found.items())
        return {each: self._variants[each] for each in wanted}


def load_catalog(conn: sqlite3.Connection) -> Catalog:
    """Read the dictionaries of a published file."""
    return Catalog(
        releases={row[0]: Release(*row) for row in conn.execute(RELEASES)},
        stacks={row[0]: Stack(*row) for row in conn.execute(STACKS)},
        compilers=_names(conn, COMPILERS),
        systems=_names(conn, SYSTEMS),
        platforms=_names(conn, PLATFORMS),
        targets=_names(conn, TARGETS),
        families=dict(conn.execute(FAMILIES)),
        dictionaries=read_dictionaries(conn),
    )


def _names(conn: sqlite3.Connection, sql: str) -> dict[int, str]:
    return dict(conn.execute(sql))
