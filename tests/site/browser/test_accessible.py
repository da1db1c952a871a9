"""The site in a real browser for everyone: with a keyboard alone, while it loads,
printed.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.site.browser.visitors import WIDE, Visit
from tests.site.cache import MPI, spec_hash

pytestmark = pytest.mark.slow


def press_until(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"Tab never reaches {selector}")


def test_keyboard_alone_is_enough(visit: Visit) -> None:
    """Search, filter and open a spec without a mouse."""
    page = visit.page
    page.goto("/")
    press_until(page, "#q")
    page.keyboard.type("hdf5")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visit.server.address}/package/hdf5")

    press_until(page, "select[name=target]")
    page.keyboard.type("zen")
    expect(page.locator("#configurations-heading")).to_contain_text(
        "1 configuration 1 binary"
    )

    press_until(page, ".builds td.actions a.hash")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("hdf5@1.14.10")


def test_skip_link_leads_to_the_content(visit: Visit) -> None:
    """The first Tab offers to skip the bar at the top, and does."""
    visit.page.goto("/package/hdf5")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")

    assert visit.page.evaluate("document.activeElement.id") == "main"


def test_nothing_moves_when_scripts_come(visit: Visit) -> None:
    """Buttons that only scripts bring have their place before: what is read stays where
    it is.
    """
    page = visit.page
    script = "**/static/site.js*"

    for path in (
        "/",
        "/package/hdf5",
        f"/spec/{spec_hash(MPI)}",
        "/release/develop-2025-04-20",
    ):
        page.route(
            script, lambda route: route.fulfill(body="", content_type="text/javascript")
        )
        page.goto(path)
        without = places(page)
        page.unroute(script)
        page.add_script_tag(
            url=page.locator("script[src*='site.js']").evaluate("each => each.src")
        )
        assert places(page) == without, path


def places(page: Page) -> list[list[object]]:
    """Name, left and top edge, width and height in pixels of each element of the page's
    body.
    """
    boxes: list[list[object]] = page.evaluate(
        """() => [...document.body.querySelectorAll("*")].map((each) => {
          const box = each.getBoundingClientRect();
          return [each.tagName, box.x, box.y, box.width, box.height];
        })"""
    )
    return boxes


@pytest.mark.parametrize(
    "visit", [{"viewport": WIDE, "color_scheme": "dark"}], indirect=True
)
def test_paper_is_white(visit: Visit) -> None:
    """On paper there is the content alone, dark on white, with what was folded."""
    for path in (
        f"/spec/{spec_hash(MPI)}",
        "/package/hdf5",
        "/spack-cache/configurations",
    ):
        visit.page.goto(path)
        visit.page.emulate_media(media="print", color_scheme="dark")
        expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
        expect(visit.page.locator(".site-bar")).to_be_hidden()
        expect(visit.page.locator("footer")).to_be_hidden()
        assert visit.page.evaluate(
            "getComputedStyle(document.body).backgroundColor"
        ) == ("rgb(255, 255, 255)")
        assert (
            visit.page.evaluate("getComputedStyle(document.body).color")
            == "rgb(24, 32, 46)"
        )
