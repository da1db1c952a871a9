"""What SQL may use, the limits of a statement, and our functions in it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import escape_fts as datasettes_escape_fts
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.answers.spec_functions import MOST_KEPT
from spack_cache_db.schema.full_text import FULL_TEXT
from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.sql.functions import register
from spack_cache_db.site.sql.statements import (
    FUNCTIONS,
    PRAGMAS,
    RESULT_BYTES,
    RESULT_CELLS,
    TOO_MUCH,
    authorize,
    escape_fts,
    run_part,
    run_statement,
    time_limit,
)


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
    assert have - FUNCTIONS <= {
        *(
            "changes",
            "fts3_tokenizer",
            "fts5",
            "fts5_source_id",
            "last_insert_rowid",
            "matchinfo",
        ),
        *(
            "load_extension",
            "offsets",
            "optimize",
            "rtreecheck",
            "rtreedepth",
            "rtreenode",
        ),
        *(
            "sqlite_compileoption_get",
            "sqlite_compileoption_used",
            "sqlite_log",
            "subtype",
        ),
        "total_changes",
    }
    assert "database_list" not in PRAGMAS


NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    """A connection without data."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT zeroblob({RESULT_BYTES // 2 + 1}), zeroblob({RESULT_BYTES // 2})",
        NUMBERS.format(f" LIMIT {RESULT_CELLS // 100 + 1}")
        + f"SELECT x{', x' * 99} FROM n",
        f"{NUMBERS.format('')} SELECT x AS [{'y' * 100_000}] FROM n LIMIT 50",
        f"SELECT replace(hex(zeroblob({RESULT_BYTES // 3 + 1})), '00', 'é')",
    ],
)
def test_a_large_result_is_refused(empty: sqlite3.Connection, sql: str) -> None:
    """Bytes, cells, names that each row repeats, and text that JSON makes longer are
    counted.
    """
    with pytest.raises(sqlite3.OperationalError) as caught:
        run_statement(empty, sql, {}, None)

    assert caught.value.args == (TOO_MUCH,)


SORTED = "SELECT x, x % 7 AS y FROM n ORDER BY y, x"
PARTS = st.tuples(
    st.sampled_from(
        [
            f"{NUMBERS.format(' LIMIT :most')}{each}"
            for each in (SORTED, "SELECT x FROM n")
        ]
    ),
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(1, 12),
)


@given(st.lists(PARTS, max_size=12))
def test_parts_are_those_of_the_statement(
    parts: list[tuple[str, int, int, int]],
) -> None:
    """Whatever was asked before, a part has the rows that `LIMIT` and `OFFSET` give."""
    connection = sqlite3.connect(":memory:")
    for sql, first, count, most in parts:
        params = {"most": most}
        # A stream: each part begins with the last row of the one before.
        for place in range(first, first + 3 * count, max(count - 1, 1)):
            found = run_part(
                connection, f"{sql} limit {count} offset {place}", params, None
            )
            whole = run_statement(
                connection, f"{sql} LIMIT {count} OFFSET {place}", params, None
            )
            assert found == whole
    connection.close()


def test_a_part_that_was_ended_begins_anew(empty: sqlite3.Connection) -> None:
    """A statement that ran out of time in the middle gives its part when it is asked
    again.
    """
    sql = f"{NUMBERS.format(' LIMIT 100000')}SELECT x FROM n WHERE x < 5 OR x = 50000 OR x > 99000"
    later = f"{sql} limit 3 offset 3"
    assert run_part(empty, f"{sql} limit 4", {}, None).rows == [(1,), (2,), (3,), (4,)]
    with (
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
        time_limit(empty, 0),
    ):
        run_part(empty, later, {}, None)
    assert run_part(empty, later, {}, None).rows == [(4,), (50000,), (99001,)]


@given(st.text(alphabet='ab" \t\n', max_size=12))
def test_searches_are_quoted_as_datasette_does(text: str) -> None:
    """The SQL function `escape_fts` is Datasette's; without a word, it is the empty
    phrase.
    """
    assert escape_fts(text) == (datasettes_escape_fts(text) or '""')


ASK = "SELECT spec_match(:spec, :hash), spec_match(:spec, 1), spec_error(:spec)"
ZLIB = "ddddddd" + "e" * 25


@pytest.fixture(scope="module")
def sql(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the invented cache with the functions."""
    connection = sqlite3.connect(database)
    register(connection)
    yield connection
    connection.close()


def ask(sql: sqlite3.Connection, spec: Any, dag_hash: Any = ZLIB) -> tuple[Any, ...]:
    """Ask of a hash, of a configuration, and what is wrong."""
    row: tuple[Any, ...] = sql.execute(ASK, {"spec": spec, "hash": dag_hash}).fetchone()
    return row


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("zlib@@", "\n      ^\n"),
        ("", "expected a package name"),
        ("zlib ^hdf5", "no dependency data"),
        ("x" * 5000, "at most 2000 characters"),
        (b"\xff", "cannot read"),
        (15, None),
    ],
)
def test_errors_are_texts(
    sql: sqlite3.Connection, spec: Any, reason: str | None
) -> None:
    """What cannot be answered is NULL, and spec_error says why."""
    *matched, error = ask(sql, spec)

    if reason is None:
        assert error is None
    else:
        assert reason in error
        assert matched == [None, None]


def test_null_is_null(sql: sqlite3.Connection) -> None:
    """NULL gives NULL, as in SQLite's own functions."""
    assert ask(sql, None) == (None, None, None)
    assert ask(sql, "zlib", None)[0] is None
    assert ask(sql, "zlib", 1.5)[0] is None


def test_the_time_limit_holds(sql: sqlite3.Connection) -> None:
    """A statement that asks ever new queries ends when its time is over."""
    endless = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT count(spec_match('@' || replace(hex(zeroblob(40)), '00', '1:2,') || i, 1))
        FROM n
    """
    looks = iter(range(1000))
    sql.set_progress_handler(lambda: next(looks) >= 20, 1000)
    try:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            sql.execute(endless).fetchall()
    finally:
        sql.set_progress_handler(None, 0)

    assert next(looks) < 1000


def test_many_queries_in_one_statement(sql: sqlite3.Connection) -> None:
    """More queries than are kept are answered all the same."""
    specs = [f"hdf5@{major}:" for major in range(MOST_KEPT * 3)]
    asked = " UNION ALL ".join("SELECT spec_match(?, 1)" for _ in specs)

    assert len(sql.execute(asked, specs).fetchall()) == len(specs)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_asking_for_the_versions_takes_no_memory(datasette: Any) -> None:
    """Datasette opens a connection for it each time, which must be let go again."""
    taken = []
    for _ in range(3):
        for _ in range(50):
            assert (await datasette.client.get("/-/versions.json")).status_code == 200
        taken.append(
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        )
    pages = (10 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert taken[2] - taken[1] < pages
