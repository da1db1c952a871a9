"""Opens a published file read-only, after checking it, and reads its small tables.

A built file never changes, and the small tables hold a few thousand short rows. Versions and
variants, of which there are more, are read when they are asked for, and kept. So is what else is
asked for again and again: whole columns of ids, and of larger tables the rows that were read last.
"""

from __future__ import annotations

import json
import sqlite3
import stat
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from json import JSONDecodeError
from pathlib import Path
from threading import RLock
from typing import Any, Generic, Self, TypeVar, cast

from spack_cache_db import schema
from spack_cache_db.arguments import AnyPath, checked_database, checked_file
from spack_cache_db.bounded_files import open_regular
from spack_cache_db.errors import DatabaseError, reason
from spack_cache_db.records import INSTALLED
from spack_cache_db.schema import CONFIGURATION

_HEADER = struct.Struct(">16s 12x I 28x I 4x I")
_SHADOWS = tuple(
    f"{table}_{kind}" for table in schema.FULL_TEXT for kind in ("config", "data", "docsize", "idx")
)
"""The tables in which FTS5 keeps an index (SQLite FTS5 docs, 4.4 and Appendix A)."""

MOST_STEPS = 2_000_000_000
"""So many steps of SQLite's virtual machine may a statement take: half a minute. The longest one
over 1.3 million listings takes a tenth of that."""

STEPS_AT_ONCE = 1_000_000

MOST_LENGTH = 16_000_000
"""Bytes of a value or a row: a database may be made to contain larger ones, and each takes memory
several times over."""

