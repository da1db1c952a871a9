"""Opens a published file read-only, after checking it, and reads its small tables.

A built file never changes, and the small tables hold a few thousand short rows. Versions and
variants, of which there are more, are read when they are asked for, and kept. So is what else is
asked for again and again: whole columns of ids.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar, cast

from spack_cache_db.arguments import AnyPath, checked_database, checked_file
from spack_cache_db.database_file import damage_as_error, open_database
from spack_cache_db.records import INSTALLED
from spack_cache_db.schema import CONFIGURATION, LABELS

IDS_AT_ONCE = 20_000
"""Number of ids in a JSON text below 200 kB, the longest value that the site allows."""
RELEASES = """
SELECT id, name, kind, date, position, previous, package_count, spec_count FROM releases
ORDER BY position
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
DESCRIPTIONS = """
SELECT "table", "column", description FROM column_descriptions ORDER BY id LIMIT 10000
"""
FACETS = """
SELECT facet, value, spec_count FROM facet_counts
WHERE release = :release AND facet <> 'version' ORDER BY facet, spec_count DESC, value
"""
RELEASES_OF_STACK = """
SELECT release, spec_count FROM facet_counts
WHERE facet = 'stack' AND value = :name AND release IS NOT NULL
"""
# `ANALYZE` has a row for each table that is not empty.
FILLED = "SELECT DISTINCT tbl FROM sqlite_stat1"
Read = TypeVar("Read")
LAZY = ("version", "variants")
"""The columns of a configuration whose words are read when they are asked for."""


@contextmanager
def connected(db: Path | sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a built file; one that was given stays open.

    Raises:
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, sqlite3.Connection):
        yield db
        return
    conn = open_database(db)
    try:
        with damage_as_error(db):
            yield conn
    finally:
        conn.close()


