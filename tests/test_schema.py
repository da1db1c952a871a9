"""schema: what the data says is what SQLite finds in a built file."""

from __future__ import annotations

import sqlite3
from typing import Any

from spack_cache_db import schema
from tests.metadata import DATABASE

TABLES = DATABASE["tables"]


def pragma(connection: sqlite3.Connection, name: str, *table: str) -> list[dict[str, Any]]:
    """Return the rows of a PRAGMA as dictionaries."""
    cursor = connection.execute(f"PRAGMA {name}" + (f"([{table[0]}])" if table else ""))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def leading_columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns by which SQLite can look rows up: the first of any index."""
    indexes = pragma(connection, "index_list", table)
    first = {pragma(connection, "index_info", index["name"])[0]["name"] for index in indexes}
    return first | {
        column["name"] for column in pragma(connection, "table_info", table) if column["pk"] == 1
    }


def test_each_table_is_as_the_schema_says(samples: sqlite3.Connection) -> None:
    """Columns in order, their types, NULLs, primary key and foreign keys."""
    for table in schema.TABLES:
        _is_as_the_schema_says(samples, table)


def _is_as_the_schema_says(samples: sqlite3.Connection, table: schema.Table) -> None:
    types = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}
    columns = pragma(samples, "table_info", table.name)
    assert [(each["name"], each["type"]) for each in columns] == [
        (each.name, types[each.type]) for each in table.columns
    ]
    assert (
        tuple(each["name"] for each in sorted(columns, key=lambda each: each["pk"]) if each["pk"])
        == table.primary_key
    )
    assert {each["name"] for each in columns if each["notnull"]} == {
        each.name for each in table.columns if not each.nullable and each.name != "id"
    }
    assert {
        (each["from"], each["table"]) for each in pragma(samples, "foreign_key_list", table.name)
    } == {(each.name, each.references) for each in table.columns if each.references}


def test_no_table_or_view_is_there_that_the_schema_does_not_name(
    samples: sqlite3.Connection,
) -> None:
    """But for those that SQLite keeps for itself."""
    rows = samples.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')")
    found = {row for row in rows if not row[1].startswith("sqlite_") and "_fts_" not in row[1]}
    assert found == {
        *(("table", table.name) for table in schema.TABLES),
        *(("table", name) for name in schema.FULL_TEXT),
        *(("view", name) for name in schema.VIEWS),
    }


def test_a_foreign_key_that_a_page_facets_has_an_index(samples: sqlite3.Connection) -> None:
    """A facet links to the rows of each value: they must be found without reading the table."""
    for table in schema.TABLES:
        faceted = {*TABLES.get(table.name, {}).get("facets", [])}
        keys = {column.name for column in table.columns if column.references}
        assert faceted & keys <= leading_columns(samples, table.name), table.name


def test_the_file_says_what_it_is(samples: sqlite3.Connection) -> None:
    """Its type, its schema version and its page size are fixed."""
    for name, value in (
        ("application_id", schema.APPLICATION_ID),
        ("user_version", schema.SCHEMA_VERSION),
        ("page_size", schema.PAGE_SIZE),
    ):
        assert samples.execute(f"PRAGMA {name}").fetchone() == (value,)
    assert schema.APPLICATION_ID.to_bytes(4, "big") == b"SPDB"


def test_other_statements_are_another_schema(samples: sqlite3.Connection) -> None:
    """Whoever changes a table or a view raises `SCHEMA_VERSION` and writes the checksum down."""
    found = schema.statements_sha256(samples.execute("SELECT name, sql FROM sqlite_schema"))
    assert found == schema.STATEMENTS_SHA256


def test_no_index_is_listed_twice() -> None:
    """Each index would cost its size for nothing."""
    for table in schema.TABLES:
        listed = [table.primary_key, *table.unique, *table.indexes]
        assert len(listed) == len(set(listed)), table.name


def test_every_view_runs_and_has_rows(
    all_sources: sqlite3.Connection, real_tree: sqlite3.Connection
) -> None:
    """A view is compiled when it is used, not when it is made."""
    for name in schema.VIEWS:
        file = real_tree if name == "installations" else all_sources
        count = file.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        # No two releases of these sources have the same configuration with other hashes.
        assert count > 0 or name == "replaced_configurations", name


def test_every_table_has_rows(all_sources: sqlite3.Connection) -> None:
    """Pages of each era and mirrors of five versions of Spack fill all that there is to fill."""
    empty = {
        table.name
        for table in schema.TABLES
        if not all_sources.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
    }
    # Contradictions fill the first, who builds the second, the data of all packages the third, and
    # installed trees and their modules the last.
    assert empty <= {"problems", "recipes", "providers", "installs", "modules", "document_listings"}
