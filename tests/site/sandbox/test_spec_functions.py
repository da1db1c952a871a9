"""Spack's spec syntax in SQL, and its canned query."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from spack_cache_db.site.sandbox.sql_functions import MOST_KEPT, register
from tests.indexes import hash_of
from tests.site.conftest import SQL, site
from tests.small_sources import LOOK_ALIKES, built

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
    ("spec", "matched"),
    [
        ("zlib@1.3: +shared", 1),
        ("zlib ~shared", 0),
        (f"/{ZLIB[:9]}", 1),
        ("zlib/aaaaaaa", 0),
        ("hdf5", 0),
        ("nothing-here", 0),
    ],
)
def test_a_spec_is_matched(sql: sqlite3.Connection, spec: str, matched: int) -> None:
    """A hash satisfies the query or does not; a hash in the query counts as well."""
    assert ask(sql, spec)[::2] == (matched, None)


def test_no_spec_has_an_unknown_hash(sql: sqlite3.Connection) -> None:
    """A hash that the file does not have satisfies nothing."""
    assert ask(sql, "*", "z" * 32)[0] == 0


def test_hashes_and_configurations_agree(sql: sqlite3.Connection) -> None:
    """The configurations of a query are those of the specs that match it, one by one."""
    by_spec = "SELECT count(*) FROM specs WHERE spec_match('hdf5 +mpi', hash)"
    by_id = """
        SELECT count(*) FROM specs
        WHERE configuration IN (SELECT id FROM configurations WHERE spec_match('hdf5 +mpi', id))
    """

    counts = [sql.execute(each).fetchone()[0] for each in (by_spec, by_id)]

    assert counts == [11, 11]


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
def test_errors_are_texts(sql: sqlite3.Connection, spec: Any, reason: str | None) -> None:
    """What cannot be answered is NULL, and spec_error says why."""
    *matched, error = ask(sql, spec)

    if reason is None:
        assert error is None
    else:
        assert reason in error
        assert matched == [None, None]


@pytest.mark.parametrize("number", [0, -1, 10**9, 2**62])
def test_no_configuration_has_an_unknown_id(sql: sqlite3.Connection, number: int) -> None:
    """An id that the file does not have satisfies nothing."""
    assert ask(sql, "*", number)[0] == 0


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


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("spec", "rows", "version"),
    [
        ("", 14, "1.14.10"),
        ("hdf5@1.14: +mpi target=:zen3", 8, "1.14.10"),
        ("/ddddddd", 1, "1.3.1"),
    ],
)
async def test_the_canned_query(datasette: Any, spec: str, rows: int, version: str) -> None:
    """The query find_spec gives the specs, newest version first."""
    address = "/spack-cache/find_spec.json?" + urlencode({"_shape": "array", "spec": spec})
    found = (await datasette.client.get(address)).json()

    assert len(found) == rows
    assert all(row["error"] is None for row in found)
    assert found[0]["version"] == version


@pytest.mark.asyncio
async def test_the_canned_query_says_what_is_wrong(datasette: Any) -> None:
    """A bad spec is one row with the reason, on the page and in JSON."""
    address = "/spack-cache/find_spec.json?" + urlencode({"_shape": "array", "spec": "hdf5 ^mpi"})
    (row,) = (await datasette.client.get(address)).json()
    page = await datasette.client.get("/spack-cache/find_spec?spec=hdf5@@")

    assert "no dependency data" in row["error"]
    assert page.status_code == 200
    assert "unexpected" in page.text


@pytest.mark.asyncio
async def test_the_search_page_says_what_is_wrong(datasette: Any) -> None:
    """The search page shows the parser's message, its caret included, as text."""
    answer = await datasette.client.get("/find?" + urlencode({"q": "hdf5 <b>@"}))

    assert answer.status_code == 200
    assert "     ^\n" in answer.text
    assert "<b>@" not in answer.text


@pytest.mark.slow
@pytest.mark.asyncio
async def test_asking_for_the_versions_takes_no_memory(datasette: Any) -> None:
    """Datasette opens a connection for it each time, which must be let go again."""
    taken = []
    for _ in range(3):
        for _ in range(100):
            assert (await datasette.client.get("/-/versions.json")).status_code == 200
        taken.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]))
    pages = (10 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert taken[2] - taken[1] < pages


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site over indexes in which two specs look alike, and pages."""
    return site(built(LOOK_ALIKES, tmp_path_factory.mktemp("mixed")))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("app ^mpich", ["one"]),
        ("app ^mpi=openmpi", ["two"]),
        ("^hwloc", ["two", "openmpi"]),
        ("app ^mpich ^hwloc", []),
        ("app ++x %[deptypes=link] mpich", ["one"]),
    ],
)
async def test_dependencies_on_the_site(mixed: Any, spec: str, names: list[str]) -> None:
    """SQL, the canned query and the search give the specs that have them, of several alike."""
    expected = sorted(map(hash_of, names))
    by_hash = f"{SQL}.json?" + urlencode(
        {
            "sql": "SELECT hash FROM builds WHERE spec_match(:spec, hash)",
            "spec": spec,
            "_shape": "array",
        }
    )
    canned = "/spack-cache/find_spec.json?" + urlencode({"_shape": "array", "spec": spec})
    for address in (by_hash, canned):
        rows = (await mixed.client.get(address)).json()
        assert sorted(row["hash"] for row in rows if row["hash"]) == expected
    answer = await mixed.client.get("/find.json?" + urlencode({"q": spec}))
    found = answer.json() if answer.status_code == 200 else []
    assert (sum(row["spec_count"] for row in found), answer.status_code == 404) == (
        len(names),
        not names,
    )


@pytest.mark.asyncio
async def test_the_search_page_tells_what_it_leaves_out(mixed: Any) -> None:
    """A spec that pages alone tell of is counted in a note."""
    answer = await mixed.client.get("/find?" + urlencode({"q": "app ^mpich"}))

    assert answer.status_code == 200
    assert "1 more spec may satisfy this, but nothing in this file shows it." in answer.text
    assert hash_of("one")[:7] in answer.text
    assert hash_of("two")[:7] not in answer.text
