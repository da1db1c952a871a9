"""Datasette's pages of SQL: what is wrong stands above the form, and what helps beside it."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tests.site.addresses import get
from tests.site.conftest import SQL

pytestmark = pytest.mark.slow


def rows_of(text: str) -> int:
    """Return how many rows the table on a page has."""
    return text.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>")


@pytest.mark.asyncio
async def test_a_canned_query_opens_with_form_and_rows(datasette: Any) -> None:
    """Its SQL is folded behind a link, its parameters are a form, its rows follow."""
    text = (await get(datasette, "/spack-cache/specs_of_package?package=zlib")).text

    assert "WITH chosen" not in text
    assert "_show_sql=1" in text
    assert re.search(r'name="package"[^>]*value="zlib"', text)
    assert rows_of(text) == 3
    assert "<th" in text and ">error</th>" not in text


@pytest.mark.asyncio
async def test_what_is_wrong_with_a_parameter_is_no_row(datasette: Any) -> None:
    """A sentence above the form says it; the data keeps it in its column."""
    path = "/spack-cache/specs_of_package"
    text = (await get(datasette, f"{path}?package=nothing")).text
    (row,) = (await get(datasette, f"{path}.json?package=nothing&_shape=array")).json()
    notice = re.search(r'<p class="notice" role="status">([^<]*)\.</p>', text)

    assert notice is not None
    assert notice[1].lower() in row["error"].replace("'", "&#39;").lower()
    assert text.index(notice[0]) < text.index('<form class="sql')
    assert rows_of(text) == 0


@pytest.mark.asyncio
async def test_the_next_page_of_a_query_is_told_above_it(many: Any) -> None:
    """All rows of the page are rows of the table; a link to the next stands above."""
    path = "/spack-cache/newest_versions"
    text = (await get(many, f"{path}?package=&page=1")).text
    link = re.search(r'Row 1000 of (\d+) is on <a href="([^"]*)">page 2</a>\.', text)

    assert link is not None
    assert rows_of(text) == 999
    following = (await get(many, path + html.unescape(link[2]))).text
    assert rows_of(following) == min(999, int(link[1]) - 999)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("sql", "close"),
    [
        ("select * from build", "builds"),
        ("select * from Builds_listing", "build_listings"),
        ("select packge from builds", "package"),
        ("select b.hsah from builds b", "hash"),
        ("select * from qqqqqqqq", None),
    ],
)
async def test_a_name_that_is_not_there_is_told_with_close_ones(
    datasette: Any, sql: str, close: str | None
) -> None:
    """A slip of the keyboard in a table or column is answered with what there is."""
    said = (await get(datasette, f"{SQL}.json?sql={sql.replace(' ', '+')}")).json()["error"]

    assert said.startswith("no such ")
    assert (re.search(rf"; close: .*\b{close}\b", said) is not None) == (close is not None)
