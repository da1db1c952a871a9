"""Every page can be read by eyes that need contrast: WCAG AA, 4.5 to 1, menus opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.site.cache import MPI, spec_hash
from tests.site.conftest import SQL, Server
from tests.site.visitors import NARROW, WIDE, Visit

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/package/hdf5?release=develop&variant=%2Bmpi",
    f"/spec/{spec_hash(MPI)}",
    "/spec/aaaaaaa",
    "/release/develop-2025-04-20",
    "/stack/e4s",
    "/find?q=hdf5+%2Bmpi",
    "/find?q=%22",
    "/package/nope",
    "/find?q=torc",
    "/packages?release=develop&has=zen9",
    "/about",
    "/cover",
    "/cover?q=hdf5%0Ahdf5%4099%0Ahdf5+%25%0Ahdf5+%5Empich&release=v0.23.1&host=zen3&stack=e4s",
    "/cover?q=spack%3A",
    "/spack-cache?_show_hidden=1",
    "/spack-cache/configurations?target=3&_where=id+%3E+0&_facet=platform&_facet=target",
    "/spack-cache/configurations?_search=nothing-has-this",
    "/spack-cache/configurations/1",
    "/spack-cache/builds",
    "/spack-cache/find_spec?spec=hdf5",
    f"{SQL}?sql=select+null+as+nothing",
    f"{SQL}?sql=select+*+from+releases+where+name+%3D+'x'+--+none",
    f"{SQL}?sql=select+wrong",
    "/-/versions",
    "/spack-cache/nothing-here",
)
"""One of each kind, ours and Datasette's."""
MENUS = (
    ".dropdown-menu-icon",
    "details.actions-menu-links > summary",
    ".choose-columns-mobile",
    ".column-actions-mobile",
)
"""What opens a menu or a dialog on Datasette's pages, of either version."""
OPEN = "document.querySelectorAll('.content details').forEach(each => each.open = true)"
COMPUTED = Path(__file__).with_name("pale.js").read_text(encoding="utf-8")
"""What is pale by its computed style: axe passes over what a style sheet writes, and over doubt."""


@pytest.fixture(
    params=[(size, scheme) for size in ("wide", "narrow") for scheme in ("light", "dark")],
    ids="-".join,
)
def visit(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visitor with a window of one width, who likes it light or dark."""
    size, scheme = request.param
    viewport = WIDE if size == "wide" else NARROW
    visitor = Visit(
        browser, server, viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
    )
    yield visitor
    visitor.context.close()


def axe_finds(page: Page) -> list[tuple[str, str]]:
    """Return what is hard to read to axe, on a page as it stands."""
    response = Axe().run(page, options={"runOnly": ["color-contrast"], "selectors": False}).response
    nodes = [node for rule in response["violations"] for node in rule["nodes"]]
    return [(node["any"][0]["message"][:160], node["html"][:100]) for node in nodes[:3]]


def with_menus_opened(page: Page) -> Iterator[str]:
    """Open one menu or dialog after the other; yield what opened it."""
    for selector in MENUS:
        found = page.locator(f"{selector} >> visible=true")
        # On a phone Datasette keeps the head of a table far outside of the window.
        box = found.first.bounding_box() if found.count() else None
        if box is not None and box["x"] >= 0:
            found.first.click()
            yield selector
            page.keyboard.press("Escape")


def test_every_page_has_contrast(visit: Visit) -> None:
    """No text is paler than 4.5 to 1, on our pages and Datasette's, with every menu opened."""
    page = visit.page
    found: list[Any] = []
    for path in PAGES:
        page.goto(path)
        page.evaluate(OPEN)
        found += [(path, *each) for each in (*page.evaluate(COMPUTED), *axe_finds(page))]
        for selector in with_menus_opened(page):
            found += [(path, selector, *each) for each in page.evaluate(COMPUTED)]

    assert found == [], "\n".join(map(str, found))
