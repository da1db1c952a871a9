"""What keeps Datasette's event loop from answering others, and what is done about it."""

from __future__ import annotations

import time
from typing import Any

import pytest
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
