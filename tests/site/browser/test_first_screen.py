"""What stands on the first screen, in a wide window and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.serving import Server
from tests.site.browser.visitors import NARROW, WIDE, Visit

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_rows_begin_on_the_first_screen(
    browser: Browser, server: Server, size: dict[str, int]
) -> None:
    """Whoever opens a table or a list sees the first row of it without scrolling, and "Install"."""
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
        row = visit.page.locator("#configurations tbody tr:not(.machines)").first.bounding_box()
        places[f"{path}: row"] = row["y"] + 20 if row else None
    for path in ("/package/hdf5", "/find?q=hdf5+%2Bmpi", "/find?q=%2Bmpi"):
        visit.page.goto(path)
        link = visit.page.get_by_role("link", name="Install").first.bounding_box()
        links[path] = link is not None and link["x"] + link["width"] <= size["width"]
        if size is WIDE:
            places[path] = link["y"] if link else None
    visit.context.close()

    assert all(links.values()), links
    assert {path: y for path, y in places.items() if y is None or y + 20 > size["height"]} == {}
