"""What stands on the first screen, in a wide window and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.serving import Server
from tests.site.browser.visitors import NARROW, WIDE, Visit

pytestmark = pytest.mark.slow

HIGHEST_ROW = 450
"""Pixels above the first row of a package's page in a wide window."""


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_rows_begin_on_the_first_screen(
    browser: Browser, server: Server, size: dict[str, int]
) -> None:
    """Whoever opens a page sees the first row, or what to type, without scrolling."""
    visit = Visit(browser, server, viewport=size)
    places, links = {}, {}
    for path in (
        "/packages",
        "/spack-cache/configurations",
        "/spack-cache/builds",
        "/spack-cache/variant_values_of_package?package=hdf5",
    ):
        visit.page.goto(path)
        row = visit.page.locator("#rows tbody tr").first.bounding_box()
        places[path] = row["y"] if row else None
    for path in ("/package/hdf5", "/package/hdf5?release=develop&host=zen3&variant=%2Bmpi"):
        visit.page.goto(path)
        button = visit.page.get_by_role("button", name="Copy all").bounding_box()
        places[path] = button["y"] if button else None
        row = visit.page.locator("#configurations tbody tr").first.bounding_box()
        if size is WIDE:
            assert row is not None and row["y"] < HIGHEST_ROW
    for path in ("/find?q=hdf5+%2Bmpi", "/find?q=%2Bmpi"):
        visit.page.goto(path)
        button = visit.page.get_by_role("button", name="Copy").first.bounding_box()
        links[path] = button is not None and button["x"] + button["width"] <= size["width"]
        places[path] = button["y"] if button else None
    visit.context.close()

    assert all(links.values()), links
    assert {path: y for path, y in places.items() if y is None or y + 20 > size["height"]} == {}
