"""The small tables of a file, read once: names of ids, releases, stacks.

A built file never changes, and all these tables hold a few thousand short rows. Versions and
variants, of which there are more, are read when they are asked for, and kept.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, Self

from spack_cache_db.arguments import AnyPath, checked_database, checked_file
from spack_cache_db.query.connection import (
    connected,
    open_database,
    select,
    select_in,
    told_as_damaged,
)
from spack_cache_db.records import INSTALLED
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.versions import preference_key

RELEASES = """
SELECT id, name, kind, date, position, package_count, spec_count FROM releases ORDER BY position
"""
STACKS = "SELECT id, name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name"
FAMILIES = "SELECT name, family FROM targets"
VERSIONS = """
SELECT id, name, position FROM versions WHERE id IN (SELECT value FROM json_each(:ids))
"""
STACK_SETS = "SELECT id, shown FROM stack_sets"
VARIANTS = """
SELECT member.variant_set, variants.text
FROM variant_set_members AS member JOIN variants ON variants.id = member.variant
WHERE member.variant_set IN (SELECT value FROM json_each(:ids)) ORDER BY variants.text
"""

LETTERED_VERSIONS = "SELECT id, name FROM versions WHERE name GLOB '*[a-zA-Z]*'"

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


# Answers are kept by what they were read with: two of them are compared by identity.
@dataclass(frozen=True, eq=False)
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
    _stack_sets: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _late_versions: dict[str, str] = field(default_factory=dict)

    @property
    def compilers(self) -> set[str]:
        """The names of all compilers, without their versions."""
        return {name.partition("@")[0] for name in self.words["compiler"].values()}

    @property
    def is_installed(self) -> bool:
        """Whether all of it is installed, and nothing comes from a build cache."""
        return 0 < len(self.releases) == len(self.trees())

    def release(self, name: str | None) -> Release | None:
        """Return the release called `name`, if there is one."""
        return next((each for each in self.releases.values() if each.name == name), None)

    def stack(self, name: str | None) -> Stack | None:
        """Return the stack called `name`, if there is one; `root` is none."""
        return next((each for each in self.stacks.values() if each.name == name), None)

    def trees(self, release: int | None = None) -> tuple[int, ...]:
        """Return the ids of installed trees: all, or this release if it is one."""
        trees = (each.id for each in self.releases.values() if each.kind == INSTALLED)
        return tuple(each for each in trees if release in (None, each))

    def release_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of releases in the file's order."""
        found = sorted((self.releases[each] for each in ids), key=lambda each: each.position)
        return tuple(each.name for each in found)

    def stack_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of stacks, sorted, without `root`."""
        return tuple(sorted(self.stacks[each].name for each in ids if each in self.stacks))

    def stack_sets(self, conn: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
        """Return the names in each set of stacks, sorted, without `root`."""
        if not self._stack_sets:
            found = {key: tuple(json.loads(names)) for key, names in select(conn, STACK_SETS)}
            self._stack_sets.update(found)
        return self._stack_sets

    def late_versions(self, conn: sqlite3.Connection) -> dict[str, str]:
        """Return the ids of `branches` and `prereleases`, which Spack takes last, as JSON."""
        if not self._late_versions:
            keys = [(key, preference_key(name)) for key, name in select(conn, LETTERED_VERSIONS)]
            branches = [key for key, (is_branch, _) in keys if is_branch]
            prereleases = [key for key, (_, is_prerelease) in keys if is_prerelease]
            self._late_versions["branches"] = json.dumps(branches)
            self._late_versions["prereleases"] = json.dumps(prereleases)
        return self._late_versions

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


def read_lookups(conn: sqlite3.Connection) -> Lookups:
    """Return the small tables, read anew: a few milliseconds, worth keeping for many questions."""
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
    return f"SELECT id, name FROM {table}"


class OpenFile:
    """A built file that stays open, with its small tables.

    Threads may share it, one question at a time: with two in one connection at once, SQLite's lock
    of the connection and Python's own wait for each other, because Python's functions are called
    by SQLite while it holds the first (`open_database` counts a statement's steps).

    Raises:
        DatabaseError: see `open_database`; or the file is damaged.
    """

    def __init__(self, file: AnyPath) -> None:
        self.path = checked_file("file", file)
        self.lock = RLock()
        self.conn = open_database(self.path)
        with told_as_damaged(self.path):
            self.lookups = read_lookups(self.conn)

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        """Open the file again in another process."""
        return type(self), (self.path,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, after the question that is being answered."""
        with self.lock:
            self.conn.close()


Database = AnyPath | sqlite3.Connection | OpenFile


@contextmanager
def opened(db: Database) -> Iterator[tuple[sqlite3.Connection, Lookups]]:
    """Yield a connection to a built file and its small tables; only a path is closed again.

    Raises:
        ArgumentError: it is no path, connection or open file.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, OpenFile):
        with db.lock, told_as_damaged(db.path):
            yield db.conn, db.lookups
        return
    with connected(checked_database(db)) as conn:
        yield conn, read_lookups(conn)
