"""What keeps Datasette's event loop from answering others, and what is done about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.site.middleware import LONGEST_SQL, without_comments
from spack_cache_db.site.sandbox.statements import PAGE_ROWS
from tests.site.conftest import IS_065, SQL, metadata, site

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
    assert without_comments(f"{''.join(comments)}{statement}") == statement


@pytest.mark.asyncio
async def test_a_page_has_so_many_rows(many: Any) -> None:
    """A page of a table has at most 300 rows; its JSON has as many as are asked for."""
    page = await many.client.get("/spack-cache/builds?_size=max")
    data = await many.client.get("/spack-cache/builds.json?_size=max")

    assert page.text.count("<tr") - 1 == PAGE_ROWS
    assert len(data.json()["rows"]) == 1000


@pytest.mark.asyncio
@pytest.mark.parametrize(("columns", "rows"), [(2, 300), (20, 200), (3, 20)])
async def test_a_page_shows_few_cells(datasette: Any, columns: int, rows: int) -> None:
    """As HTML a result has at most 300 rows and 4,000 cells, and says if it is cut; not as JSON."""
    count = 1000 if rows > 20 else rows
    numbers = f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {count})"
    sql = f"{numbers} SELECT {', '.join(['x'] * columns)} FROM n"
    page = await datasette.client.get(SQL, params={"sql": sql})
    data = await datasette.client.get(f"{SQL}.json", params={"sql": sql, "_shape": "arrays"})

    assert page.status_code == data.status_code == 200
    assert page.text.count("<td") == columns * rows
    assert f"{'more than ' if rows < count else ''}{rows} rows" in page.text or not IS_065
    assert len(data.json()["rows"]) == count


@pytest.mark.asyncio
async def test_a_query_without_fields_shows_few_rows(database: Path) -> None:
    """A canned query whose address has no query string is cut as well."""
    described = metadata()
    sql = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 900) SELECT x FROM n"
    )
    described["databases"]["spack-cache"]["queries"]["many"] = {"sql": sql}
    served = site(database, described if IS_065 else None, config=described)
    page = await served.client.get("/spack-cache/many")
    data = await served.client.get("/spack-cache/many.json?_shape=array")

    assert page.text.count("<td") == PAGE_ROWS
    assert len(data.json()) == 900