def select(conn: sqlite3.Connection, sql: str, **parameters: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a statement as tuples, whatever the connection makes of rows."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return iter(cursor.execute(sql, parameters))


def select_in(
    conn: sqlite3.Connection, sql: str, ids: Iterable[int], **parameters: Any
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a statement that reads ids from `json_each(:ids)`.

    It is asked several times where there are many ids, so what it sorts or counts must not go over
    more than one of them.
    """
    return chain.from_iterable(
        select(conn, sql, ids=piece, **parameters) for piece in json_pieces(ids)
    )


def json_pieces(ids: Iterable[int | str | list[int]], most: int | None = None) -> Iterator[str]:
    """Yield ids, hashes or runs of ids as JSON arrays of at most `most` (`IDS_AT_ONCE`) members."""
    rest = iter(ids)
    while some := [*islice(rest, most or IDS_AT_ONCE)]:
        yield json.dumps(some, separators=(",", ":"))


def descriptions(conn: sqlite3.Connection) -> dict[str, dict[str | None, str]]:
    """Return what a database says of its tables (at None) and of their columns, by table."""
    found: dict[str, dict[str | None, str]] = {}
    for table, column, text in select(conn, DESCRIPTIONS):
        found.setdefault(table, {})[column] = text
    return found


def filled_tables(conn: sqlite3.Connection) -> set[str]:
    """Return the names of the tables that have rows."""
    return {name for (name,) in select(conn, FILLED)}


def facets_of_release(conn: sqlite3.Connection, release: int) -> Iterator[tuple[str, str, int]]:
    """Yield facets of a release, except versions: facet, value and number of binaries."""
    return select(conn, FACETS, release=release)


def releases_of_stack(conn: sqlite3.Connection, name: str) -> dict[int, int]:
    """Return how many binaries a stack has in each release, by the ids of releases."""
    return dict(select(conn, RELEASES_OF_STACK, name=name))


@dataclass(frozen=True, slots=True)
class Release:
    """One release and its totals; `previous` is the id of the one that it is compared with."""

    id: int
    name: str
    kind: str
    date: str | None
    position: int
    previous: int | None
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
    """The small tables of one file, and a connection to it, from which the others are read.

    Attributes:
        conn: the connection.
        releases: by id, in the file's order: branches, then releases and snapshots from new to old.
        stacks: by id, sorted by name, without `root`.
        families: the family of each target, by name.
        words: for each column of a configuration, what its ids mean; see `learn`.
        positions: the place of a version in Spack's order within its package, by id; see `learn`.
    """

    conn: sqlite3.Connection
    releases: dict[int, Release]
    stacks: dict[int, Stack]
    families: dict[str, str]
    words: dict[str, dict[int, Any]]
    positions: dict[int, int] = field(default_factory=dict)
    _once: dict[object, Any] = field(default_factory=dict)

    @cached_property
    def packages(self) -> dict[str, int]:
        """The ids of all packages, by their names."""
        return {name: key for key, name in self.words["package"].items()}

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

    def before(self, release: Release) -> Release | None:
        """Return the release before one: what it is compared with, if there is one."""
        return None if release.previous is None else self.releases.get(release.previous)

    def stack(self, name: str | None) -> Stack | None:
        """Return the stack called `name`, if there is one; `root` is none."""
        return next((each for each in self.stacks.values() if each.name == name), None)

    def trees(self, release: int | None = None) -> tuple[int, ...]:
        """Return the ids of installed trees: all, or this release if it is one."""
        every = (each.id for each in self.releases.values() if each.kind == INSTALLED)
        return tuple(each for each in every if release in (None, each))

    def release_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of releases in the file's order."""
        found = sorted((self.releases[each] for each in ids), key=lambda each: each.position)
        return tuple(each.name for each in found)

    def stack_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of stacks, sorted, without `root`."""
        return tuple(sorted(self.stacks[each].name for each in ids if each in self.stacks))

    def once(self, key: object, read: Callable[[], Read]) -> Read:
        """Return what `read` returns, which is read when it is first asked for, and kept."""
        if key not in self._once:
            self._once[key] = read()
        return cast("Read", self._once[key])

    def column(self, table: str, column: str) -> array[int]:
        """Return a column of ids by the id of their rows, 0 for a missing row.

        To look up a hundred thousand of them here takes a tenth of the time that it takes SQLite,
        and four bytes for each row.
        """

        def read() -> array[int]:
            found: array[int] = array("I")
            sql = f"SELECT id, {column} FROM {table} ORDER BY id DESC"
            for key, value in select(self.conn, sql):
                if not found:
                    found.frombytes(bytes(found.itemsize * (key + 1)))
                found[key] = value
            return found

        return self.once((table, column), read)

    def stack_sets(self) -> dict[int, tuple[str, ...]]:
        """Return the names in each set of stacks, sorted, without `root`."""
        return self.once(
            STACK_SETS,
            lambda: {key: tuple(json.loads(shown)) for key, shown in select(self.conn, STACK_SETS)},
        )

    def learn(self, versions: set[int], variant_sets: set[int]) -> None:
        """Make sure that `words` and `positions` have these versions and sets of variants."""
        for key, name, position in select_in(self.conn, VERSIONS, versions - self.positions.keys()):
            self.words["version"][key] = name
            self.positions[key] = position
        known = self.words["variants"]
        texts: dict[int, list[str]] = {key: [] for key in variant_sets - known.keys()}
        for key, text in select_in(self.conn, VARIANTS, texts):
            texts[key].append(text)
        known.update((key, tuple(found)) for key, found in texts.items())


def read_lookups(conn: sqlite3.Connection) -> Lookups:
    """Return the small tables, read anew: a few milliseconds, worth keeping for many questions."""
    return Lookups(
        conn,
        releases={row[0]: Release(*row) for row in select(conn, RELEASES)},
        stacks={row[0]: Stack(*row) for row in select(conn, STACKS)},
        families=dict(select(conn, FAMILIES)),
        words={
            column: {}
            if column in LAZY
            else dict(select(conn, f"SELECT id, {LABELS.get(column, 'name')} FROM {table}"))
            for column, table in CONFIGURATION.items()
        },
    )


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
        with damage_as_error(self.path):
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
def opened(db: Database) -> Iterator[Lookups]:
    """Yield the small tables of a built file with its connection; only a path is closed again.

    Raises:
        ArgumentError: it is not a path, a connection or an open file.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, OpenFile):
        with db.lock, damage_as_error(db.path):
            yield db.lookups
        return
    with connected(checked_database(db)) as conn:
        yield read_lookups(conn)
