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
from spack_cache_db.arguments import DEFAULT_MAX_PAGE_SIZE, AnyPath, checked_file
from spack_cache_db.build import Input, Progress, Snapshots
from spack_cache_db.database_file import damage_as_error, open_database
from spack_cache_db.errors import ArgumentError, Fault, printable

MOST_ROWS = 10_000
"""So many different rows of a table are reported one by one; of more, only the number."""

MOST_CHARACTERS = 60
"""Characters of a value that a report repeats."""

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
"""What names a row of the tables that have no other key than an id."""

Row = Mapping[str, Any]


class Difference(NamedTuple):
    """One cell or one row that is not what its sources say.

    Attributes:
        table: the table.
        row: the row, by names and hashes.
        column: the column; None if the whole row is missing, or should not be there.
        stored: what the database has.
        expected: what its sources give.
    """

    table: str
    row: str
    column: str | None = None
    stored: Any = None
    expected: Any = None

    def __str__(self) -> str:
        """Return `table: row, column: is this, expected that`, on one line."""
        if self.column is None:
            return printable(
                f"{self.table}: {self.row}: is {self.stored}, expected {self.expected}"
            )
        values = (_shown(value) for value in (self.stored, self.expected))
        return printable(
            "{}: {}, {}: is {}, expected {}".format(self.table, self.row, self.column, *values)
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        pages: how many pages the sources have.
        indexes: how many indexes.
        listings: how many listings.
        records: how many records the indexes have.
        packages: how many packages are in package data.
        faults: what is wrong in the sources.
        differences: where the database is not what its sources give.
    """

    pages: int = 0
    indexes: int = 0
    listings: int = 0
    records: int = 0
    packages: int = 0
    faults: tuple[Fault, ...] = ()
    differences: tuple[Difference, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return this as plain values, faults and differences as texts."""
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
    progress: Progress | None = None,
) -> Verification:
    """Build the sources of a database again, and return where the database differs.

    Options that the database records (`first`, `recipes`, `without_paths`) are taken from it.

    Args:
        file: a database made by `build`.
        paths: everything that it was built from; one path or many, as text or `Path`.
        jobs: how many processes read.
        max_page_size: refuse larger pages; bytes.
        release: the release of indexes and mirrors, as it was given to `build`.
        stack: the stack of indexes and mirrors, as it was given to `build`.
        snapshot: the day of its snapshots, as it was given to `build`.
        keep_snapshots: how many snapshots are not thinned, as it was given to `build`.
        progress: called with (units read, units in all), in this process.

    Raises:
        ArgumentError: a path has a wrong type, or a name is not one.
        DatabaseError: the file was not made by this program, or is damaged.
        InputError: a path does not exist, or nothing in the sources can be read.
    """
    given = Input.checked(paths, jobs, max_page_size, release, stack, progress)
    given = given._replace(snapshots=Snapshots.checked(snapshot, keep_snapshots))
    database = checked_file("file", file)
    given = _as_built(given, database)
    from spack_cache_db.build import pipeline  # Its imports take longer than all others.

    with TemporaryDirectory() as folder:
        again = Path(folder, database.name)
        try:
            report = pipeline.build(given, again, keep_going=True, force=False)
        except ArgumentError:
            # The sources have no release of the name that `origin` calls first, so it differs.
            without_first = given._replace(first=None)
            report = pipeline.build(without_first, again, keep_going=True, force=False)
        with damage_as_error(database):
            found = tuple(differences(again, database))
    return Verification(
        report.pages,
        report.indexes,
        report.listings,
        report.records,
        report.package_entries,
        report.faults,
        found,
    )


def _as_built(given: Input, database: Path) -> Input:
    """Return the input with the options that a database records."""
    with closing(open_database(database)) as conn, damage_as_error(database):
        origin = dict(conn.execute("SELECT name, value FROM origin").fetchall())
        recipes = dict(conn.execute("SELECT namespace, url FROM recipes").fetchall())
    return given._replace(
        first=origin.get("first"), recipes=recipes, without_paths=schema.PATHS in origin
    )


def differences(expected: Path, stored: Path) -> Iterator[Difference]:
    """Yield where a database is not the same as another one, table by table.

    Rows with the same key are compared column by column; so are rows that are the same but for one
    column. Any other row is missing, or should not be there.
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
        """Yield each cell and each row that is not the same in both."""
        (expected, more), (stored, others) = (
            self._only_in(*sides) for sides in (("main", "stored"), ("stored", "main"))
        )
        if more or others:
            numbers = f"{len(stored) + others:,} rows", f"{len(expected) + more:,} others"
            yield Difference(self._table, f"more than {MOST_ROWS:,} rows", None, *numbers)
            return
        for columns in (self._keys, *([*{*self._names} - {name}] for name in self._names)):
            known: dict[tuple[Any, ...], list[Row]] = {}
            for row in expected:
                known.setdefault(tuple(row[name] for name in columns), []).append(row)
            rest = []
            for row in stored:
                if not (same := known.get(tuple(row[name] for name in columns))):
                    rest.append(row)
                    continue
                other = same.pop(0)
                for name in self._names:
                    if row[name] != other[name]:
                        label = self._label(other)
                        yield Difference(self._table, label, name, row[name], other[name])
            stored, expected = rest, [row for rows in known.values() for row in rows]
        for row in expected:
            yield Difference(self._table, self._label(row), None, "missing", "a row")
        for row in stored:
            yield Difference(self._table, self._label(row), None, "a row", "none")

    def _only_in(self, one: str, other: str) -> tuple[list[Row], int]:
        """Return the first rows that only one of the databases has, and how many more it has."""
        columns = ", ".join(f"[{name}]" for name in self._names)
        one, other = (f"SELECT {columns} FROM {side}.[{self._table}]" for side in (one, other))  # noqa: S608 - our own names
        rows = self._conn.execute(f"{one} EXCEPT {other}")
        first = rows.fetchmany(MOST_ROWS)
        return [dict(zip(self._names, row, strict=True)) for row in first], sum(1 for _ in rows)

    def _label(self, row: Row) -> str:
        """Return a row by its key, and by the names that belong to an id."""
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
    """Return a value in words: of a foreign key, the names of the row that it points at."""
    value = row[column]
    columns = schema.table(table).columns if table in schema.NAMES else ()
    to = next((each.references for each in columns if each.name == column), None)
    if to is None or value is None:
        return value if isinstance(value, str) else _shown(value)
    for database in ("main", "stored"):
        cursor = conn.execute(f"SELECT * FROM {database}.[{to}] WHERE id = ?", [value])  # noqa: S608 - our own names
        names = [name for name, *_ in cursor.description]
        if found := cursor.fetchone():
            return _names_of(conn, to, dict(zip(names, found, strict=True))) or _shown(value)
    return _shown(value)


def _shown(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(value):,} in all)"
