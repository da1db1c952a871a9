"""What a file counts and computes, held against a second build of the same input.

The same input gives the same tables, so every cell of both is the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spack_cache_db.build import Input, Report, pipeline
from spack_cache_db.errors import ArgumentError, Fault
from spack_cache_db.query.connection import open_database
from spack_cache_db.schema import LEFT_OUT, PATHS

MOST_TOLD = 20
"""So many rows of each table are told; of a table whose rows have moved all differ."""

ORIGIN = "SELECT name, value FROM origin"
RECIPES = "SELECT namespace, url FROM recipes"
DOCUMENTS = """
SELECT (SELECT count(*) FROM pages) + (SELECT count(*) FROM mirrors)
  + (SELECT count(*) FROM problems WHERE page IS NULL AND mirror IS NULL)
  + EXISTS (SELECT 1 FROM known_packages)
"""
TABLES = """
SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'
ORDER BY name
"""
ONLY_ONE = "SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {other}.{table}"


def document_count(database: Path) -> int:
    """Return from how many documents a file was built, with those that were left out.

    All package data is one.
    """
    with closing(open_database(database)) as conn:
        (count,) = conn.execute(DOCUMENTS).fetchone()
        return int(count)


def recounted(database: Path, given: Input) -> tuple[Report | None, tuple[Fault, ...]]:
    """Build the input again, and compare all tables.

    Returns:
        The report of that build; and each row that differs, as a fault of the file.
    """
    with TemporaryDirectory() as folder:
        again = Path(folder) / database.name
        try:
            report = pipeline.build(_as_built(database, given), again, keep_going=True, force=False)
        except ArgumentError as error:
            return None, (Fault(str(database), 0, f"origin: {error}"),)
        with closing(open_database(again)) as conn:
            conn.execute("ATTACH ? AS stored", [f"{database.resolve().as_uri()}?immutable=1"])
            told = tuple(Fault(str(database), 0, each) for each in _differences(conn))
    return report, told


def _as_built(database: Path, given: Input) -> Input:
    """Return the input with the options with which a file says it was built."""
    with closing(open_database(database)) as conn:
        origin = dict(conn.execute(ORIGIN).fetchall())
        recipes = dict(conn.execute(RECIPES).fetchall())
    without_paths = origin.get(PATHS) == LEFT_OUT
    return given._replace(
        first=origin.get("first"), recipes=recipes, without_paths=without_paths, progress=None
    )


def _differences(conn: sqlite3.Connection) -> Iterator[str]:
    """Yield what is different in the schema `stored`, table by table."""
    for (table,) in conn.execute(TABLES).fetchall():
        columns = conn.execute(f"PRAGMA main.table_info({table})").fetchall()
        names = [name for _, name, *_ in columns]
        keys = [name for _, name, *_, key in columns if key] or names
        told = [*_of_table(conn, table, names, keys)]
        yield from told[:MOST_TOLD]
        if len(told) > MOST_TOLD:
            yield f"{table}: {len(told) - MOST_TOLD:,} more rows differ"


def _of_table(
    conn: sqlite3.Connection, table: str, names: list[str], keys: list[str]
) -> Iterator[str]:
    """Yield what is different in one table, a text for each row."""
    expected, stored = (
        {
            tuple(row[names.index(key)] for key in keys): dict(zip(names, row, strict=True))
            for row in conn.execute(ONLY_ONE.format(one=one, other=other, table=table))
        }
        for one, other in (("main", "stored"), ("stored", "main"))
    )
    for key in sorted(expected.keys() | stored.keys(), key=repr):
        what = ", ".join(f"{name} {_shown(each)}" for name, each in zip(keys, key, strict=True))
        if key not in stored:
            yield f"{table}: the row of {what} is missing"
        elif key not in expected:
            yield f"{table}: the row of {what} is too many"
        else:
            parts = (
                f"{name} is {_shown(stored[key][name])}, expected {_shown(value)}"
                for name, value in expected[key].items()
                if value != stored[key][name]
            )
            yield f"{table}: of {what}, {'; '.join(parts)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
