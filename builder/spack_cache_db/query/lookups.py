"""The small tables of a file, read once: names of ids, releases, stacks.

A built file never changes, and all these tables hold a few thousand short rows. Versions and
variants, of which there are more, are read when they are asked for, and kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spack_cache_db.query.open import select, select_in
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.variants import Variant, parse_variant

RELEASES = """
SELECT id, name, kind, date, position, package_count, spec_count FROM releases ORDER BY position
"""
STACKS = "SELECT id, name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name"
FAMILIES = "SELECT name, family FROM targets"
VERSIONS = """
SELECT id, name, position FROM versions WHERE id IN (SELECT value FROM json_each(:ids))
"""
VARIANTS = """
SELECT member.variant_set, variants.text
FROM variant_set_members AS member JOIN variants ON variants.id = member.variant
WHERE member.variant_set IN (SELECT value FROM json_each(:ids)) ORDER BY variants.text
"""
EVERY_VARIANT = "SELECT id, text FROM variants"

LAZY = ("version", "variants")
"""The columns of a configuration whose words are read when they are asked for."""


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
class Lookups:
    """The small tables of one file.

    Attributes:
        releases: by id, in the file's order: branches, then releases and snapshots from new to old.
        stacks: by id, sorted by name, without `root`.
        families: the family of each target, by name.
        words: for each column of a configuration, what its ids mean; see `learn`.
        positions: the place of a version in Spack's order within its package, by id; see `learn`.
    """

    releases: dict[int, Release]
    stacks: dict[int, Stack]
    families: dict[str, str]
    words: dict[str, dict[int, Any]]
    positions: dict[int, int] = field(default_factory=dict)
    _variants: dict[str, list[tuple[int, Variant]]] = field(default_factory=dict)

    def release(self, name: str | None) -> Release | None:
        """Return the release called `name`, if there is one."""
        return next((each for each in self.releases.values() if each.name == name), None)

    def stack(self, name: str | None) -> Stack | None:
        """Return the stack called `name`, if there is one; `root` is none."""
        return next((each for each in self.stacks.values() if each.name == name), None)

    def learn(self, conn: sqlite3.Connection, versions: set[int], variant_sets: set[int]) -> None:
        """Make sure that `words` and `positions` have these versions and sets of variants."""
        for key, name, position in select_in(conn, VERSIONS, versions - self.positions.keys()):
            self.words["version"][key] = name
            self.positions[key] = position
        known = self.words["variants"]
        texts: dict[int, list[str]] = {key: [] for key in variant_sets - known.keys()}
        for key, text in select_in(conn, VARIANTS, texts):
            texts[key].append(text)
        known.update((key, tuple(found)) for key, found in texts.items())

    def variants(self, conn: sqlite3.Connection, name: str) -> Iterable[tuple[int, Variant]]:
        """Return id and meaning of each variant of this name."""
        if not self._variants:
            found: dict[str, list[tuple[int, Variant]]] = {}
            for key, text in select(conn, EVERY_VARIANT):
                try:
                    variant = parse_variant(text)
                except ValueError:
                    # A page may print what Spack would not read as a variant: no query asks for it.
                    continue
                found.setdefault(variant.name, []).append((key, variant))
            self._variants.update(found)
        return self._variants.get(name, ())


def read_lookups(conn: sqlite3.Connection) -> Lookups:
    """Read the small tables: a few milliseconds, worth keeping where a file is asked often."""
    return Lookups(
        releases={row[0]: Release(*row) for row in select(conn, RELEASES)},
        stacks={row[0]: Stack(*row) for row in select(conn, STACKS)},
        families=dict(select(conn, FAMILIES)),
        words={
            column: {} if column in LAZY else dict(select(conn, _names_of(table)))
            for column, table in CONFIGURATION.items()
        },
    )


def _names_of(table: str) -> str:
    return f"SELECT id, name FROM {table}"  # noqa: S608 - a table of the schema
