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
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Unpack

from spack_cache_db.arguments import checked_with
from spack_cache_db.assembly.options import Input, ReadOptions
from spack_cache_db.bounded_files import AnyPath, checked_file, sha256_of
from spack_cache_db.database_file import damage_as_error, open_database
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

TABLES = """
SELECT name FROM main.sqlite_master
WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %' AND name NOT LIKE 'sqlite_stat%'
ORDER BY name
"""
COPIES = "SELECT name FROM releases WHERE is_copy ORDER BY position"
STORED = "SELECT name FROM releases"
NAMED_BY = {
    "configurations": tuple(tables.CONFIGURATION),
    "mirrors": ("release", "stack", "path"),
    "problems": ("source", "code", "hash"),
    "variant_sets": ("text",),
}
"""The columns that identify a row for people, in tables with an id as their only
key.
"""

Row = Mapping[str, Any]


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
        stored, expected, where = (
            self.stored,
            self.expected,
            f"{self.table}: {self.row}",
        )
        if self.column is None and stored is None:
            return printable(where)
        if self.column is not None:
            stored, expected = _value_text(stored), _value_text(expected)
            where = f"{where}, {self.column}"
        return printable(f"{where}: is {stored}, expected {expected}")


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
        texts = {
            key: [*map(str, getattr(self, key))] for key in ("faults", "differences")
        }
        return asdict(self) | texts


@checked_with(ReadOptions.__annotations__)
def verify(
    file: AnyPath, paths: AnyPath | Iterable[AnyPath], **options: Unpack[ReadOptions]
) -> Verification:
    """Build the sources of a database again, and return where the database differs.

    Options that the database records (`first`, `recipes`, `without_paths`) are taken
    from it.

    Args:
        file: a database made by `build`.
        paths: all its sources; one path or many, as text or `Path`.
        options: those of `build` for reading the input.

    Raises:
        ArgumentError: a path has a wrong type, a name is invalid, or the database has
            snapshots that the sources do not have.
        DatabaseError: the file is not a database of this program, or is damaged.
        InputError: a path does not exist, or none of the sources can be read.
    """
    source = Input.checked(paths, **options)
    database = checked_file("file", file)
    with closing(open_database(database)) as conn, damage_as_error(database):
        origin = dict(conn.execute("SELECT name, value FROM origin").fetchall())
        recipes = dict(conn.execute("SELECT namespace, url FROM recipes").fetchall())
    source = source._replace(
        first=origin.get("first"),
        recipes=recipes,
        without_paths=identity.PATHS in origin,
    )
    from spack_cache_db.assembly import (
        pipeline,
    )  # Its imports take longer than all others.

    with TemporaryDirectory() as folder:
        again = Path(folder, database.name)
        try:
            report = pipeline.build(source, again, keep_going=True, force=True)
        except ArgumentError:
            # The sources lack the first release of `origin`, which becomes a
            # difference.
            without_first = source._replace(first=None)
            report = pipeline.build(without_first, again, keep_going=True, force=True)
        result = Shortened()
        if report.sha256 != sha256_of(database):
            with damage_as_error(database):
                _require_snapshots(again, database)
                result = shortened(differences(again, database))
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


def _require_snapshots(again: Path, database: Path) -> None:
    """Raise ArgumentError if the sources lack snapshots that builds of other days made.

    They are not faults of the database: the sources of those days are missing.
    """
    with closing(open_database(database)) as conn:
        copies = [name for (name,) in conn.execute(COPIES)]
    with closing(open_database(again)) as conn:
        built = {name for (name,) in conn.execute(STORED)}
    missing = [name for name in copies if name not in built]
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
        yield from _differences(
            conn, "sqlite_master", ["type", "name", "tbl_name", "sql"], ["name"]
        )
        for (table,) in conn.execute(TABLES).fetchall():
            columns = conn.execute(f"PRAGMA main.table_info([{table}])").fetchall()
            names = [name for _, name, *_ in columns]
            keys = [name for _, name, *_, is_key in columns if is_key]
            yield from _differences(conn, table, names, keys or names)


def _differences(
    conn: sqlite3.Connection, table: str, names: Sequence[str], keys: Sequence[str]
) -> Iterator[Difference]:
    """Yield the differences of a table of the databases `main` and `stored`."""
    expected, more = _only_in(conn, table, names, "main", "stored")
    stored, more_stored = _only_in(conn, table, names, "stored", "main")
    if more or more_stored:
        numbers = (
            f"{len(stored) + more_stored:,} rows",
            f"{len(expected) + more:,} others",
        )
        yield Difference(table, f"more than {MOST_ROWS:,} rows", None, *numbers)
        return
    for columns in (keys, *([*{*names} - {name}] for name in names)):
        expected_by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in expected:
            expected_by_key[tuple(row[name] for name in columns)].append(row)
        unmatched = []
        for row in stored:
            if not (same := expected_by_key.get(tuple(row[name] for name in columns))):
                unmatched.append(row)
                continue
            match = same.pop(0)
            label = _label(conn, table, keys, match)
            for name in names:
                if row[name] != match[name]:
                    yield Difference(table, label, name, row[name], match[name])
        stored, expected = (
            unmatched,
            [row for rows in expected_by_key.values() for row in rows],
        )
    for rows, words in ((expected, ("missing", "a row")), (stored, ("a row", "none"))):
        for row in rows:
            yield Difference(table, _label(conn, table, keys, row), None, *words)


def _only_in(
    conn: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    database: str,
    other: str,
) -> tuple[list[Row], int]:
    """Return the first rows that only one of the databases has, and the number of
    others.
    """
    columns = ", ".join(f"[{name}]" for name in names)
    rows = conn.execute(
        f"SELECT {columns} FROM {database}.[{table}] EXCEPT SELECT {columns} FROM {other}.[{table}]"
    )
    first = rows.fetchmany(MOST_ROWS)
    return [dict(zip(names, row, strict=True)) for row in first], sum(1 for _ in rows)


def _label(conn: sqlite3.Connection, table: str, keys: Sequence[str], row: Row) -> str:
    """Return the key of a row, with names if the key is an id."""
    words = ", ".join(f"{name} {_cell(conn, table, name, row)}" for name in keys)
    names = _names_of(conn, table, row) if keys == ["id"] else ""
    return f"{names} ({words})" if names else words


def _names_of(conn: sqlite3.Connection, table: str, row: Row) -> str:
    unique = tables.table(table).unique if table in full_text.NAMES else ()
    columns = NAMED_BY.get(table, *unique[:1]) if unique or table in NAMED_BY else ()
    return " ".join(_cell(conn, table, name, row) for name in columns)


def _cell(conn: sqlite3.Connection, table: str, column: str, row: Row) -> str:
    """Return a value as text; that of a foreign key is the names of its row."""
    value = row[column]
    columns = tables.table(table).columns if table in full_text.NAMES else ()
    to = next(
        (reference.references for reference in columns if reference.name == column),
        None,
    )
    if to is None or value is None:
        return value if isinstance(value, str) else _value_text(value)
    for database in ("main", "stored"):
        cursor = conn.execute(f"SELECT * FROM {database}.[{to}] WHERE id = ?", [value])
        names = [name for name, *_ in cursor.description]
        if values := cursor.fetchone():
            return _names_of(
                conn, to, dict(zip(names, values, strict=True))
            ) or _value_text(value)
    return _value_text(value)


def _value_text(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(value):,} in all)"
