"""Counts of views that are told and not counted."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.site.datasette065 import ROWS_OF
from tests.site.conftest import site


@pytest.mark.parametrize(("view", "table"), ROWS_OF.items())
def test_a_view_has_as_many_rows_as_its_table(
    view: str, table: str, conn: sqlite3.Connection
) -> None:
    """What is told is what counting would find."""
    counts = [conn.execute(f"SELECT count(*) FROM {name}").fetchone() for name in (view, table)]
    assert counts[0] == counts[1]


@pytest.mark.asyncio
@pytest.mark.parametrize("view", ROWS_OF)
async def test_a_view_is_not_counted(
    view: str, database: Path, conn: sqlite3.Connection, asked: list[str]
) -> None:
    """Its page says how many rows there are, without a query that counts them."""
    answer = await site(database).client.get(f"/spack-cache/{view}.json")
    expected = conn.execute(f"SELECT count(*) FROM {view}").fetchone()
    assert [answer.json()["filtered_table_rows_count"]] == [*expected]
    assert not [sql for sql in asked if f"count(*) from {view}" in sql]


@pytest.mark.asyncio
async def test_a_view_stays_a_view(datasette: Any) -> None:
    """The page of the database lists it among the views only."""
    found = (await datasette.client.get("/spack-cache.json")).json()
    assert not {table["name"] for table in found["tables"]} & {*ROWS_OF}
    assert {view["name"] for view in found["views"]} >= {*ROWS_OF}
