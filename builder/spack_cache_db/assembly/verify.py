"""Verifies a database: builds its sources again, and compares every row of every table.

The same sources give the same bytes with the same versions of this program and of
SQLite, so equal checksums are enough. Otherwise, rows are compared; the statistics of
SQLite do not count.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Unpack

from spack_cache_db.arguments import checked_with
from spack_cache_db.assembly.options import (
    BuildOptions,
    Input,
    ReadKeywords,
    ReadOptions,
    checked_input,
)
from spack_cache_db.assembly.report import Report
from spack_cache_db.bounded_files import AnyPath, checked_file, sha256_of
from spack_cache_db.database_damage import damage_as_error
from spack_cache_db.database_file import open_database
from spack_cache_db.errors import ArgumentError, Fault, counted, first_of, printable
from spack_cache_db.schema import full_text, identity, tables

MOST_ROWS = 10_000
"""Maximum of different rows of a table that are reported one by one; more are
counted.
"""

MOST_SHOWN = 20
"""Maximum of differences of a table that are reported one by one; more are counted."""

MOST_NAMED = 5
"""Number of snapshots that an error lists."""

MOST_CHARACTERS = 60
"""Longest value in a report, in characters."""

TABLES_SQL = """
SELECT name FROM main.sqlite_master
WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %' AND name NOT LIKE 'sqlite_stat%'
ORDER BY name
"""
COPIES_SQL = "SELECT name FROM releases WHERE is_copy ORDER BY position"
RELEASES_SQL = "SELECT name FROM releases"

NAMED_BY = {
    "configurations": tuple(tables.ID_COLUMNS.values()),
    "mirrors": ("release_id", "stack_id", "path"),
    "problems": ("source", "code", "hash"),
    "variant_sets": ("text",),
}
"""The columns that identify a row for people, in tables with an id as their only
key.
"""

Row = Mapping[str, Any]
"""A row of a table: values by the names of the columns."""


class Difference(NamedTuple):
    """A cell or a row that differs from the sources; `row` has names and hashes.

    The column is None if the whole row is missing or unexpected, or if `row` is the
    number of further differences of the table.
    """

    table: str
    row: str
    column: str | None = None
    stored: Any = None
    expected: Any = None

    def __str__(self) -> str:
        """Return `table: row, column: is this, expected that`, on one line."""
        where = f"{self.table}: {self.row}"
        # A number of further differences has no values.
        if self.column is None and self.stored is None:
            return printable(where)
        # The values of a whole row are words: `is missing, expected a row`.
        if self.column is None:
            return printable(f"{where}: is {self.stored}, expected {self.expected}")
        stored = _value_text(self.stored)
        expected = _value_text(self.expected)
        return printable(f"{where}, {self.column}: is {stored}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Verification:
    """The numbers and faults of the sources, and the differences of the database.

    `records` are those of indexes, and `packages` those of package data. `differences`
    has the first ones of each table, and `difference_count` is the number of all.
    """

    pages: int = 0
    indexes: int = 0
    listings: int = 0
    records: int = 0
    packages: int = 0
    faults: tuple[Fault, ...] = ()
    differences: tuple[Difference, ...] = ()
    difference_count: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, with faults and differences as texts."""
        values = asdict(self)
        values["faults"] = [str(fault) for fault in self.faults]
        values["differences"] = [str(difference) for difference in self.differences]
        return values


@checked_with(ReadOptions, ReadKeywords)
def verify(
    file: AnyPath, paths: AnyPath | Iterable[AnyPath], **options: Unpack[ReadKeywords]
) -> Verification:
    """Build the sources of a database again, and return where the database differs.

    Options that the database records (`first`, `recipes`, `without_paths`) are taken
    from it.

    Args:
        file: a database made by `build`.
        paths: all its sources; one path or many, as text or `Path`.
        options: the attributes of `ReadOptions`, as keywords.

    Raises:
        ArgumentError: a path has a wrong type, a name is invalid, or the database has
            snapshots that the sources do not have.
        DatabaseError: the file is not a database of this program, or is damaged.
        InputError: a path does not exist, or none of the sources can be read.
    """
    inputs = checked_input(paths, **options)
    database = checked_file("file", file)
    inputs = inputs._replace(options=_recorded_options(database, inputs.options))
    with TemporaryDirectory() as folder:
        rebuilt = Path(folder, database.name)
        report = _rebuild(inputs, rebuilt)
        result = Shortened()
        # Builds are deterministic, so most databases are compared by their checksums.
        if report.sha256 != sha256_of(database):
            with damage_as_error(database):
                _require_snapshots(rebuilt, database)
                result = shortened(differences(rebuilt, database))
    return Verification(
        pages=report.pages,
        indexes=report.indexes,
        listings=report.listings,
        records=report.records,
        packages=report.package_entries,
        faults=report.faults,
        differences=result.differences,
        difference_count=result.total,
    )


