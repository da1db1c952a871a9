"""Finds the largest table that a statement reads whole.

A visitor whose statement took too long reads, for example: "It reads all 1,327,198 rows
of listings (for the view build_listings)".

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
    # The lines of the plan, with their parents.
    plan = conn.execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()
    lines = [(parent, line) for _id, parent, _unused, line in plan]

    # What the plan calls the tables: that is in the statement, and in its views.
    row_counts = dict(conn.execute(_ROW_COUNTS).fetchall())
    views = [word for word in _words(sql) if word in VIEWS]
    texts = [sql, *(VIEWS[view] for view in views)]
    names = _names_of_tables(texts, row_counts)

    # The largest of those that are read whole.
    largest = None
    for table, is_certain in _whole_tables(lines, names):
        row_count = row_counts[table]
        is_largest = largest is None or row_count > largest.row_count
        if row_count >= LARGE and is_largest:
            source = _source_of(table, sql, views)
            largest = WholeTable(table, row_count, source, is_certain)
    return largest


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