IDS_AT_ONCE = 20_000
"""So many ids make a text of less than 200 kB, the longest value that the site allows."""
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
Read = TypeVar("Read")
LAZY = ("version", "variants")
"""The columns of a configuration whose words are read when they are asked for."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open a built file read-only.

    Raises:
        DatabaseError: it is no file, no database of this builder, of another schema version, or a
            part of one.
    """
    _require_file(path)
    check_header(path)
    # Threads may pass it on: `OpenFile` lets one at a time use it.
    uri = f"{path.resolve().as_uri()}?immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)
    try:
        _check_statements(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        raise damaged(path, error) from None
    _limit_steps(connection)
    return connection


def damaged(path: Path, error: Exception) -> DatabaseError:
    """Return the error for a file that cannot be read as a build wrote it."""
    why = "a statement does not end" if is_interrupted(error) else str(error)
    return DatabaseError(f"{path}: is damaged: {why}; build it anew")


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
        with told_as_damaged(db):
            yield conn
    finally:
        conn.close()


@contextmanager
def told_as_damaged(path: Path) -> Iterator[None]:
    """Raise `DatabaseError` where what is read of a file is not what a build wrote."""
    try:
        yield
    except sqlite3.ProgrammingError:
        # The file is not looked at: it was closed.
        raise
    except (sqlite3.DatabaseError, JSONDecodeError) as error:
        raise damaged(path, error) from None


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


def is_interrupted(error: Exception) -> bool:
    """Return whether a statement was ended before its time (SQLite docs, "SQLITE_INTERRUPT")."""
    return isinstance(error, sqlite3.OperationalError) and error.args == ("interrupted",)


def _limit_steps(connection: sqlite3.Connection) -> None:
    """End each statement of a connection after `MOST_STEPS`: a file may be made to need more."""
    pieces = 0

    def begin(statement: str) -> None:
        nonlocal pieces
        pieces = 0

    def is_too_much() -> bool:
        nonlocal pieces
        pieces += 1
        return pieces > MOST_STEPS // STEPS_AT_ONCE

    connection.set_trace_callback(begin)
    connection.set_progress_handler(is_too_much, STEPS_AT_ONCE)


def _require_file(path: Path) -> None:
    # `Path.is_file` raises for a name that is too long, and where a folder may not be searched.
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        mode = 0
    except OSError as error:
        raise DatabaseError(f"{path}: cannot be read: {reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise DatabaseError(f"{path}: is a folder, expected a file made by build")
    if mode and not stat.S_ISREG(mode):
        raise DatabaseError(f"{path}: is a pipe or a device, expected a file made by build")
    if not mode:
        raise DatabaseError(
            f"{path}: no such file; build one with: spack-cache-db build PATH -o {path}"
        )


def check_header(path: Path) -> None:
    """Check what a file says of itself in its first bytes (SQLite's file format, 1.3).

    Raises:
        DatabaseError: it is no database of this builder, of another schema version, or cut off.
    """
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER.size)
    except OSError as error:
        raise DatabaseError(f"{path}: cannot be read: {reason(error)}") from None
    magic, pages, version, application = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application != schema.APPLICATION_ID:
        raise DatabaseError(f"{path}: is no spack-cache-db database; expected a file made by build")
    if version != schema.SCHEMA_VERSION:
        message = f"has schema version {version}, expected {schema.SCHEMA_VERSION}; build it anew"
        raise DatabaseError(f"{path}: {message}")
    # SQLite reads a file whose last page was cut off, until it needs that page.
    size, expected = path.stat().st_size, pages * schema.PAGE_SIZE
    if size != expected:
        message = f"it has {size:,} bytes, not {expected:,}"
        raise DatabaseError(f"{path}: is damaged: {message}; build it anew")


def _check_statements(connection: sqlite3.Connection) -> None:
    """Compare what a file has with what the build creates, word for word.

    Otherwise a table of a hostile file could be a view that never ends. Tables of other names do
    no harm: nothing here reads them.

    Raises:
        sqlite3.DatabaseError: something is missing or different.
    """
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    found = dict(rows.fetchall())
    for name in schema.NAMES:
        if name not in found:
            raise sqlite3.DatabaseError(f"it has no {name}")
    if schema.statements_sha256(found.items()) != schema.STATEMENTS_SHA256:
        raise sqlite3.DatabaseError("its tables, indexes and views are not what a build creates")
    for name in _SHADOWS:
        if not found.get(name, "").startswith("CREATE TABLE "):
            raise sqlite3.DatabaseError(f"its {name} is not what FTS5 creates")


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


class KeptRows(Generic[Read]):
    """What was read of some rows, by their ids: that of the last `most` ones is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, Read] = {}

    def of(
        self, ids: Iterable[int], read: Callable[[list[int]], Mapping[int, Read]]
    ) -> dict[int, Read]:
        """Return what there is of some rows.

        Args:
            ids: their ids.
            read: reads of the file those that are not known.
        """
        ids, known = [*ids], self._known
        new = [key for key in ids if key not in known]
        if new:
            known.update(read(new))
        found = {key: known[key] for key in ids}
        for key in [*islice(known, max(len(known) - self._most, 0))]:
            del known[key]
        return found


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
        every = self.releases.values()
        trees = self.once(INSTALLED, lambda: [each.id for each in every if each.kind == INSTALLED])
        return tuple(each for each in trees if release in (None, each))

    def release_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of releases in the file's order."""
        found = sorted((self.releases[each] for each in ids), key=lambda each: each.position)
        return tuple(each.name for each in found)

    def stack_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of stacks, sorted, without `root`."""
        return tuple(sorted(self.stacks[each].name for each in ids if each in self.stacks))

    def once(self, key: object, read: Callable[[], Read]) -> Read:
        """Return what `read` returns, which is read when it is first asked for, and kept.

        Args:
            key: what it is called.
            read: reads it from the file.
        """
        if key not in self._once:
            self._once[key] = read()
        return cast("Read", self._once[key])

    def column(self, table: str, column: str) -> array[int]:
        """Return a column of ids by the id of their rows, 0 where there is no row.

        To look up a hundred thousand of them here takes a tenth of the time that it takes SQLite,
        and four bytes for each row.

        Args:
            table: the table.
            column: the column, or an expression of columns that is an id or 0.
        """
        return self.once((table, column), lambda: _column(self.conn, table, column))

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
            column: {} if column in LAZY else dict(select(conn, f"SELECT id, name FROM {table}"))
            for column, table in CONFIGURATION.items()
        },
    )


def _column(conn: sqlite3.Connection, table: str, column: str) -> array[int]:
    rows = select(conn, f"SELECT id, {column} FROM {table} ORDER BY id DESC")
    found: array[int] = array("I")
    for key, value in rows:
        if not found:
            found.frombytes(bytes(found.itemsize * (key + 1)))
        found[key] = value
    return found


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
def opened(db: Database) -> Iterator[Lookups]:
    """Yield the small tables of a built file with its connection; only a path is closed again.

    Raises:
        ArgumentError: it is no path, connection or open file.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    if isinstance(db, OpenFile):
        with db.lock, told_as_damaged(db.path):
            yield db.lookups
        return
    with connected(checked_database(db)) as conn:
        yield read_lookups(conn)
