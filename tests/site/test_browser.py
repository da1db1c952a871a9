"""The site in a real browser: the ways people go through it, and what must never happen there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.chromium import FLAGS
from tests.site.addresses import DATASETTES
from tests.site.cache import HOSTILE, MPI, spec_hash
from tests.site.conftest import Server

pytestmark = pytest.mark.slow

WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}
OWN = (
    "/",
    "/package/hdf5",
    "/package/hdf5?target=zen3",
    f"/spec/{spec_hash(MPI)}",
    "/spec/aaaaaaa",
    "/release/develop-2025-04-20",
    "/stack/e4s",
    "/find?q=hdf5+%2Bmpi",
    "/find?q=hdf5@99+%2Bmpi",
    "/cover?q=hdf5+%2Bmpi%0Ahdf5@99+target=zen4%0Ahdf6%0Ahdf5+%25gcc+os=rhel8",
    "/package/hostile",
)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


class Visit:
    """One visitor's browser window, and what went wrong in it."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.faults: list[str] = []
        self.context: BrowserContext = browser.new_context(base_url=server.address, **options)
        self.context.set_default_timeout(15_000)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.server.address, "data:")):
            self.faults.append(f"request to {request.url}")


@pytest.fixture
def visit(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visitor who leaves without having met an error or another host."""
    options: dict[str, Any] = getattr(request, "param", {"viewport": WIDE})
    visitor = Visit(browser, server, **options)
    yield visitor
    visitor.context.close()
    assert visitor.faults == []


VISITORS = pytest.mark.parametrize(
    "visit",
    [
        pytest.param({"viewport": size, "java_script_enabled": script}, id=f"{name}-{word}")
        for name, size in (("wide", WIDE), ("narrow", NARROW))
        for word, script in (("script", True), ("no-script", False))
    ],
    indirect=True,
)


@VISITORS
def test_from_search_to_a_hash(visit: Visit) -> None:
    """Search, package, filter, spec: the main path works everywhere, with scripts or without."""
    page = visit.page
    page.goto("/")
    page.get_by_label("Package, hash or spec").fill("hdf5")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(f"{visit.server.address}/package/hdf5")
    expect(page.locator("#configurations tbody tr")).to_have_count(5)

    page.get_by_label("Release", exact=True).select_option("v0.23.1")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#configurations tbody tr")).to_have_count(1)
    expect(page.get_by_text("1 configuration, 7 specs")).to_be_visible()

    page.locator("td.hashes summary").click()
    page.locator("td.hashes a.hash").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("hdf5@1.14.5")
    expect(page.get_by_text("spack install hdf5/")).to_be_visible()


@VISITORS
def test_grid_and_chips(visit: Visit) -> None:
    """A cell of the grid narrows the table; the chip's cross widens it again."""
    page = visit.page
    page.goto("/package/hdf5")
    page.get_by_label("10 of 1.14.5 for x86_64_v3").click()
    expect(page.get_by_text("2 configurations, 10 specs")).to_be_visible()

    page.get_by_role("link", name="Version: 1.14.5").click()
    expect(page.get_by_text("3 configurations, 11 specs")).to_be_visible()


@pytest.mark.parametrize("permissions", [["clipboard-read", "clipboard-write"]])
def test_copies_the_install_command(
    browser: Browser, server: Server, permissions: list[str]
) -> None:
    """A copy button puts the command in the clipboard, and says so."""
    visit = Visit(browser, server, permissions=permissions)
    visit.page.goto(f"/spec/{spec_hash(MPI)}")
    visit.page.get_by_role("button", name="Copy the install command").click()
    expect(visit.page.locator("#announce")).to_have_text("Copied")
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    visit.context.close()

    assert copied == f"spack install hdf5/{spec_hash(MPI)[:7]}"
    assert visit.faults == []


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_no_dead_buttons_without_scripts(visit: Visit) -> None:
    """Without scripts nobody sees a copy button that could not work."""
    visit.page.goto(f"/spec/{spec_hash(MPI)}")

    expect(visit.page.locator("button.copy").first).to_be_hidden()


def test_columns_can_be_left_out(visit: Visit) -> None:
    """A column goes at once with scripts, and stays away in the address after Apply."""
    page = visit.page
    page.goto("/package/hdf5")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Stacks").check()
    expect(page.get_by_role("columnheader", name="Stacks")).to_be_hidden()

    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Releases")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Stacks")).to_have_count(0)


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
    press_until(page, ".narrow button")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 configuration, 1 spec")).to_be_visible()

    press_until(page, "td.hashes summary")
    page.keyboard.press("Enter")
    press_until(page, "td.hashes a.hash")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("hdf5@1.14.10")


def test_skip_link_leads_to_the_content(visit: Visit) -> None:
    """The first Tab offers to skip the bar at the top, and does."""
    visit.page.goto("/package/hdf5")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")

    assert visit.page.evaluate("document.activeElement.id") == "main"


def test_hostile_values_are_text(visit: Visit) -> None:
    """A variant that is a script is shown, not run, on our pages and on Datasette's."""
    for path in ("/package/hostile", "/find?q=hostile+%2Bfine", "/spack-cache/variants"):
        visit.page.goto(path)
        expect(visit.page.get_by_text(HOSTILE).locator("visible=true").first).to_be_visible()
        assert visit.page.title() != "owned"


@pytest.mark.parametrize(
    "visit",
    [
        pytest.param({"viewport": size, "color_scheme": scheme}, id=f"{name}-{scheme}")
        for name, size in (("wide", WIDE), ("narrow", NARROW))
        for scheme in ("light", "dark")
    ],
    indirect=True,
)
def test_everyone_can_read_it(visit: Visit) -> None:
    """Axe finds nothing serious on any page of ours, in light and dark, wide and narrow."""
    found = []
    for path in OWN:
        visit.page.goto(path)
        violations = Axe().run(visit.page).response["violations"]
        found += [
            (path, each["id"], [node["html"][:120] for node in each["nodes"][:3]])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]

    assert found == []


@pytest.mark.parametrize(
    "visit", [{"viewport": WIDE}, {"viewport": NARROW}], ids=["wide", "narrow"], indirect=True
)
def test_nothing_sticks_out(visit: Visit) -> None:
    """No page of ours has to be pushed sideways; wide tables scroll by themselves."""
    for path in OWN:
        visit.page.goto(path)
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width <= visit.page.evaluate("window.innerWidth"), path


def test_datasettes_own_pages_run_under_the_policy(visit: Visit) -> None:
    """Datasette's scripts work under our security policy, without a word in the console.

    The key `/` opens the menu of Datasette 1.0, which asks for what there is.
    """
    for path in DATASETTES:
        visit.page.goto(path, wait_until="networkidle")
        expect(visit.page.locator(".site-name")).to_be_visible()
        visit.page.keyboard.press("/")
        visit.page.wait_for_load_state("networkidle")
