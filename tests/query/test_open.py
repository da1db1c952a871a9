"""query.open: a built file is opened, anything else is refused, and any connection will do."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open import IDS_AT_ONCE, connected, open_database, select, select_in


@pytest.mark.parametrize("name", ["missing.db", "text.db"])
def test_what_is_no_database(tmp_path: Path, name: str) -> None:
    """A path without a built file is an error with the reason."""
    (tmp_path / "text.db").write_text("no database")

    with pytest.raises(DatabaseError, match=r"no such file|is no spack-cache-db database"):
        open_database(tmp_path / name)


def test_another_schema_version(samples_file: Path, tmp_path: Path) -> None:
    """A file of another builder's schema is refused, and the message names both versions."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(samples_file.read_bytes())
    connection = sqlite3.connect(copy)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(DatabaseError, match="has schema version 99, expected"):
        open_database(copy)


def test_a_connection_stays_open_and_a_path_is_closed(samples_file: Path) -> None:
    """Who brings a connection keeps it; a file that was opened here is closed here."""
    own = open_database(samples_file)
    with connected(own) as conn:
        assert conn is own
    assert own.execute("SELECT 1").fetchone() == (1,)
    with connected(str(samples_file)) as conn:
        pass
    with pytest.raises(sqlite3.ProgrammingError):
        conn.execute("SELECT 1")
    own.close()


def test_rows_are_tuples() -> None:
    """A connection's own row factory stays, and does not matter."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = lambda cursor, row: {"row": row}

    assert [*select(connection, "SELECT :a, :b", a=1, b=2)] == [(1, 2)]
    assert connection.execute("SELECT 1").fetchone() == {"row": (1,)}


def test_no_list_of_ids_is_too_long() -> None:
    """Many ids go in by pieces, each of them once, below the bound that the site sets."""
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 200_000)
    ids = range(10_000_000, 10_000_000 + 5 * IDS_AT_ONCE + 1)
    with pytest.raises(sqlite3.DataError):
        connection.execute("SELECT ?", [json.dumps([*ids])])

    found = [row[0] for row in select_in(connection, "SELECT value FROM json_each(:ids)", ids)]

    assert found == [*ids]
