"""The site in a real browser: the ways people go through it, and what must never happen there."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.site.browser.visitors import VISITORS, Visit
from tests.site.cache import HOSTILE, MPI, spec_hash

pytestmark = pytest.mark.slow


@VISITORS
def test_filters_can_be_switched(visit: Visit) -> None:
    """A chosen filter is changed for another value in one step, even where nothing is left."""
    page = visit.page
    page.goto("/package/hdf5?host=neoverse_v2&variant=~mpi")
    heading = page.locator("#configurations-heading")
    expect(heading).to_contain_text("0 configurations")

    page.get_by_text("More filters").click()
    page.get_by_label("Runs on", exact=True).select_option("zen3")
    page.get_by_role("button", name="Apply").click()
    expect(heading).to_contain_text("1 configuration that runs on zen3, 3 binaries")

    page.get_by_text("More filters").click()
    page.get_by_label("mpi", exact=True).select_option("+mpi")
    page.get_by_role("button", name="Apply").click()
    expect(heading).to_contain_text("3 configurations that run on zen3, 9 binaries")


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_no_dead_buttons_without_scripts(visit: Visit) -> None:
    """Without scripts nobody sees a copy button that could not work."""
    visit.page.goto(f"/spec/{spec_hash(MPI)}")

    expect(visit.page.locator("button.copy").first).to_be_hidden()


def test_the_machine_is_remembered(visit: Visit) -> None:
    """A machine that was chosen once is offered on later pages, until it is forgotten."""
    page = visit.page
    page.goto("/package/hdf5")
    page.locator("#install-host").select_option("zen3")
    page.wait_for_url("**/package/hdf5?host=zen3")

    page.goto("/package/py-torch")
    page.get_by_role("link", name="Show for my zen3").click()
    page.wait_for_url("**/package/py-torch?host=zen3")
    page.goto("/")
    expect(page.get_by_label("my machine")).to_have_value("zen3")

    page.goto("/package/hdf5?host=zen3")
    page.get_by_role("link", name="show all machines").click()
    page.goto("/")
    expect(page.get_by_label("my machine")).to_have_value("")


def test_back_tells_the_truth(visit: Visit) -> None:
    """After Back and after Reload the forms show what the rows are filtered by."""
    page = visit.page
    page.goto("/package/hdf5")
    page.locator("#install-host").select_option("zen3")
    page.wait_for_url("**/package/hdf5?host=zen3")
    page.go_back()
    expect(page.locator("#install-host")).to_have_value("")
    page.go_forward()
    expect(page.locator("#install-host")).to_have_value("zen3")
    page.reload()
    expect(page.locator("#install-host")).to_have_value("zen3")


def test_hostile_values_are_text(visit: Visit) -> None:
    """A variant that is a script is shown, not run, on our pages and on Datasette's."""
    for path in ("/package/hostile", "/find?q=hostile+%2Bfine", "/spack-cache/variants"):
        visit.page.goto(path)
        expect(visit.page.get_by_text(HOSTILE).locator("visible=true").first).to_be_visible()
        assert visit.page.title() != "owned"


def test_names_are_suggested(visit: Visit) -> None:
    """A typed name is completed with one small request, and leads to its page."""
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # How fast this machine types does not decide how many requests there are.
    page.clock.install(time=0)
    page.goto("/releases")
    page.clock.pause_at(3_600)
    asked.clear()
    box = page.get_by_role("combobox", name="Search packages, hashes and specs")
    box.press_sequentially("torchv")
    page.clock.run_for(1_000)
    suggested = page.locator("#suggestions option")
    expect(suggested).to_have_count(1)
    expect(suggested).to_have_attribute("value", "py-torchvision")

    assert [each.partition("?")[2] for each in asked] == ["q=torchv"]
    box.fill("py-torchvision")
    box.press("Enter")
    expect(page).to_have_url(f"{visit.server.address}/package/py-torchvision")
