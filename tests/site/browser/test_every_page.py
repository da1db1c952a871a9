"""Every page can be read by everyone: with contrast, read aloud, on a desk and on a
phone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

from tests.site.addresses import DATASETTES
from tests.site.browser.visitors import WIDE, Visit
from tests.site.cache import MPI, spec_hash
from tests.site.conftest import SQL

pytestmark = pytest.mark.slow

OWN = (
    "/",
    "/package/hdf5",
    "/package/hostile",
    f"/spec/{spec_hash(MPI)}",
    "/release/develop-2025-04-20",
    "/stack/e4s",
    "/diff",
    "/diff/v0.23.1...develop?package=hdf5",
    "/coverage/develop?by=stack&reference=v0.23.1",
    "/find?q=hdf5+%2Bmpi",
    "/find?q=hdf5@99+%2Bmpi",
    "/find?q=hdf5+torch+arm+nothing",
    "/find?q=%25gcc&host=zen3",
    "/dependents?q=hdf5",
    "/packages",
    "/about",
    "/cover",
    "/cover?q=hdf5+%2Bmpi%0Ahdf5@99+target=zen4%0Ahdf6%0Ahdf5+%25gcc+os=rhel8",
)
OTHERS = (
    *DATASETTES[::2],
    "/spack-cache?_show_hidden=1",
    "/spack-cache/configurations?target_id=3&_where=id+%3E+0&_facet=platform_id&_facet=target_id",
    f"{SQL}?sql=select+null+as+none",
    f"{SQL}?sql=select+*+from+releases+where+name+%3D+'x'+--+none",
)
WRONG = ("/package/nope", "/spack-cache/nothing-here", f"{SQL}?sql=select+wrong")
"""Pages that say what is wrong, which a browser tells in its console."""
MENUS = (
    ".dropdown-menu-icon",
    "details.actions-menu-links > summary",
    ".choose-columns-mobile",
    ".column-actions-mobile",
)
"""What opens a menu or a dialog on Datasette's pages, of either version."""
OPEN = "document.querySelectorAll('.content details').forEach(each => each.open = true)"
WIDE_TABLES = """[...document.querySelectorAll('table, .command, .totals div')].filter(each =>
  each.getBoundingClientRect().right > innerWidth || each.scrollWidth > each.clientWidth + 1
).map(each => each.outerHTML.slice(0, 120))"""
"""Tables, commands and numbers that are cut off, or scrolled in a frame of their
own.
"""
COMPUTED = Path(__file__).with_name("pale.js").read_text(encoding="utf-8")
"""What is pale by its computed style: axe passes over what a style sheet writes, and
over doubt.
"""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AXE = Axe()
REPORT = {"selectors": False, "resultTypes": ["violations"]}
# WCAG 2.2, 2.5.8, which axe leaves out by default.
TARGETS = {"target-size": {"enabled": True}}
# Contrast takes most of the time of axe, and does not depend on the window.
ALL_RULES = {**REPORT, "rules": TARGETS}
WITHOUT_CONTRAST = {
    **REPORT,
    "rules": {**TARGETS, "color-contrast": {"enabled": False}},
}
OF_COLOURS = {
    **REPORT,
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}

SIZES: tuple[ViewportSize, ...] = (WIDE, {"width": 320, "height": 568})
"""A desk and a phone."""
STILL = pytest.mark.parametrize(
    "visit", [{"viewport": WIDE, "reduced_motion": "reduce"}], indirect=True
)
"""Without motion: a colour on its way to another is neither."""


def axe_finds(page: Page, options: Any = ALL_RULES) -> list[tuple[Any, ...]]:
    """Return what axe finds, on a page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.axe_script)
    run = "async options => (await axe.run(document, options)).violations"
    found = []
    for violation in page.evaluate(run, options):
        elements = [node["html"][:120] for node in violation["nodes"][:3]]
        found.append((violation["id"], elements))
    return found


def axe_finds_on(page: Page, size: ViewportSize) -> Iterator[tuple[Any, ...]]:
    """Yield what axe finds in a window of a size: on a desk the contrast of each colour
    scheme, too.
    """
    page.emulate_media(color_scheme="light")
    if size != WIDE:
        yield from axe_finds(page, WITHOUT_CONTRAST)
        return
    yield from axe_finds(page)
    page.emulate_media(color_scheme="dark")
    yield from axe_finds(page, OF_COLOURS)


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


def pale_in(page: Page) -> Iterator[tuple[Any, ...]]:
    """Yield what is pale in each colour scheme, on a page as it stands."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for each in page.evaluate(COMPUTED):
            yield "pale", scheme, *each


def faults_of(visit: Visit, path: str) -> Iterator[tuple[Any, ...]]:
    """Open a page; yield what sticks out, what is pale, and what axe finds on our own
    pages.
    """
    page = visit.page
    is_own = path not in (*OTHERS, *WRONG)
    page.set_viewport_size(WIDE)
    page.goto(path)
    # Widths are those of the page as it comes, before anything is unfolded.
    for size in SIZES:
        page.set_viewport_size(size)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > size[
            "width"
        ]:
            yield path, size, "sticks out", width
        if is_own and (wide := page.evaluate(WIDE_TABLES)):
            yield path, size, "tables stick out", wide
    for size in SIZES:
        page.set_viewport_size(size)
        if not is_own:
            # Datasette 1.0 leaves a menu open above others.
            page.goto(path)
        page.evaluate(OPEN)
        for each in pale_in(page):
            yield path, size, *each
        if is_own:
            for each in axe_finds_on(page, size):
                yield path, size, "axe", *each
        for selector in with_menus_opened(page):
            for each in pale_in(page):
                yield path, size, selector, *each


@STILL
def test_everyone_can_read_it(visit: Visit) -> None:
    """No page sticks out, axe finds nothing on it, and no text has less than 4.5 to
    1.
    """
    found = [fault for path in OWN for fault in faults_of(visit, path)]
    assert found == [], "\n".join(map(str, found))


@STILL
def test_everyone_can_read_datasettes_pages(visit: Visit) -> None:
    """None sticks out, and no text has less than 4.5 to 1, with every menu opened."""
    found = [fault for path in OTHERS for fault in faults_of(visit, path)]
    assert found == [], "\n".join(map(str, found))


@STILL
def test_everyone_can_read_what_is_wrong(visit: Visit) -> None:
    """The same of pages that are errors."""
    found = [fault for path in WRONG for fault in faults_of(visit, path)]
    visit.faults.clear()
    assert found == [], "\n".join(map(str, found))
