"""Finds the largest table that a statement reads whole, and what would leave rows out.

A visitor whose statement took too long reads, for example: "It reads all 1,327,198 rows
of listings (in the view build_listings): name a release, for instance WHERE release =
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
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.sql.running import Params

LARGE = 10_000
"""A table with fewer rows is read in no time."""

# Before version 3.36, SQLite writes "SCAN TABLE listings AS listed" for "SCAN listed".
_LOOP = re.compile(
    r"(?P<kind>SCAN|SEARCH) (?:TABLE )?(?P<name>\w+)(?: AS (?P<alias>\w+))?(?P<how>.*)"
)
# The rows that have one value in a column, where several may have the same: not
# "(rowid=?)", and not an index for unique values, whose names begin with "unique_".
_ROWS_OF_ONE_VALUE = re.compile(
    r" USING (?!.*\bunique_).*\((?!rowid\b)\w+=\?\)(?: LEFT-JOIN)?"
)

_ROW_COUNTS = """
SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl
"""
"""The number of rows of each table, which a build counts for SQLite's planner: `stat`
begins with it.
"""

_ID_OF_NAME = "printf('(SELECT id FROM {table} WHERE {name} = %Q)', {name})"
_RELEASE_ID = _ID_OF_NAME.format(table="releases", name="name")
_PACKAGE_ID = _ID_OF_NAME.format(table="packages", name="name")
_SPEC_ID = _ID_OF_NAME.format(table="specs", name="hash")
_FIRST_RELEASE = "FROM releases ORDER BY position LIMIT 1"
_LARGEST_PACKAGE = "FROM packages ORDER BY spec_count DESC, name LIMIT 1"
_FIRST_SPEC = "FROM specs ORDER BY id LIMIT 1"
_EXAMPLES = {
    "release": f"SELECT name, quote(name) {_FIRST_RELEASE}",
    "release_id": f"SELECT id, {_RELEASE_ID} {_FIRST_RELEASE}",
    "package": f"SELECT name, quote(name) {_LARGEST_PACKAGE}",
    "package_id": f"SELECT id, {_PACKAGE_ID} {_LARGEST_PACKAGE}",
    "hash": f"SELECT hash, quote(hash) {_FIRST_SPEC}",
    "spec_id": f"SELECT id, {_SPEC_ID} {_FIRST_SPEC}",
    "configuration_id": "SELECT id, id FROM configurations ORDER BY id LIMIT 1",
}
"""Columns that may leave out most rows, the plainest first, and a value of each: as it
is, and as people write it in SQL.
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
        column: the column that it compares.
        value: the value that the column has.
        sql_value: the value in SQL: `'develop'`, or a statement that finds an id by a
            name.
    """

    column: str
    value: str | int
    sql_value: str | int

    @property
    def subject(self) -> str:
        """What the column contains, such as `release` for `release_id`."""
        return self.column.removesuffix("_id")

    @property
    def sql(self) -> str:
        """The condition in SQL, such as `WHERE release = 'develop'`."""
        return f"WHERE {self.column} = {self.sql_value}"


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
    lines = ((parent, line) for _id, parent, _unused, line in plan)
    found = []
    for table, is_certain in _whole_tables(lines, sql, row_counts):
        row_count = row_counts[table]
        if row_count >= LARGE:
            source = _source_of(table, sql)
            found.append(WholeTable(table, row_count, source, is_certain))
    return max(found, key=lambda table: table.row_count, default=None)


def condition_on(conn: sqlite3.Connection, table: WholeTable) -> Condition | None:
    """Return a condition with which SQLite does not read a table whole; None if there
    is none of `_EXAMPLES`.
    """
    rows = conn.execute(
        "SELECT name FROM pragma_table_xinfo(:source)", {"source": table.source}
    )
    columns = {name for (name,) in rows}
    for column, example in _EXAMPLES.items():
        row = conn.execute(example).fetchone()
        if column not in columns or row is None:
            continue
        value, sql_value = row
        condition = Condition(column, value, sql_value)
        sql = f"SELECT * FROM {table.source} {condition.sql}"  # noqa: S608
        rest = largest_whole_table(conn, sql, {})
        if rest is None or rest.name != table.name:
            return condition
    return None


def _whole_tables(
    lines: Iterable[tuple[int, str]], sql: str, tables: Iterable[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the tables that the loops of a plan read whole, and whether it is certain.

    Args:
        lines: the lines of the plan, each with the number of its parent.
        sql: the statement.
        tables: the names of tables whose rows are counted.
    """
    # For each parent: whether its first loop takes all rows of a table, so that those
    # inside it search their tables for all of them.
    takes_all: dict[int, bool] = {}
    for parent, line in lines:
        loop = _LOOP.fullmatch(line)
        if loop is None:
            continue
        table = _table_called(loop["name"].lower(), sql, tables)
        is_scan = loop["kind"] == "SCAN"
        takes_all.setdefault(parent, is_scan and table is not None)
        if table is None:
            continue
        if is_scan:
            yield table, True
        elif takes_all[parent] and _ROWS_OF_ONE_VALUE.fullmatch(loop["how"]):
            yield table, False


def _table_called(name: str, sql: str, tables: Iterable[str]) -> str | None:
    """Return the table that a plan calls by a name or an alias; None for a subquery.

    An alias stands behind its table in the statement, or in a view that it uses:
    `configuration_history AS listed`.
    """
    if name in tables:
        return name
    texts = (sql, *(VIEWS[view] for view in _views_in(sql)))
    for text in texts:
        for before in re.findall(rf"(\w+)\s+(?:AS\s+)?{name}\b", text, re.IGNORECASE):
            if before.lower() in tables:
                return str(before.lower())
    return None


def _source_of(table: str, sql: str) -> str:
    """Return the name by which a statement reads a table: its own, or a view's."""
    if table in _words(sql):
        return table
    for view in _views_in(sql):
        if table in _words(VIEWS[view]):
            return view
    return table


def _views_in(text: str) -> list[str]:
    """Return the views that a statement uses, and those that these use in turn."""
    views = [word for word in _words(text) if word in VIEWS]
    for view in list(views):
        views += [inner for inner in _views_in(VIEWS[view]) if inner not in views]
    return views


def _words(text: str) -> Mapping[str, None]:
    """Return the words of a text, in order and without duplicates."""
    return dict.fromkeys(re.findall(r"\w+", text.lower()))
