"""The site in a real browser: the ways people go through it, and what must never happen there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.site.addresses import DATASETTES
from tests.site.cache import HOSTILE, MPI, spec_hash
from tests.site.conftest import Server, serving
from tests.site.visitors import NARROW, VISITORS, WIDE, Visit, visit

__all__ = ["visit"]

pytestmark = pytest.mark.slow

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
    "/find?q=torc",
    "/packages",
    "/releases",
    "/about",
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

    page.get_by_role("link", name="Install").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("hdf5@1.14.5")
    expect(page.get_by_text("spack install --cache-only hdf5/")).to_be_visible()


@VISITORS
def test_grid_and_chips(visit: Visit) -> None:
    """A cell of the grid narrows the table; the chip's cross widens it again."""
    page = visit.page
    page.goto("/package/hdf5")
    page.get_by_label("10 of 1.14.5 for x86_64_v3").click()
    expect(page.get_by_text("2 configurations, 10 specs")).to_be_visible()

    page.get_by_role("link", name="Version: 1.14.5").click()
    expect(page.get_by_text("3 configurations, 11 specs")).to_be_visible()


@VISITORS
def test_the_first_row_is_in_the_first_screen(visit: Visit) -> None:
    """A package page begins with its rows: the grid and what else there is come after."""
    for path in ("/package/hdf5", "/package/hdf5?release=develop&host=zen3&variant=%2Bmpi"):
        visit.page.goto(path)
        row = visit.page.locator("#configurations tbody tr").first.bounding_box()
        size = visit.page.viewport_size

        assert row is not None
        assert size is not None
        assert row["y"] + 40 < size["height"]


@VISITORS
def test_every_hash_of_a_row(visit: Visit) -> None:
    """All hashes of a row are one step away, with the filters kept, and closed again by another."""
    page = visit.page
    page.goto("/package/hdf5?release=v0.23.1")
    page.get_by_role("link", name="and 6 more").click()
    expect(page.locator("#opened a.hash")).to_have_count(7)
    expect(page.locator("#opened")).to_contain_text("All 7, what is current first")
    expect(page.get_by_text("1 configuration, 7 specs")).to_be_visible()

    page.get_by_role("link", name="Close").click()
    expect(page.locator("#configurations a.hash")).to_have_count(1)


@VISITORS
def test_the_release_goes_along(visit: Visit) -> None:
    """A chosen release is kept from the package to the spec and back; another is one step away."""
    page = visit.page
    page.goto("/package/hdf5?release=v0.23.1")
    page.get_by_role("link", name="Install").click()
    expect(page.get_by_text("spack mirror add v0.23.1")).to_be_visible()
    expect(page.get_by_text("From the mirror of v0.23.1")).to_be_visible()

    page.get_by_role("link", name="Install from develop-2025-04-20").click()
    expect(page.get_by_text("spack mirror add develop-2025-04-20")).to_be_visible()

    page.locator(".up").get_by_role("link", name="hdf5").click()
    expect(page).to_have_url(f"{visit.server.address}/package/hdf5?release=develop-2025-04-20")


@VISITORS
def test_a_search_for_ones_own_machine(visit: Visit) -> None:
    """A release and a machine narrow a search, and go along to the spec that is installed."""
    page = visit.page
    page.goto("/find?q=hdf5+%2Bmpi")
    page.get_by_label("Release", exact=True).select_option("v0.23.1")
    page.get_by_label("Runs on", exact=True).select_option("zen3")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#configurations tbody tr")).to_have_count(1)

    page.get_by_role("link", name="Install").click()
    expect(page.get_by_text("spack mirror add v0.23.1")).to_be_visible()


@VISITORS
def test_filters_can_be_switched(visit: Visit) -> None:
    """A chosen filter is changed for another value in one step, even where nothing is left."""
    page = visit.page
    page.goto("/package/hdf5?host=neoverse_v2&variant=~mpi")
    expect(page.get_by_text("0 configurations, 0 specs")).to_be_visible()

    page.get_by_label("Runs on", exact=True).select_option("zen3")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("1 configuration, 3 specs")).to_be_visible()

    page.get_by_label("mpi", exact=True).select_option("+mpi")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("3 configurations, 9 specs")).to_be_visible()


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

    assert copied == f"spack install --cache-only hdf5/{spec_hash(MPI)[:7]}"
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
    page.locator(".more-filters summary").click()
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

    press_until(page, ".more-filters summary")
    page.keyboard.press("Enter")
    press_until(page, "select[name=target]")
    page.keyboard.type("zen")
    press_until(page, ".narrow button")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 configuration, 1 spec")).to_be_visible()

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
    """No page has to be pushed sideways; wide tables scroll by themselves."""
    for path in (*OWN, *DATASETTES):
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


