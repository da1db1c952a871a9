"""Opens a database read-only, after checking it, and caches its small tables.

A database never changes after it is built. The small tables have a few thousand short
rows and are read at once. Versions, variants and columns of ids are larger, so they are
read at first use.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar, cast

from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.database_damage import (
    StoredValueError,
    damage_as_error,
    stored_json,
)
from spack_cache_db.database_file import open_database
from spack_cache_db.model import INSTALLED
from spack_cache_db.query.open.sql import (
    IDS_AT_ONCE,
    LAZY,
    connected,
    select,
    select_in,
)
from spack_cache_db.query.rows import grouped
from spack_cache_db.schema.tables import CONFIGURATION, LABELS
from spack_cache_db.spack.targets import Build

RELEASES = """
SELECT id, name, kind, date, position, previous_release_id, package_count, spec_count
FROM releases
ORDER BY position
"""
STACKS = "SELECT id, name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name"
VERSIONS = """
SELECT id, name, position FROM versions WHERE id IN (SELECT value FROM json_each(:ids))
"""
VARIANTS = """
SELECT member.variant_set_id, variants.text
FROM variant_set_members AS member JOIN variants ON variants.id = member.variant_id
WHERE member.variant_set_id IN (SELECT value FROM json_each(:ids)) ORDER BY variants.text
"""
DESCRIPTIONS = """
SELECT "table", "column", description FROM column_descriptions ORDER BY id LIMIT 10000
"""
STACK_SETS = "SELECT id, shown FROM stack_sets"
RELEASES_OF_STACK = """
SELECT release_id, spec_count FROM facet_values
WHERE facet = 'stack' AND value = :name AND release_id IS NOT NULL
"""
PROVIDERS = """
SELECT virtual, known_packages.name FROM providers
JOIN known_packages ON known_packages.id = providers.known_package_id
ORDER BY virtual, known_packages.name
"""
MOST_RECENT = 16
"""Number of results of one kind that are cached (`Memory.recent`)."""
BUILDS = """
SELECT DISTINCT platforms.name, targets.name FROM target_runs_on
JOIN platforms ON platforms.id = target_runs_on.platform_id
JOIN targets ON targets.id = target_runs_on.target_id
ORDER BY platforms.name, targets.name
"""
Result = TypeVar("Result")


def descriptions(conn: sqlite3.Connection) -> dict[str, dict[str | None, str]]:
    """Return the descriptions of each table's columns, and of the table itself (key
    None).
    """
    by_table: dict[str, dict[str | None, str]] = {}
    for table, column, text in select(conn, DESCRIPTIONS):
        by_table.setdefault(table, {})[column] = text
    return by_table


def filled_tables(conn: sqlite3.Connection) -> set[str]:
    """Return the names of the tables that have rows: `ANALYZE` records no others."""
    return {name for (name,) in select(conn, "SELECT DISTINCT tbl FROM sqlite_stat1")}


def has_records(conn: sqlite3.Connection) -> bool:
    """Return whether a database has records of indexes."""
    return any(select(conn, "SELECT 1 FROM record_ranges LIMIT 1"))


def releases_of_stack(conn: sqlite3.Connection, name: str) -> dict[int, int]:
    """Return the number of binaries that a stack has in each release, by release id."""
    return dict(select(conn, RELEASES_OF_STACK, name=name))


@dataclass(frozen=True, slots=True)
class Release:
    """A release and its totals; `previous` is the id of the release it is compared
    with.
    """

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
    """A stack and its totals."""

    id: int
    name: str
    release_count: int
    spec_count: int


@dataclass(frozen=True, eq=False)
class Memory:
    """Caches results by key, for as long as a database is open.

    A key is a statement, or the function or class that makes the result.
    """

    _results: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: object, read: Callable[[], Result]) -> Result:
        """Return the result of `read`, which is called once for each key."""
        if key not in self._results:
            self._results[key] = read()
        return cast("Result", self._results[key])

    def recent(self, kind: object, key: object, read: Callable[[], Result]) -> Result:
        """Return the result of `read` for a key. The last results of a kind are cached,
        because most visitors ask for the same.
        """
        cached: dict[object, Result] = self.once(kind, dict)
        result = cached.pop(key) if key in cached else read()
        # What was asked for last stands last.
        cached[key] = result
        if len(cached) > MOST_RECENT:
            del cached[next(iter(cached))]
        return result


@dataclass(frozen=True, eq=False)
class Lookups(Memory):
    """The small tables of a database, and a connection from which other tables are
    read.

    Attributes:
        releases: by id, in the database's order: branches, then releases and snapshots
            from new to old.
        stacks: by id, sorted by name, without `root`.
        families: the family of each target, such as `x86_64` of `zen3`.
        words: the words of each column of a configuration, by id; see `learn`.
        positions: the position of each version in Spack's order within its package, by
            the id of the version; see `learn`.
    """

    conn: sqlite3.Connection
    releases: dict[int, Release]
    stacks: dict[int, Stack]
    families: dict[str, str]
    words: dict[str, dict[int, Any]]
    positions: dict[int, int] = field(default_factory=dict)

    @cached_property
    def packages(self) -> dict[str, int]:
        """The ids of all packages, by their names."""
        return {name: key for key, name in self.words["package"].items()}

    @cached_property
    def builds(self) -> tuple[Build, ...]:
        """The platforms and targets that specs were built for and that a machine
        runs.
        """
        return tuple(Build(*row) for row in select(self.conn, BUILDS))

    @cached_property
    def providers(self) -> dict[str, tuple[str, ...]]:
        """The providers of each virtual package, from package data, sorted."""
        return grouped(select(self.conn, PROVIDERS))

    @property
    def compilers(self) -> set[str]:
        """The names of all compilers, without their versions."""
        return {name.partition("@")[0] for name in self.words["compiler"].values()}

    @property
    def is_installed(self) -> bool:
        """Whether all releases are installed trees, and none is from a build cache."""
        return 0 < len(self.releases) == len(self.trees())

    def release(self, name: str | None) -> Release | None:
        """Return the release called `name`, if there is one."""
        for release in self.releases.values():
            if release.name == name:
                return release
        return None

    def before(self, release: Release) -> Release | None:
        """Return the release that a release is compared with, if there is one."""
        return None if release.previous is None else self.releases.get(release.previous)

    def stack(self, name: str | None) -> Stack | None:
        """Return the stack called `name`, if there is one; `root` is not a stack."""
        for stack in self.stacks.values():
            if stack.name == name:
                return stack
        return None

    def trees(self, release: int | None = None) -> tuple[int, ...]:
        """Return the ids of installed trees: all, or this release if it is one."""
        trees = [tree.id for tree in self.releases.values() if tree.kind == INSTALLED]
        if release is not None:
            trees = [tree for tree in trees if tree == release]
        return tuple(trees)

    def release_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of releases in the database's order."""
        releases = [self.releases[key] for key in ids]
        releases.sort(key=lambda release: release.position)
        return tuple(release.name for release in releases)

    def stack_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of stacks, sorted, without `root`."""
        names = [self.stacks[key].name for key in ids if key in self.stacks]
        return tuple(sorted(names))

    def column(self, table: str, column: str) -> array[int]:
        """Return a column of ids by the id of their rows, 0 for a missing row.

        A lookup is ten times faster than in SQLite, for four bytes of memory per row.
        """
        # Reading arrays of JSON takes half of the time that rows take.
        sql = f"""
