"""Numbers in the results of SQL are amounts for people, unless they are names."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from markupsafe import Markup

from spack_cache_db.site.sql.numbers import BAR_WIDTH, readable_rows
from tests.site.addresses import get

BAR = r'<rect[^>]* width="([^"]*)"'


def readable(columns: list[str], rows: list[list[Any]]) -> list[list[object]]:
    """Return the cells of a result whose values are shown as texts."""
    texts = [list(map(str, row)) for row in rows]
    return readable_rows(columns, rows, texts)


def widths(rows: list[list[object]]) -> list[float]:
    """Return the lengths of the bars in the last column."""
    last_cells = "".join(str(row[-1]) for row in rows)
    return [float(width) for width in re.findall(BAR, last_cells)]


def test_the_last_numbers_have_bars() -> None:
    """In proportion to the largest; other numbers have separators alone."""
    rows = readable(["name", "size", "count"], [["a", 12345, 40], ["b", 1, 10]])

    assert rows[0][:2] == ["a", Markup('<span class="number">12,345</span>')]
    assert widths(rows) == [BAR_WIDTH, BAR_WIDTH / 4]


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (["id", "package_id", "ROWID", "year"], [1234, 5678, 9012, 2026]),
        (["mixed"], ["1234"]),
        (["empty"], [None]),
        (["bytes"], [b"1"]),
    ],
)
def test_what_is_no_amount_stays(columns: list[str], row: list[Any]) -> None:
    """Ids and texts, also those with digits alone."""
    texts = [str(value) for value in row]
    assert readable(columns, [row, row]) == [texts, texts]


def test_numbers_without_a_length_have_no_bar() -> None:
    """A single one, negative ones, zeros and infinity."""
    for values in ([5], [-1, 5], [0, 0], [float("inf"), 1.5]):
        rows = readable(["n"], [[value] for value in values])
        assert widths(rows) == []
    assert "2.5" in str(readable(["n"], [[2.5], [None]])[0][0])


@pytest.mark.asyncio
async def test_results_of_queries_have_them(datasette: Any) -> None:
    """On the page alone; the JSON has plain numbers."""
    sql = "SELECT name, spec_count * 1000 AS n FROM packages ORDER BY 2 DESC"
    query = urlencode({"sql": sql})
    page = await get(datasette, f"/spack-cache?{query}")
    rows = await get(datasette, f"/spack-cache.json?{query}&_shape=arrays")

    assert page.status_code == 200
    assert '<span class="number">' in page.text and "<rect" in page.text
    largest = rows.json()["rows"][0][1]
    assert f"{largest:,} <svg" in page.text
