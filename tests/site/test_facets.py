"""Counts of values, which Datasette calls facets: each table and view that has rows has some."""

import sqlite3
from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db import schema
from tests.metadata import DATABASE

LISTS = {
    (view, "stacks")
    for view, sql in schema.VIEWS.items()
    for column in [" AS stacks"]
    if column in sql
}
"""The columns of views that are JSON lists."""

FACETS = [
    (table, column)
    for table, described in DATABASE["tables"].items()
    for column in described.get("facets", ())
]


async def counts(site: Any, table: str, column: str, kind: str = "_facet") -> dict[str, int]:
    """Return the counts that a page of a table has for the values of a column."""
    path = f"/spack-cache/{table}.json?{kind}={quote(column)}&_size=1&_shape=objects"
    response = await site.client.get(path)
    assert response.status_code == 200, response.text
    body = response.json()
    assert not body.get("facets_timed_out"), body
    results = body["facet_results"]
    found = results.get("results", results)[column]["results"]
    return {value["value"]: value["count"] for value in found}


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "column"), FACETS)
async def test_every_declared_facet_has_values(
    index_site: Any, datasette: Any, table: str, column: str
) -> None:
    """A facet of metadata.yml counts values in a database of an index, or of pages."""
    found = await counts(index_site, table, column) or await counts(datasette, table, column)
    assert all(found.values())
    is_filled = False
    for site in (index_site, datasette):
        with sqlite3.connect(site.get_database("spack-cache").path) as conn:
            sql = f'SELECT 1 FROM "{table}" LIMIT 1'
            is_filled |= conn.execute(sql).fetchone() is not None
    assert bool(found) == is_filled


@pytest.mark.asyncio
@pytest.mark.parametrize(("view", "column"), sorted(LISTS))
async def test_the_values_of_a_list_are_counted(datasette: Any, view: str, column: str) -> None:
    """`_facet_array` counts each stack as SQL does that reads the lists one by one."""
    found = await counts(datasette, view, column, "_facet_array")
    expected: dict[str, int] = {}
    with sqlite3.connect(datasette.get_database("spack-cache").path) as conn:
        rows = conn.execute(f'SELECT value FROM "{view}" CROSS JOIN json_each({column})').fetchall()
    for (value,) in rows:
        expected[value] = expected.get(value, 0) + 1
    assert found
    assert found == {value: expected[value] for value in found}
    assert len(found) >= min(len(expected), 30)


@pytest.mark.asyncio
@pytest.mark.parametrize("view", sorted(schema.VIEWS))
async def test_a_facet_of_the_first_text_of_a_view_has_values(index_site: Any, view: str) -> None:
    """No view that has rows is empty as soon as values are counted."""
    with sqlite3.connect(index_site.get_database("spack-cache").path) as conn:
        cursor = conn.execute(f'SELECT * FROM "{view}" LIMIT 1')
        column = cursor.description[0][0]
        is_filled = cursor.fetchone() is not None
    assert bool(await counts(index_site, view, column)) == is_filled
