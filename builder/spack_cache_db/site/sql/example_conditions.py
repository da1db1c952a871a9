"""Finds a condition that leaves out most rows of a table, as an example for a visitor.

For a statement that reads the view `build_listings`, it is `WHERE release = 'develop'`:
SQLite finds the rows of one release without reading the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from spack_cache_db.site.sql.whole_tables import WholeTable, largest_whole_table

_COLUMNS = "SELECT name FROM pragma_table_xinfo(:source)"


class Condition(NamedTuple):
    """A condition that leaves out most rows of a table.

    Attributes:
        noun: what it names, such as `release`.
        column: the column that it compares, such as `release_id`.
        value: the value that the column has.
        sql_value: the value in SQL: `'develop'`, or a statement that finds an id by a
            name.
    """

    noun: str
    column: str
    value: str | int
    sql_value: str

    @property
    def sql(self) -> str:
        """The condition in SQL, such as `WHERE release = 'develop'`."""
        return f"WHERE {self.column} = {self.sql_value}"


class _Example(NamedTuple):
    """What a condition can name, and where SQL finds one to show.

    Attributes:
        noun: what it is, which is also the column of its name in views.
        id_column: the column of its id in tables.
        table: the table of all of them.
        name_column: the column of its name in that table.
        order: the order in that table; the first one is shown.
    """

    noun: str
    id_column: str
    table: str
    name_column: str
    order: str


_EXAMPLES = (
    _Example("release", "release_id", "releases", "name", "position"),
    _Example("package", "package_id", "packages", "name", "spec_count DESC, name"),
    _Example("hash", "spec_id", "specs", "hash", "id"),
)
"""The plainest first."""


def condition_on(conn: sqlite3.Connection, table: WholeTable) -> Condition | None:
    """Return a condition with which SQLite does not read a table whole; None if there
    is none of `_EXAMPLES`.
    """
    columns = {name for (name,) in conn.execute(_COLUMNS, {"source": table.source})}
    for example in _EXAMPLES:
        condition = _condition_of(conn, example, columns)
        if condition is None:
            continue
        # Does SQLite use it?
        sql = f"SELECT * FROM {table.source} {condition.sql}"  # noqa: S608
        rest = largest_whole_table(conn, sql, {})
        if rest is None or rest.name != table.name:
            return condition
    return None


def _condition_of(
    conn: sqlite3.Connection, example: _Example, columns: Collection[str]
) -> Condition | None:
    """Return the condition of an example on some columns; None if they lack its own."""
    noun, id_column, table, name_column, order = example
    name_and_id = f"SELECT {name_column}, id FROM {table} ORDER BY {order} LIMIT 1"  # noqa: S608
    row = conn.execute(name_and_id).fetchone()
    # The database has no releases, for example.
    if row is None:
        return None
    name, row_id = row
    quoted_name = "'" + name.replace("'", "''") + "'"
    if noun in columns:
        return Condition(noun, noun, name, quoted_name)
    if id_column in columns:
        id_of_name = f"(SELECT id FROM {table} WHERE {name_column} = {quoted_name})"  # noqa: S608
        return Condition(noun, id_column, row_id, id_of_name)
    return None
