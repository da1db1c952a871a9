"""Finds the largest table that a statement reads whole, and what would leave rows out.

A visitor whose statement took too long reads, for example: "It reads all 1,327,198 rows
of listings (for the view build_listings): name a release, for instance WHERE release =
'develop'."

SQLite describes the plan of a statement in lines (sqlite.org/eqp.html). Lines with one
parent are loops, each inside the one before it:

    SCAN releases
    SEARCH listings USING PRIMARY KEY (release_id=?)
    SEARCH specs USING INTEGER PRIMARY KEY (rowid=?)

The first loop takes all releases, and the second all listings of each, which are all
listings. The third finds one row each time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.sql.running import Params

LARGE = 10_000
"""A table with fewer rows is read in no time."""

# Before version 3.36, SQLite writes "SCAN TABLE listings AS listed" for "SCAN listed".
_LOOP = re.compile(
    r"(?P<kind>SCAN|SEARCH) (?:TABLE )?(?P<name>\w+)(?: AS \w+)?(?P<how>.*)"
)
# The rows that have one value in a column, where several may have the same: not
# "(rowid=?)", and not an index for unique values, whose names begin with "unique_".
_ROWS_OF_ONE_VALUE = re.compile(
    r" USING (?!.*\bunique_).*\((?!rowid\b)\w+=\?\)(?: LEFT-JOIN)?"
)

# A word, and the one behind it, between which AS may be.
_WORD_AND_NEXT = re.compile(r"\b(\w+)(?=\s+(?:as\s+)?(\w+))")

_ROW_COUNTS = """
SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl
"""
"""The number of rows of each table, which a build counts for SQLite's planner: `stat`
begins with it.
"""


class WholeTable(NamedTuple):
    """A table that a statement reads whole.

    Attributes:
        name: its name.
        row_count: its number of rows.
        source: the view of the statement that reads it, or the table itself.
        is_certain: whether it is read from its first row to its last; otherwise its
            rows are searched for all rows of another table, of which the statement may
            leave some out.
    """

    name: str
    row_count: int
    source: str
    is_certain: bool


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


def largest_whole_table(
    conn: sqlite3.Connection, sql: str, params: Params
) -> WholeTable | None:
    """Return the largest table that a statement reads whole; None for no large one.

    Args:
        conn: a connection to the published database.
        sql: the statement, which is not run.
        params: the values of its parameters.

    Raises:
        sqlite3.Error: SQLite has no plan for the statement.
    """
    row_counts = dict(conn.execute(_ROW_COUNTS).fetchall())
    plan = conn.execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()
    lines = [(parent, line) for _id, parent, _unused, line in plan]

    # The statement, and the views that it uses, in which a plan finds its tables.
    views = [word for word in _words(sql) if word in VIEWS]
    texts = [sql, *(VIEWS[view] for view in views)]
    names = _names_of_tables(texts, row_counts)

    largest = None
    for table, is_certain in _whole_tables(lines, names):
        row_count = row_counts[table]
        is_largest = largest is None or row_count > largest.row_count
        if row_count >= LARGE and is_largest:
            source = _source_of(table, sql, views)
            largest = WholeTable(table, row_count, source, is_certain)
    return largest


def condition_on(conn: sqlite3.Connection, table: WholeTable) -> Condition | None:
    """Return a condition with which SQLite does not read a table whole; None if there
    is none of `_EXAMPLES`.
    """
    rows = conn.execute(
        "SELECT name FROM pragma_table_xinfo(:source)", {"source": table.source}
    )
    columns = {name for (name,) in rows}
    for example in _EXAMPLES:
        condition = _condition_of(conn, example, columns)
        if condition is None:
            continue
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
    row = conn.execute(
        f"SELECT id, {name_column}, quote({name_column}) FROM {table} ORDER BY {order}"  # noqa: S608
    ).fetchone()
    if row is None:
        return None
    row_id, name, quoted_name = row
    if noun in columns:
        return Condition(noun, noun, name, quoted_name)
    if id_column in columns:
        id_of_name = f"(SELECT id FROM {table} WHERE {name_column} = {quoted_name})"  # noqa: S608
        return Condition(noun, id_column, row_id, id_of_name)
    return None


def _names_of_tables(
    texts: Iterable[str], tables: Collection[str]
) -> Mapping[str, str]:
    """Return the tables by the names that a plan may have for them, in lower case.

    These are their own names, and aliases, which are behind them in a text:
    `configuration_history AS listed`.

    Args:
        texts: SQL.
        tables: the names of tables.
    """
    names = {table: table for table in tables}
    for text in texts:
        for word, next_word in _WORD_AND_NEXT.findall(text.lower()):
            if word in tables:
                names.setdefault(next_word, word)
    return names


def _whole_tables(
    lines: Iterable[tuple[int, str]], names: Mapping[str, str]
) -> Iterator[tuple[str, bool]]:
    """Yield the tables that the loops of a plan read whole, and whether it is certain.

    Args:
        lines: the lines of the plan, each with the number of its parent.
        names: the tables by their names in the plan; other names are subqueries.
    """
    # For each parent: whether its first loop takes all rows of a table, so that those
    # inside it search their tables for all of them.
    takes_all: dict[int, bool] = {}
    for parent, line in lines:
        loop = _LOOP.fullmatch(line)
        if loop is None:
            continue
        table = names.get(loop["name"].lower())
        is_scan = loop["kind"] == "SCAN"
        takes_all.setdefault(parent, is_scan and table is not None)
        if table is None:
            continue
        if is_scan:
            yield table, True
        elif takes_all[parent] and _ROWS_OF_ONE_VALUE.fullmatch(loop["how"]):
            yield table, False


def _source_of(table: str, sql: str, views: Iterable[str]) -> str:
    """Return the name by which a statement reads a table: its own, or a view's."""
    if table in _words(sql):
        return table
    for view in views:
        if table in _words(VIEWS[view]):
            return view
    return table


def _words(text: str) -> Mapping[str, None]:
    """Return the words of a text, in order and without duplicates."""
    return dict.fromkeys(re.findall(r"\w+", text.lower()))
