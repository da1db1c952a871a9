"""Which tables, functions and pragmas visitors' SQL may use."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.schema.full_text import FULL_TEXT
from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.sql.authorizer import FUNCTIONS, PRAGMAS, authorize


@pytest.fixture
def conn(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the invented cache that has its list."""
    connection = sqlite3.connect(f"file:{database}?immutable=1", uri=True)
    authorize(connection)
    yield connection
    connection.close()


def test_every_table_and_view_can_be_read(conn: sqlite3.Connection) -> None:
    """All that the file offers can be asked for, with and without columns."""
    for name in (*(table.name for table in TABLES), *VIEWS, *FULL_TEXT):
        assert conn.execute(f"SELECT count(*) FROM {name}").fetchone()
        conn.execute(f"SELECT * FROM {name.upper()} LIMIT 1").fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x + 1 FROM n LIMIT 9) SELECT max(x) FROM n",
        "WITH several AS (SELECT 1) SELECT count(*) FROM several",
        "SELECT count(*) FROM (SELECT 1), json_each('[1]')",
        "SELECT value FROM json_tree('[1]')",
        "SELECT name FROM sqlite_master",
        "SELECT name FROM pragma_table_info('specs')",
        "PRAGMA table_info(specs)",
        "EXPLAIN QUERY PLAN SELECT * FROM builds",
        "SELECT 'a' LIKE 'A', 'a' GLOB 'a*', json_extract('[1]', '$[0]')",
        *(["SELECT '[1]' -> 0"] if sqlite3.sqlite_version_info >= (3, 38) else []),
        "SELECT row_number() OVER (ORDER BY id) FROM specs",
        "SELECT rowid, rank FROM packages_fts WHERE packages_fts MATCH 'hdf5'",
        "SELECT tarball FROM build_listings LIMIT 1",
    ],
)
def test_what_people_ask_is_allowed(conn: sqlite3.Connection, sql: str) -> None:
    """Common table expressions, JSON, windows, full text and what describes a table
    work.
    """
    assert conn.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT fts3_tokenizer('simple', x'4141414141414141')",
        "SELECT token FROM fts3tokenize WHERE input = 'a'",
        "SELECT count(*) FROM fts3tokenize",
        "SELECT file FROM pragma_database_list",
        "SELECT count(*) FROM PRAGMA_database_list",
        "SELECT sql FROM sqlite_stmt",
        "SELECT count(*) FROM Sqlite_Stmt",
        "SELECT pageno FROM dbstat",
        "SELECT count(*) FROM dbstat",
        "SELECT * FROM pragma_module_list",
        "SELECT load_extension('x')",
        "SELECT fts5(x'00')",
        "SELECT sqlite_log(1, 'x')",
        "SELECT rtreecheck('main', 'specs')",
        "SELECT matchinfo(packages_fts) FROM packages_fts",
        "SELECT sqlite_compileoption_get(1)",
        "PRAGMA query_only = 0",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA writable_schema = 1",
        "PRAGMA module_list",
        "ATTACH DATABASE ':memory:' AS x",
        "CREATE TEMP TABLE x (y)",
        "CREATE VIRTUAL TABLE x USING fts4(y)",
        "DELETE FROM specs",
        "UPDATE specs SET hash = 'x'",
        "BEGIN",
        "ANALYZE",
        "VACUUM",
    ],
)
def test_all_else_is_refused(conn: sqlite3.Connection, sql: str) -> None:
    """What is not on the list is refused before it does anything, in whatever
    spelling.
    """
    # Some tables of SQLite itself are only in newer versions.
    refused = r"not authorized|prohibited|denied|no such table: (sqlite_stmt|pragma_module_list)"
    with pytest.raises(sqlite3.DatabaseError, match=f"(?i){refused}"):
        conn.execute(sql).fetchall()


def test_the_list_is_of_harmless_functions(conn: sqlite3.Connection) -> None:
    """Of SQLite's own functions these are left out, and no others: a new one is not
    allowed.
    """
    have: set[str] = set()
    # SQLite before 3.30 does not list its functions.
    if sqlite3.sqlite_version_info >= (3, 30):
        with closing(sqlite3.connect(":memory:")) as plain:
            rows = plain.execute("SELECT name FROM pragma_function_list")
            have = {name for (name,) in rows}

    assert {"fts3_tokenizer", "load_extension"}.isdisjoint(FUNCTIONS)
    # Older versions have functions to debug full-text indexes.
    for_debugging = {
        "fts5_decode",
        "fts5_decode_none",
        "fts5_expr",
        "fts5_expr_tcl",
        "fts5_fold",
        "fts5_isalnum",
        "fts5_rowid",
    }
    assert have - FUNCTIONS - for_debugging <= {
        "changes",
        "fts3_tokenizer",
        "fts5",
        "fts5_source_id",
        "last_insert_rowid",
        "matchinfo",
        "load_extension",
        "offsets",
        "optimize",
        "rtreecheck",
        "rtreedepth",
        "rtreenode",
        "sqlite_compileoption_get",
        "sqlite_compileoption_used",
        "sqlite_log",
        "subtype",
        "total_changes",
    }
    assert "database_list" not in PRAGMAS