@pytest.fixture(scope="module")
def index_server(real_index_file: Path) -> Iterator[Server]:
    """A real server over a real index, which has dependencies."""
    with serving(real_index_file) as started:
        yield started


FLEX = "/spec/dyheadhjccf4dd3wofittcndk263tjmh"
"""It is built with bison, which needs m4 to run, and has five look-alikes."""


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_dependencies_unfold(browser: Browser, index_server: Server, script: bool) -> None:
    """A dependency unfolds, what stands above is found there, and a link leads to its page."""
    visit = Visit(browser, index_server, viewport=NARROW, java_script_enabled=script)
    page = visit.page
    page.goto(FLEX)
    tree = page.get_by_role("list", name="Only to be built")
    below = tree.locator("details").get_by_role("link", name="m4@1.4.21")
    expect(below).to_be_hidden()
    tree.locator("summary", has_text="bison").click()
    expect(below).to_be_visible()
    expect(page.get_by_text("gcc-runtime target x86_64_v3 → x86_64_v4")).to_be_visible()

    tree.get_by_role("link", name="gcc@13.2.0").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("gcc@13.2.0")
    expect(page.get_by_text("It is an external, at /opt/compilers/gcc-13.2.0")).to_be_visible()
    expect(page.get_by_text("spack install")).to_have_count(0)
    visit.context.close()
    assert visit.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_everyone_can_read_dependencies(
    browser: Browser, index_server: Server, size: Any, scheme: Any
) -> None:
    """Axe finds nothing serious in an unfolded tree, and nothing sticks out of the page."""
    visit = Visit(browser, index_server, viewport=size, color_scheme=scheme)
    for path in (FLEX, "/package/gcc"):
        visit.page.goto(path)
        visit.page.evaluate(
            "document.querySelectorAll('.tree details').forEach(d => d.open = true)"
        )
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], path
        violations = Axe().run(visit.page).response["violations"]
        assert [
            (path, each["id"], [node["html"][:120] for node in each["nodes"][:3]])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ] == []
    visit.context.close()
    assert visit.faults == []


def test_nothing_moves_when_scripts_come(visit: Visit) -> None:
    """Buttons that only scripts bring have their place before: what is read stays where it is."""
    for path in ("/", "/package/hdf5", f"/spec/{spec_hash(MPI)}", "/release/develop-2025-04-20"):
        visit.page.goto(path, wait_until="networkidle")
        moved = visit.page.evaluate(
            """() => new Promise((resolve) => {
              let sum = 0;
              new PerformanceObserver((list) => {
                for (const each of list.getEntries()) sum += each.value;
              }).observe({ type: "layout-shift", buffered: true });
              requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
            })"""
        )
        assert moved == 0, path


@pytest.mark.parametrize("visit", [{"viewport": WIDE, "color_scheme": "dark"}], indirect=True)
def test_paper_is_white(visit: Visit) -> None:
    """On paper there is the content alone, dark on white, with what was folded."""
    for path in (f"/spec/{spec_hash(MPI)}", "/package/hdf5", "/spack-cache/configurations"):
        visit.page.goto(path)
        visit.page.emulate_media(media="print", color_scheme="dark")
        expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
        expect(visit.page.locator(".site-bar")).to_be_hidden()
        expect(visit.page.locator("footer")).to_be_hidden()
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert visit.page.evaluate("getComputedStyle(document.body).color") == "rgb(24, 32, 46)"


def test_names_are_suggested(visit: Visit) -> None:
    """What is typed is completed: one small request, and the name leads to its page."""
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/releases")
    asked.clear()
    box = page.get_by_role("combobox", name="Search packages, hashes and specs")
    box.press_sequentially("torchv", delay=20)
    expect(page.locator("#suggestions option")).to_have_attribute("value", "py-torchvision")

    assert [each.partition("?")[2] for each in asked] == ["q=torchv"]
    box.fill("py-torchvision")
    box.press("Enter")
    expect(page).to_have_url(f"{visit.server.address}/package/py-torchvision")


@VISITORS
def test_packages_with_one_target_and_without_another(visit: Visit) -> None:
    """From any page: the list, two choices, and there are the packages."""
    page = visit.page
    page.goto("/stack/e4s")
    page.get_by_role("navigation").get_by_role("link", name="Packages", exact=True).click()
    page.get_by_label("In release").select_option("develop")
    page.get_by_label("With a binary for").select_option("x86_64_v3")
    page.get_by_label("Without a binary for").select_option("aarch64")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("5 of 6 packages")).to_be_visible()
    expect(page.locator("#rows").get_by_role("link", name="hdf5")).to_have_count(0)
