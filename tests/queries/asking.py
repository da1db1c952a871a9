"""Which canned queries there are, and how to ask one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spack_cache_db.site.sandbox import sql_functions
from tests.metadata import DATABASE

EVERY_QUERY = DATABASE["queries"]
# They need an index: tests/queries/test_dependencies.py.
DEPENDENCY_QUERIES = (
    "dependencies_of_hash",
    "dependencies_without_binary",
    "dependents_of_hash",
    "differences_of_look_alikes",
)
# They need package data: tests/queries/test_packages.py.
PACKAGE_QUERIES = ("packages_behind", "packages_missing", "versions_dropped")
QUERIES = {
    name: each
    for name, each in EVERY_QUERY.items()
    if name not in (*DEPENDENCY_QUERIES, *PACKAGE_QUERIES)
}


def opened(file: Path) -> sqlite3.Connection:
    """Return a connection with the functions that the queries call."""
    connection = sqlite3.connect(file)
    sql_functions.register(connection)
    return connection


def connected(file: Path) -> Iterator[sqlite3.Connection]:
    """Yield such a connection, and close it."""
    connection = opened(file)
    yield connection
    connection.close()


def run(connection: sqlite3.Connection, query: str, **params: str) -> list[dict[str, Any]]:
    """Run a canned query; parameters that are not given are empty, as in its form."""
    declared = dict.fromkeys(EVERY_QUERY[query]["params"], "")
    return rows_of(connection.execute(EVERY_QUERY[query]["sql"], declared | params))


def rows_of(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    """Return rows by the names of their columns."""
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def rows(connection: sqlite3.Connection, query: str, **params: str) -> list[dict[str, Any]]:
    """Return what a query answers, without the column that says that nothing is wrong."""
    found = run(connection, query, **params)
    assert [row["error"] for row in found] == [None] * len(found)
    return [{name: row[name] for name in row if name != "error"} for row in found]