def _recorded_options(database: Path, options: BuildOptions) -> BuildOptions:
    """Return the options of a build that repeats the one of the database."""
    with closing(open_database(database)) as conn, damage_as_error(database):
        origin = dict(conn.execute("SELECT name, value FROM origin").fetchall())
        recipes = dict(conn.execute("SELECT namespace, url FROM recipes").fetchall())
    return replace(
        options,
        first=origin.get("first"),
        recipes=recipes,
        without_paths=identity.PATHS in origin,
        # Faults are reported beside the differences.
        keep_going=True,
        # The order of snapshots was checked when the database was built.
        force=True,
    )


def _rebuild(inputs: Input, output: Path) -> Report:
    """Build the sources, and return the report of the build."""
    # What a build imports takes longer than all else.
    from spack_cache_db.assembly.build_if_new import build_if_new

    try:
        return build_if_new(inputs, output)
    except ArgumentError:
        # The sources lack the first release of `origin`, which becomes a difference.
        without_first = replace(inputs.options, first=None)
        return build_if_new(inputs._replace(options=without_first), output)


def _require_snapshots(rebuilt: Path, database: Path) -> None:
    """Raise ArgumentError if the sources lack snapshots that builds of other days made.

    They are not faults of the database: the sources of those days are missing.
    """
    with closing(open_database(database)) as conn:
        copies = [name for (name,) in conn.execute(COPIES_SQL)]
    with closing(open_database(rebuilt)) as conn:
        releases = {name for (name,) in conn.execute(RELEASES_SQL)}
    missing = [name for name in copies if name not in releases]
    if missing:
        names = first_of(missing, MOST_NAMED)
        raise ArgumentError(
            f"{database} has snapshots ({names}): give their sources, such as the database that it "
            "was built on, and --snapshot DATE (snapshot=)"
        )


class Shortened(NamedTuple):
    """The first differences of each table, and the number of all."""

    differences: tuple[Difference, ...] = ()
    total: int = 0


def shortened(found: Iterable[Difference]) -> Shortened:
    """Return the first `MOST_SHOWN` differences of each table, each with the number of
    others.
    """
    shown: list[Difference] = []
    count = 0
    for table, group in groupby(found, key=attrgetter("table")):
        of_table = list(group)
        count += len(of_table)
        shown += of_table[:MOST_SHOWN]
        more = len(of_table) - MOST_SHOWN
        if more > 0:
            shown.append(Difference(table, counted(more, "more difference")))
    return Shortened(tuple(shown), count)


