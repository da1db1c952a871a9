"""Datasette's pages of SQL: what is wrong stands above the form, and what helps beside it."""

from __future__ import annotations

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
    text = (await get(datasette, "/spack-cache/variant_values_of_package?package=zlib")).text

    assert "FROM variant_counts" not in text
    assert "_show_sql=1" in text
    assert re.search(r'name="package"[^>]*value="zlib"', text)
    assert rows_of(text)
    assert "<th" in text


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
