"""Counts of values, which Datasette calls facets: each table and view that has rows has
some.
"""

import sqlite3
from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db.model import ROOT
from spack_cache_db.schema import views
from spack_cache_db.site.table_actions import STACK_LISTS
from tests.metadata import DATABASE

LISTS = {(view, "stacks") for view, sql in views.VIEWS.items() if " AS stacks" in sql}
"""The columns of views that are JSON lists."""

FACETS = [
    (table, column)
    for table, described in DATABASE["tables"].items()
    for column in described.get("facets", ())
]


async def counts(
    site: Any, table: str, column: str, kind: str = "_facet"
) -> dict[str, int]:
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
    found = await counts(index_site, table, column) or await counts(
        datasette, table, column
    )
    assert all(found.values())

    is_filled = False
    for site in (index_site, datasette):
        with sqlite3.connect(site.get_database("spack-cache").path) as conn:
            sql = f'SELECT 1 FROM "{table}" LIMIT 1'
            is_filled |= conn.execute(sql).fetchone() is not None
    assert bool(found) == is_filled


@pytest.mark.asyncio
@pytest.mark.parametrize(("view", "column"), sorted(LISTS))
async def test_the_values_of_a_list_are_counted(
    datasette: Any, view: str, column: str
) -> None:
    """`_facet_array` counts each stack as SQL does that reads the lists one by one."""
    found = await counts(datasette, view, column, "_facet_array")
    expected: dict[str, int] = {}
    with sqlite3.connect(datasette.get_database("spack-cache").path) as conn:
        rows = conn.execute(
            f'SELECT value FROM "{view}" CROSS JOIN json_each({column})'
        ).fetchall()
    for (value,) in rows:
        expected[value] = expected.get(value, 0) + 1

    assert found
    assert found == {value: expected[value] for value in found}
    assert len(found) >= min(len(expected), 30)


@pytest.mark.asyncio
@pytest.mark.parametrize(("view", "column"), sorted(STACK_LISTS.items()))
async def test_stacks_are_counted_with_links_to_their_rows(
    datasette: Any, view: str, column: str
) -> None:
    """`_facet_stack` counts as `_facet_array` does, without root; each link has as many
    rows.
    """
    expected = await counts(datasette, view, column, "_facet_array")
    expected.pop(ROOT, None)
    path = f"/spack-cache/{view}.json?_facet_stack={column}&_size=0"
    body = (await datasette.client.get(path)).json()
    results = body["facet_results"]
    (facet,) = results.get("results", results).values()

    assert {value["value"]: value["count"] for value in facet["results"]} == expected
    assert "e4s" in expected
    for value in facet["results"]:
        assert value["label"] == value["value"]
        chosen = value["toggle_url"].removeprefix("http://localhost")
        chosen = chosen.replace("_size=0", "_size=max&_shape=array")
        rows = (await datasette.client.get(chosen)).json()
        assert len(rows) == value["count"], value


@pytest.mark.asyncio
async def test_a_chosen_stack_can_be_given_up(datasette: Any) -> None:
    """The link of a chosen stack leads back to all rows; so does the cross of the
    facet.
    """
    path = "/spack-cache/builds.json?_facet_stack=stacks&stacks__arraycontains=e4s"
    results = (await datasette.client.get(path)).json()["facet_results"]
    (facet,) = results.get("results", results).values()
    chosen = [value for value in facet["results"] if value["selected"]]

    assert [value["value"] for value in chosen] == ["e4s"]
    assert chosen[0]["toggle_url"].endswith("builds.json?_facet_stack=stacks")
    assert facet["toggle_url"].endswith("builds.json?stacks__arraycontains=e4s")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "address", ["stack_sets.json?_facet_stack=stacks", "builds.json?_facet_stack=os"]
)
async def test_columns_without_lists_of_stacks_are_refused(
    datasette: Any, address: str
) -> None:
    """The message names the columns that have them."""
    answer = await datasette.client.get(f"/spack-cache/{address}")

    assert answer.status_code == 400
    assert "builds.stacks" in answer.json()["error"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("configurations", False),
        ("configurations?compiler_id=1", False),
        ("configurations?_facet_size=max", True),
        ("configurations?_facet=platform_id", True),
        ("builds?_facet_stack=stacks", True),
    ],
)
async def test_counts_are_open_if_the_address_asks_for_them(
    datasette: Any, address: str, is_open: bool
) -> None:
    """Those that every page of a table has are folded, because the rows matter more."""
    text = (await datasette.client.get(f"/spack-cache/{address}")).text

    assert ('<details class="facets" open>' in text) is is_open
    assert ('<details class="facets">' in text) is not is_open


@pytest.mark.asyncio
@pytest.mark.parametrize("view", sorted(views.VIEWS))
async def test_a_facet_of_the_first_text_of_a_view_has_values(
    index_site: Any, view: str
) -> None:
    """No view that has rows is empty as soon as values are counted."""
    with sqlite3.connect(index_site.get_database("spack-cache").path) as conn:
        cursor = conn.execute(f'SELECT * FROM "{view}" LIMIT 1')
        column = cursor.description[0][0]
        is_filled = cursor.fetchone() is not None
    assert bool(await counts(index_site, view, column)) == is_filled