def differences(expected: Path, stored: Path) -> Iterator[Difference]:
    """Yield the differences between two databases, table by table.

    Rows with the same key, and rows that differ in one column only, are compared column
    by column. All other rows are missing or unexpected.
    """
    with closing(open_database(expected)) as conn:
        conn.text_factory = lambda text: text.decode(errors="backslashreplace")
        conn.execute("ATTACH ? AS stored", [f"{stored.resolve().as_uri()}?immutable=1"])

        # The statements of tables, indexes and views.
        columns = ["type", "name", "tbl_name", "sql"]
        yield from _Table(conn, "sqlite_master", columns, ["name"]).differences()

        # The rows of each table.
        for (table,) in conn.execute(TABLES_SQL).fetchall():
            columns = []
            keys = []
            for column in conn.execute(f"PRAGMA main.table_info([{table}])").fetchall():
                _, name, *_, key_position = column
                columns.append(name)
                if key_position:
                    keys.append(name)
            yield from _Table(conn, table, columns, keys or columns).differences()


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of two databases: `main` has the expected rows, and `stored` the others.

    Attributes:
        conn: the connection to both databases.
        name: the name of the table.
        columns: the names of its columns.
        keys: the columns that identify a row.
    """

    conn: sqlite3.Connection
    name: str
    columns: Sequence[str]
    keys: Sequence[str]

    def differences(self) -> Iterator[Difference]:
        """Yield the differing cells and rows of the table."""
        expected, more_expected = self._only_in("main", "stored")
        stored, more_stored = self._only_in("stored", "main")
        if more_expected or more_stored:
            yield Difference(
                self.name,
                f"more than {MOST_ROWS:,} rows",
                None,
                f"{len(stored) + more_stored:,} rows",
                f"{len(expected) + more_expected:,} others",
            )
            return

        # Rows with the same key belong together, then rows that differ in one column.
        alike: list[Sequence[str]] = [self.keys]
        for column in self.columns:
            alike.append([name for name in self.columns if name != column])
        for columns in alike:
            matches, stored, expected = _matched(stored, expected, columns)
            for stored_row, expected_row in matches:
                yield from self._differing_cells(stored_row, expected_row)

        # All other rows.
        for row in expected:
            yield Difference(self.name, self._label(row), None, "missing", "a row")
        for row in stored:
            yield Difference(self.name, self._label(row), None, "a row", "none")

    def _only_in(self, database: str, other: str) -> tuple[list[Row], int]:
        """Return the first rows that only one of the databases has, and the number of
        others.
        """
        columns = ", ".join(f"[{name}]" for name in self.columns)
        table = f"[{self.name}]"
        cursor = self.conn.execute(
            f"SELECT {columns} FROM {database}.{table} EXCEPT SELECT {columns} FROM {other}.{table}"
        )
        rows: list[Row] = []
        for values in cursor.fetchmany(MOST_ROWS):
            rows.append(dict(zip(self.columns, values, strict=True)))
        more = sum(1 for _ in cursor)
        return rows, more

    def _differing_cells(self, stored: Row, expected: Row) -> Iterator[Difference]:
        label = self._label(expected)
        for column in self.columns:
            if stored[column] != expected[column]:
                yield Difference(
                    self.name, label, column, stored[column], expected[column]
                )

    def _label(self, row: Row) -> str:
        """Return the key of a row, with names if the key is an id.

        Examples: `name hdf5`, `develop zlib (id 7)`.
        """
        cells = []
        for key in self.keys:
            # The cell of a foreign key is a name and not an id.
            subject = key.removesuffix("_id")
            cells.append(f"{subject} {_cell(self.conn, self.name, key, row)}")
        key_text = ", ".join(cells)
        if list(self.keys) == ["id"]:
            names = _names_of(self.conn, self.name, row)
            if names:
                return f"{names} ({key_text})"
        return key_text


class _Matched(NamedTuple):
    """Pairs of a stored and an expected row, and the rows without a match."""

    pairs: list[tuple[Row, Row]]
    stored: list[Row]
    expected: list[Row]


def _matched(
    stored: Iterable[Row], expected: Iterable[Row], columns: Sequence[str]
) -> _Matched:
    """Pair stored and expected rows that have the same values in these columns."""
    expected_by_values: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in expected:
        expected_by_values[_values(row, columns)].append(row)
    pairs = []
    unmatched = []
    for row in stored:
        same = expected_by_values.get(_values(row, columns))
        if same:
            pairs.append((row, same.pop(0)))
        else:
            unmatched.append(row)
    rest = list(chain.from_iterable(expected_by_values.values()))
    return _Matched(pairs, unmatched, rest)


def _values(row: Row, columns: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in columns)


def _names_of(conn: sqlite3.Connection, table: str, row: Row) -> str:
    """Return the text that identifies a row for people, such as its name; or ""."""
    columns: Sequence[str] = NAMED_BY.get(table, ())
    if not columns and table in full_text.NAMES:
        unique = tables.table(table).unique
        columns = unique[0] if unique else ()
    return " ".join(_cell(conn, table, name, row) for name in columns)


def _cell(conn: sqlite3.Connection, table: str, column: str, row: Row) -> str:
    """Return a value as text; that of a foreign key is the names of its row."""
    value = row[column]
    referenced = _referenced_table(table, column)
    if referenced is not None and value is not None:
        names = _names_of_id(conn, referenced, value)
        return names or _value_text(value)
    return value if isinstance(value, str) else _value_text(value)


def _referenced_table(table: str, column: str) -> str | None:
    """Return the table of a foreign key; None for other columns."""
    # Tables of SQLite and of full-text search are not in the schema.
    if table not in full_text.NAMES:
        return None
    for schema_column in tables.table(table).columns:
        if schema_column.name == column:
            return schema_column.references
    return None


def _names_of_id(conn: sqlite3.Connection, table: str, number: int) -> str:
    """Return the names of the row with an id; "" without any."""
    # One of the databases may lack the row.
    for database in ("main", "stored"):
        sql = f"SELECT * FROM {database}.[{table}] WHERE id = ?"
        cursor = conn.execute(sql, [number])
        columns = [name for name, *_ in cursor.description]
        values = cursor.fetchone()
        if values:
            return _names_of(conn, table, dict(zip(columns, values, strict=True)))
    return ""


def _value_text(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(value):,} in all)"