SELECT json_group_array(value), max(id) FROM (
  SELECT id, {column} AS value FROM {table}
  WHERE id >= :first ORDER BY id LIMIT {IDS_AT_ONCE})
"""

        def read() -> array[int]:
            values = array("I", [0])
            while True:
                ((text, last),) = select(self.conn, sql, first=len(values))
                if last is None:
                    return values
                values.extend(stored_json(text))
                # A build numbers rows from 1, without gaps.
                if last != len(values) - 1:
                    raise StoredValueError(f"the ids of {table} have gaps")

        return self.once((table, column), read)

    def stack_sets(self) -> dict[int, tuple[str, ...]]:
        """Return the names in each set of stacks, sorted, without `root`."""

        def read() -> dict[int, tuple[str, ...]]:
            rows = select(self.conn, STACK_SETS)
            return {key: tuple(stored_json(names)) for key, names in rows}

        return self.once(STACK_SETS, read)

    def learn(self, versions: set[int], variant_sets: set[int]) -> None:
        """Make sure that `words` and `positions` have these versions and sets of
        variants.
        """
        # Read the versions that are not known yet.
        unread_versions = versions - self.positions.keys()
        for key, name, position in select_in(self.conn, VERSIONS, unread_versions):
            self.words["version"][key] = name
            self.positions[key] = position

        # Read the variants of each set that is not known yet. A set may be empty.
        sets = self.words["variants"]
        texts_of_set: dict[int, list[str]] = {
            key: [] for key in variant_sets - sets.keys()
        }
        for key, text in select_in(self.conn, VARIANTS, texts_of_set):
            texts_of_set[key].append(text)
        for key, texts in texts_of_set.items():
            sets[key] = tuple(texts)


def read_lookups(conn: sqlite3.Connection) -> Lookups:
    """Read the small tables, which takes a few milliseconds."""
    releases = [Release(*row) for row in select(conn, RELEASES)]
    stacks = [Stack(*row) for row in select(conn, STACKS)]
    families = dict(select(conn, "SELECT name, family FROM targets"))
    words: dict[str, dict[int, Any]] = {}
    for column, table in CONFIGURATION.items():
        words[column] = {}
        if column not in LAZY:
            label = LABELS.get(column, "name")
            words[column].update(select(conn, f"SELECT id, {label} FROM {table}"))
    return Lookups(
        conn=conn,
        releases={release.id: release for release in releases},
        stacks={stack.id: stack for stack in stacks},
        families=families,
        words=words,
    )


class OpenFile:
    """A database that stays open, with its small tables.

    Threads may share it, one query at a time. Two queries at once could deadlock:
    SQLite calls Python functions while it holds the connection's lock (`open_database`
    counts steps).

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
        """Open the database again in another process."""
        return type(self), (self.path,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, after the query that is running."""
        with self.lock:
            self.conn.close()


Database = AnyPath | sqlite3.Connection | OpenFile


@contextmanager
def opened(db: Database) -> Iterator[Lookups]:
    """Yield the small tables of a database; if `db` is a path, the connection is closed
    again.

    Raises:
        ArgumentError: `db` is not a path, a connection or an open database.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, OpenFile):
        with db.lock, damage_as_error(db.path):
            yield db.lookups
        return
    file = db if isinstance(db, sqlite3.Connection) else checked_file("db", db)
    with connected(file) as conn:
        yield read_lookups(conn)


def name_of(db: Database) -> str:
    """Return the path of a database for messages; that of a database in memory is in
    words.
    """
    if isinstance(db, OpenFile):
        return str(db.path)
    if not isinstance(db, sqlite3.Connection):
        return str(checked_file("db", db))
    _, _, path = db.execute("PRAGMA database_list").fetchone()
    return path or "a database in memory"
