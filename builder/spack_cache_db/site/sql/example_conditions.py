"""Finds a condition that leaves out most rows of a table, as an example for a visitor.

For a statement that reads the view `build_listings`, it is `WHERE release = 'develop'`:
SQLite finds the rows of one release without reading the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from spack_cache_db.site.sql.whole_tables import WholeTable, largest_whole_table

_COLUMNS = "SELECT name FROM pragma_table_info(:source)"


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


class _Nameable(NamedTuple):
    """A kind of thing that a condition can name, such as releases.

    Views have a column of names, and tables one of ids: `release = 'develop'`, or
    `release_id = 3`.

    Attributes:
        noun: the word for one, and the column of names in views.
        id_column: the column of ids in tables.
        table: the table that has all of them.
        name_column: the column of their names in that table.
        order: how that table is sorted; the first is the example.
    """

    noun: str
    id_column: str
    table: str
    name_column: str
    order: str


_NAMEABLE = (
    _Nameable(
        noun="release",
        id_column="release_id",
        table="releases",
        name_column="name",
        order="position",
    ),
    _Nameable(
        noun="package",
        id_column="package_id",
        table="packages",
        name_column="name",
        order="spec_count DESC, name",
    ),
    _Nameable(
        noun="hash",
        id_column="spec_id",
        table="specs",
        name_column="hash",
        order="id",
    ),
)
"""The plainest first."""


def condition_on(conn: sqlite3.Connection, table: WholeTable) -> Condition | None:
    """Return a condition with which SQLite does not read a table whole; None if a
    release, a package or a hash does not have that effect.

    Args:
        conn: a connection to the published database.
        table: the table, and the view by which a statement reads it (`source`).
    """
    columns = {name for (name,) in conn.execute(_COLUMNS, {"source": table.source})}
    for nameable in _NAMEABLE:
        condition = _condition_on_first(conn, nameable, columns)
        if condition is None:
            continue
        # Does SQLite use the condition, or does it read the table whole nevertheless?
        sql = f"SELECT * FROM {table.source} {condition.sql}"  # noqa: S608
        whole = largest_whole_table(conn, sql, {})
        if whole is None or whole.name != table.name:
            return condition
    return None


def _condition_on_first(
    conn: sqlite3.Connection, nameable: _Nameable, columns: Collection[str]
) -> Condition | None:
    """Return a condition that names the first of a kind.

    None if the columns have neither its name nor its id, or if there is none of it.
    """
    noun, id_column, table, name_column, order = nameable
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
