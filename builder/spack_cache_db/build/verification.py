"""Verifies a database: builds its sources again, and compares every row of every table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from spack_cache_db import schema
from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE, AnyPath, checked_file
from spack_cache_db.build import Input, Progress
from spack_cache_db.database_file import damage_as_error, open_database
from spack_cache_db.errors import ArgumentError, Fault, printable

MOST_ROWS = 10_000
"""Maximum of different rows of a table that are reported one by one; more are counted."""

MOST_CHARACTERS = 60
"""Longest value in a report, in characters."""

TABLES = """
SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'
ORDER BY name
"""
NAMED_BY = {
    "configurations": tuple(schema.CONFIGURATION),
    "mirrors": ("release", "stack", "path"),
    "problems": ("source", "code", "hash"),
    "variant_sets": ("text",),
}
"""The columns that identify a row for people, in tables with an id as their only key."""

Row = Mapping[str, Any]


class Difference(NamedTuple):
    """A cell or a row that differs from the sources.

    Attributes:
        table: the table.
        row: the row, by names and hashes.
        column: the column; None if the whole row is missing or unexpected.
        stored: the value in the database.
        expected: the value from the sources.
    """

    table: str
    row: str
    column: str | None = None
    stored: Any = None
    expected: Any = None

    def __str__(self) -> str:
        """Return `table: row, column: is this, expected that`, on one line."""
        stored, expected, where = self.stored, self.expected, f"{self.table}: {self.row}"
        if self.column is not None:
            stored, expected = _value_text(stored), _value_text(expected)
            where = f"{where}, {self.column}"
        return printable(f"{where}: is {stored}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes:
        pages: the number of pages in the sources.
        indexes: the number of indexes.
        listings: the number of listings.
        records: the number of records in indexes.
        packages: the number of packages in package data.
        faults: the faults of the sources.
        differences: the differences between the database and its sources.
    """

    pages: int = 0
    indexes: int = 0
    listings: int = 0
    records: int = 0
    packages: int = 0
    faults: tuple[Fault, ...] = ()
    differences: tuple[Difference, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, with faults and differences as texts."""
        texts = {key: [*map(str, getattr(self, key))] for key in ("faults", "differences")}
        return asdict(self) | texts


def verify(
    file: AnyPath,
    paths: AnyPath | Iterable[AnyPath],
    *,
    jobs: int = 1,
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE,
    release: str | None = None,
    stack: str | None = None,
    snapshot: str | date | None = None,
    keep_snapshots: int | None = None,
    installations: Iterable[tuple[str, AnyPath]] = (),
    modules: Iterable[AnyPath | tuple[str, AnyPath]] = (),
    progress: Progress | None = None,
) -> Verification:
    """Build the sources of a database again, and return where the database differs.

    Options that the database records (`first`, `recipes`, `without_paths`) are taken from it.

    Args:
        file: a database made by `build`.
        paths: all its sources; one path or many, as text or `Path`.
        jobs: the number of processes that read.
        max_page_size: the maximum size of a page in bytes.
        release: the release of indexes and mirrors, as in `build`.
        stack: the stack of indexes and mirrors, as in `build`.
        snapshot: the date of its snapshots, as in `build`.
        keep_snapshots: the number of snapshots that are not thinned, as in `build`.
        installations: the installations, as in `build`.
        modules: the lists of modules, as in `build`.
        progress: called with (units read, all units), in this process.

    Raises:
        ArgumentError: a path has a wrong type, or a name is invalid.
        DatabaseError: the file is not a database of this program, or is damaged.
        InputError: a path does not exist, or none of the sources can be read.
    """
    source = Input.checked(
        *(paths, jobs, max_page_size, release, stack, progress),
        *(installations, snapshot, keep_snapshots, modules),
    )
    database = checked_file("file", file)
    source = _as_built(source, database)
    from spack_cache_db.build import pipeline  # Its imports take longer than all others.

    with TemporaryDirectory() as folder:
        again = Path(folder, database.name)
        try:
            report = pipeline.build(source, again, keep_going=True, force=False)
        except ArgumentError:
            # The sources lack the first release of `origin`, which becomes a difference.
            without_first = source._replace(first=None)
            report = pipeline.build(without_first, again, keep_going=True, force=False)
        with damage_as_error(database):
            result = tuple(differences(again, database))
    return Verification(
        report.pages,
        report.indexes,
        report.listings,
        report.records,
        report.package_entries,
        report.faults,
        result,
    )


def _as_built(source: Input, database: Path) -> Input:
    """Return the input with the options that are stored in a database."""
    with closing(open_database(database)) as conn, damage_as_error(database):
        origin = dict(conn.execute("SELECT name, value FROM origin").fetchall())
        recipes = dict(conn.execute("SELECT namespace, url FROM recipes").fetchall())
    return source._replace(
        first=origin.get("first"), recipes=recipes, without_paths=schema.PATHS in origin
    )


def differences(expected: Path, stored: Path) -> Iterator[Difference]:
    """Yield the differences between two databases, table by table.

    Rows with the same key, and rows that differ in one column only, are compared column by column.
    All other rows are missing or unexpected.
    """
    with closing(open_database(expected)) as conn:
        conn.text_factory = lambda text: text.decode(errors="backslashreplace")
        conn.execute("ATTACH ? AS stored", [f"{stored.resolve().as_uri()}?immutable=1"])
        for table in ("sqlite_schema", *(name for (name,) in conn.execute(TABLES).fetchall())):
            yield from _Comparison(conn, table).differences()


class _Comparison:
    """Compares one table of the databases `main` and `stored` of a connection."""

    def __init__(self, conn: sqlite3.Connection, table: str) -> None:
        self._conn = conn
        self._table = table
        columns = conn.execute(f"PRAGMA main.table_info([{table}])").fetchall()
        self._names = [name for _, name, *_ in columns]
        self._keys = [name for _, name, *_, is_key in columns if is_key] or self._names
        if table == "sqlite_schema":
            self._names, self._keys = ["type", "name", "tbl_name", "sql"], ["name"]

    def differences(self) -> Iterator[Difference]:
        """Yield each cell and each row that differs."""
        (expected, more), (stored, more_stored) = (
            self._only_in(*sides) for sides in (("main", "stored"), ("stored", "main"))
        )
        if more or more_stored:
            numbers = f"{len(stored) + more_stored:,} rows", f"{len(expected) + more:,} others"
            yield Difference(self._table, f"more than {MOST_ROWS:,} rows", None, *numbers)
            return
        for columns in (self._keys, *([*{*self._names} - {name}] for name in self._names)):
            rows_by_key: dict[tuple[Any, ...], list[Row]] = {}
            for row in expected:
                rows_by_key.setdefault(tuple(row[name] for name in columns), []).append(row)
            unmatched = []
            for row in stored:
                if not (same := rows_by_key.get(tuple(row[name] for name in columns))):
                    unmatched.append(row)
                    continue
                other = same.pop(0)
                for name in self._names:
                    if row[name] != other[name]:
                        label = self._label(other)
                        yield Difference(self._table, label, name, row[name], other[name])
            stored, expected = unmatched, [row for rows in rows_by_key.values() for row in rows]
        for row in expected:
            yield Difference(self._table, self._label(row), None, "missing", "a row")
        for row in stored:
            yield Difference(self._table, self._label(row), None, "a row", "none")

    def _only_in(self, one: str, other: str) -> tuple[list[Row], int]:
        """Return the first rows that only one of the databases has, and the number of others."""
        columns = ", ".join(f"[{name}]" for name in self._names)
        one, other = (f"SELECT {columns} FROM {side}.[{self._table}]" for side in (one, other))  # noqa: S608 - our own names
        rows = self._conn.execute(f"{one} EXCEPT {other}")
        first = rows.fetchmany(MOST_ROWS)
        return [dict(zip(self._names, row, strict=True)) for row in first], sum(1 for _ in rows)

    def _label(self, row: Row) -> str:
        """Return the key of a row, with names if the key is an id."""
        keys = ", ".join(
            f"{name} {_cell(self._conn, self._table, name, row)}" for name in self._keys
        )
        names = _names_of(self._conn, self._table, row) if self._keys == ["id"] else ""
        return f"{names} ({keys})" if names else keys


def _names_of(conn: sqlite3.Connection, table: str, row: Row) -> str:
    unique = schema.table(table).unique if table in schema.NAMES else ()
    columns = NAMED_BY.get(table, *unique[:1]) if unique or table in NAMED_BY else ()
    return " ".join(_cell(conn, table, name, row) for name in columns)


def _cell(conn: sqlite3.Connection, table: str, column: str, row: Row) -> str:
    """Return a value as text; that of a foreign key is the names of its row."""
    value = row[column]
    columns = schema.table(table).columns if table in schema.NAMES else ()
    to = next((reference.references for reference in columns if reference.name == column), None)
    if to is None or value is None:
        return value if isinstance(value, str) else _value_text(value)
    for database in ("main", "stored"):
        cursor = conn.execute(f"SELECT * FROM {database}.[{to}] WHERE id = ?", [value])  # noqa: S608 - our own names
        names = [name for name, *_ in cursor.description]
        if values := cursor.fetchone():
            return _names_of(conn, to, dict(zip(names, values, strict=True))) or _value_text(value)
    return _value_text(value)


def _value_text(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(value):,} in all)"
