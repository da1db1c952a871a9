"""Which table a statement reads whole, and what would leave most of its rows out."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.sql import whole_tables
from spack_cache_db.site.sql.authorizer import authorize
from spack_cache_db.site.sql.example_conditions import condition_on
from spack_cache_db.site.sql.whole_tables import WholeTable, largest_whole_table
from tests.many import build_many
from tests.shared import built_once

LARGE = 500


@pytest.fixture(scope="module")
def many_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the fixture `many`."""
    return built_once(tmp_path_factory, "many", build_many) / "spack-cache.db"


@pytest.fixture
def conn(
    many_file: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[sqlite3.Connection]:
    """A visitor's connection to a file whose tables count as large."""
    monkeypatch.setattr(whole_tables, "LARGE", LARGE)
    connection = sqlite3.connect(f"file:{many_file}?immutable=1", uri=True)
    authorize(connection)
    yield connection
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "name", "source", "is_certain"),
    [
        ("SELECT count(*) FROM listings WHERE size > 1", "listings", "listings", True),
        ("SELECT * FROM Listings AS l", "listings", "listings", True),
        ("SELECT 1 FROM releases, listings b", "listings", "listings", True),
        (
            "SELECT release, count(*) FROM build_listings GROUP BY release",
            "listings",
            "build_listings",
            True,
        ),
        (
            "SELECT * FROM (SELECT * FROM build_listings ORDER BY size) LIMIT 3",
            "listings",
            "build_listings",
            True,
        ),
        (
            "SELECT name FROM packages WHERE id IN (SELECT spec_id FROM listings WHERE size = 1)",
            "listings",
            "listings",
            True,
        ),
        (
            "SELECT change, count(*) FROM release_changes GROUP BY change",
            "configuration_history",
            "release_changes",
            None,
        ),
    ],
)
def test_the_largest_table_is_found(
    conn: sqlite3.Connection, sql: str, name: str, source: str, is_certain: bool | None
) -> None:
    """By its name, an alias, a view or a subquery, with the number of its rows."""
    table = largest_whole_table(conn, sql, {})

    assert table is not None
    assert (table.name, table.source) == (name, source)
    # How SQLite joins a view is its own choice.
    assert is_certain is None or table.is_certain == is_certain
    assert conn.execute(f"SELECT count(*) FROM {name}").fetchone() == (table.row_count,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM listings WHERE release_id = 1",
        "SELECT * FROM build_listings WHERE release = 'v1'",
        "SELECT * FROM builds WHERE hash = 'a'",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
        "SELECT count(*) FROM stacks a, stacks b WHERE a.id = b.id AND 0",
        "SELECT name FROM pragma_table_info('listings')",
        "SELECT 1",
    ],
)
def test_a_statement_that_reads_no_large_table_has_none(
    conn: sqlite3.Connection, sql: str
) -> None:
    """Nor has one that reads only what a condition finds."""
    table = largest_whole_table(conn, sql, {})
    assert table is None or table.name == "stacks"


@pytest.mark.slow
@pytest.mark.parametrize("source", [*VIEWS, *(table.name for table in TABLES)])
def test_the_condition_leaves_the_table_out(
    conn: sqlite3.Connection, source: str
) -> None:
    """With the named condition, the statement does not read the table whole."""
    sql = f"SELECT * FROM {source}"
    table = largest_whole_table(conn, sql, {})
    condition = None if table is None else condition_on(conn, table)
    if table is None or condition is None:
        return
    assert table.source == source
    rest = largest_whole_table(conn, f"{sql} {condition.sql}", {})

    assert rest is None or rest.name != table.name


@pytest.mark.slow
def test_names_in_conditions_are_quoted(many_file: Path) -> None:
    """A name with a quotation mark is one value, in a condition on an id, too."""
    with (
        closing(sqlite3.connect(many_file)) as saved,
        closing(sqlite3.connect(":memory:")) as connection,
    ):
        saved.backup(connection)
        connection.execute("UPDATE releases SET name = 'a''b' WHERE position = 1")
        for source, column in (
            ("build_listings", "release"),
            ("listings", "release_id"),
        ):
            table = WholeTable("listings", LARGE, source, is_certain=True)
            condition = condition_on(connection, table)
            assert condition is not None
            assert condition.column == column
            rows = connection.execute(f"SELECT {column} FROM {source} {condition.sql}")
            assert set(rows) == {(condition.value,)}
