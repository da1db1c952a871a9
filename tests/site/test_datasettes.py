"""What keeps Datasette's event loop from answering others, and what is done about it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from threading import get_ident
from typing import Any

import pytest
from datasette.database import Database
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.middleware import LONGEST_SQL, MOST_PAGE_ROWS, without_comments
from tests.site.conftest import IS_065, SQL

COMMENTS = ("--x\n", " ", "\n", "/*x*/", "/* -- */", "-- /*\n")
STATEMENTS = ("select 1", "-1", "/", "*")
ENDLESS = [
    "/**/" + " " * 31_000 + "x",
    "/*" * 15_000,
    "/**/" * 7_000 + "x",
    "[" * 31_000,
    "'" * 30_999,
    "/**/--x\n" * 3_000,
    "\n" * 15_000 + "-" * 15_000,
]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ENDLESS, ids=lambda each: each[:9])
async def test_looking_at_sql_takes_little(datasette: Any, text: str) -> None:
    """No statement makes Datasette's look at it take a second of the event loop."""
    await datasette.client.get("/")
    began = time.thread_time()
    answers = [
        await datasette.client.get(SQL, params={"sql": text[:length]}, follow_redirects=True)
        for length in (LONGEST_SQL + 1, LONGEST_SQL)
    ]

    assert answers[0].status_code == 400
    assert time.thread_time() - began < 1


@given(st.lists(st.sampled_from(COMMENTS), max_size=9), st.sampled_from(STATEMENTS))
def test_a_statement_begins_behind_its_comments(comments: list[str], statement: str) -> None:
    """Comments and blanks before a statement are cut off, and nothing of it."""
    assert without_comments(f"{''.join(comments)}{statement}".encode()) == statement.encode()


@pytest.mark.asyncio
async def test_a_page_has_so_many_rows(many: Any) -> None:
    """A page of a table has at most 300 rows; its JSON has as many as are asked for."""
    page = await many.client.get("/spack-cache/builds?_size=max")
    data = await many.client.get("/spack-cache/builds.json?_size=max")

    assert page.text.count("<tr") - 1 == MOST_PAGE_ROWS
    assert len(data.json()["rows"]) == 1000


@pytest.mark.asyncio
async def test_every_page_says_its_language(datasette: Any) -> None:
    """Screen readers read pages of Datasette in English."""
    for path in ("/spack-cache", "/spack-cache/builds", "/"):
        assert '<html lang="en">' in (await datasette.client.get(path)).text


@pytest.mark.asyncio
async def test_names_are_not_compared_where_others_wait(
    datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names like one that does not exist are looked for in a process of the sandbox."""

    def refused(*_: object) -> None:
        raise AssertionError("names were compared on the event loop")

    monkeypatch.setattr("difflib.get_close_matches", refused)
    answer = await datasette.client.get("/package/hdf6")
    assert answer.status_code == 404 and "/package/hdf5" in answer.text


@pytest.mark.asyncio
async def test_a_page_shows_so_many_cells(datasette: Any) -> None:
    """As HTML a result is cut after ten thousand cells, and says so; as JSON it is whole."""
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)"
    sql = f"{numbers} SELECT {', '.join(['x'] * 20)} FROM n"
    page = await datasette.client.get(SQL, params={"sql": sql})
    data = await datasette.client.get(f"{SQL}.json", params={"sql": sql, "_shape": "arrays"})

    assert page.status_code == data.status_code == 200
    assert page.text.count("<td") == 10_000
    assert "more than 500 rows" in page.text or not IS_065
    assert len(data.json()["rows"]) == 1000


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_two_threads_meet_in_a_connection(
    datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of Datasette's connections is one thread's: in one that calls Python two wait for ever.

    A thread that runs a statement has the lock of the connection and needs Python's for a callback;
    one that sets a callback has Python's and needs that of the connection.
    """
    name = "execute_fn" if IS_065 else "_execute_fn"
    execute = getattr(Database, name)
    users: dict[sqlite3.Connection, set[int]] = defaultdict(set)

    async def noted(self: Any, function: Callable[[sqlite3.Connection], object]) -> object:
        def run(conn: sqlite3.Connection) -> object:
            users[conn].add(get_ident())
            return function(conn)

        return await execute(self, run)

    monkeypatch.setattr(Database, name, noted)
    await datasette.invoke_startup()
    paths = ("/spack-cache", "/spack-cache/packages", "/spack-cache/stacks.csv", "/packages")
    await asyncio.gather(*(datasette.client.get(path) for path in paths * 5))

    assert len({thread for each in users.values() for thread in each}) > 1
    assert {len(each) for each in users.values()} == {1}
