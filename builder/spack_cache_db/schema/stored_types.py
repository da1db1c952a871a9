"""The statements that find values of a type that no build writes.

SQLite keeps any value in any column (SQLite docs, "Datatypes"). A build writes texts
and whole numbers, numbers of rows that exist, and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spack_cache_db.schema.tables import TABLES, Column, Table

_WRONG_TYPE = """\
SELECT typeof("{column}") FROM "{table}" WHERE typeof("{column}") NOT IN ({types}) LIMIT 1"""
_NO_JSON = """\
SELECT "{column}" FROM "{table}" WHERE NOT json_valid(coalesce("{column}", '[]')) LIMIT 1"""
_MISSING_ROW = """\
SELECT "{column}" FROM "{table}" AS child
WHERE "{column}" IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM "{parent}" AS parent WHERE parent.id = child."{column}")
LIMIT 1"""

_OUT_OF_RANGE = """\
SELECT "{column}" FROM "{table}" WHERE "{column}" NOT BETWEEN {least} AND {most} LIMIT 1"""
_NOT_COUNTED = """\
SELECT specs.release_count FROM listings JOIN specs ON specs.id = listings.spec_id
WHERE specs.release_count = 0 LIMIT 1"""
_MOST = 2**53
"""No build writes larger numbers; sums of a few thousand of them fit into 64 bits."""

_JSON = {
    "known_dependents": ("known_package_ids",),
    "known_packages": ("versions", "variant_meaning_ids"),
    "mirrors": ("settings",),
    "modules": ("parents",),
    "nodes": ("parameters", "external"),
    "stack_sets": ("stacks", "shown"),
}
"""The columns of each table whose texts are JSON."""

_TYPES = {int: "'integer'", str: "'text'", bytes: "'blob'"}
"""The names of SQLite's types, quoted."""


class TypeCheck(NamedTuple):
    """A statement that returns a row if a column has a wrong value, and what is wrong
    then.
    """

    table: str
    column: str
    sql: str
    fault: str


def type_checks() -> Iterator[TypeCheck]:
    """Yield the checks of all columns: types, JSON, the rows that they refer to, and
    ranges.
    """
    for table in TABLES:
        for column in table.columns:
            types = _types_of(column)
            sql = _WRONG_TYPE.format(column=column.name, table=table.name, types=types)
            yield TypeCheck(table.name, column.name, sql, f"is not {types}")
    for name, columns in _JSON.items():
        for column_name in columns:
            sql = _NO_JSON.format(column=column_name, table=name)
            yield TypeCheck(name, column_name, sql, "is not JSON")
    for table in TABLES:
        for column in table.columns:
            if column.references is not None:
                yield _reference_check(table, column, column.references)
    for table in TABLES:
        for column in table.columns:
            if column.type is int:
                yield _range_check(table, column)
    yield TypeCheck(
        "specs", "release_count", _NOT_COUNTED, "does not count its listings"
    )


def _types_of(column: Column) -> str:
    """Return the names of SQLite's types that a column has, as a list in SQL."""
    name = _TYPES[column.type]
    return f"{name}, 'null'" if column.nullable else name


def _reference_check(table: Table, column: Column, references: str) -> TypeCheck:
    """Return the check that the rows exist to which a column refers."""
    sql = _MISSING_ROW.format(column=column.name, table=table.name, parent=references)
    return TypeCheck(table.name, column.name, sql, f"has no row in {references}")


def _range_check(table: Table, column: Column) -> TypeCheck:
    """Return the check of a number: 0 or 1, a count, or any number that sums can
    have.
    """
    least = -_MOST
    most = _MOST
    if column.name.startswith("is_"):
        least = 0
        most = 1
    elif column.name.endswith("_count"):
        least = 0
    sql = _OUT_OF_RANGE.format(
        column=column.name, table=table.name, least=least, most=most
    )
    return TypeCheck(table.name, column.name, sql, f"is not between {least} and {most}")
