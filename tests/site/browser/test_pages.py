"""The site in a real browser: the ways people go through it, and what must never happen there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.serving import Server
from tests.site.browser.visitors import VISITORS, Visit
from tests.site.cache import HOSTILE, MPI, spec_hash

pytestmark = pytest.mark.slow


@VISITORS
def test_chips_narrow_and_widen(visit: Visit) -> None:
    """A count of where it runs narrows the rows; a cross widens them, a chip narrows again."""
    page = visit.page
    heading = page.locator("#configurations-heading")
    page.goto("/package/hdf5")
    page.get_by_label("10 binaries of 1.14.5 for x86_64").click()
    expect(heading).to_contain_text("2 configurations 10 binaries")

    page.get_by_role("link", name="Version 1.14.5").click()
    expect(heading).to_contain_text("4 configurations 12 binaries")
    page.get_by_role("link", name="+mpi 3").click()
    expect(heading).to_contain_text("3 configurations")


@VISITORS
def test_every_hash_of_a_row(visit: Visit) -> None:
    """All hashes of a row are one step away, with the filters kept, and closed again by another."""
    page = visit.page
    page.goto("/package/hdf5?release=v0.23.1")
    page.get_by_role("link", name="+6 more").click()
    expect(page.locator("#opened + tr.look-alikes a.hash")).to_have_count(7)
    expect(page.locator("tr.look-alikes")).to_contain_text("All 7 binaries, current ones first")
    expect(page.locator("#configurations-heading")).to_contain_text("1 configuration 7 binaries")

    page.get_by_role("link", name="Close").click()
    expect(page.locator("#configurations a.hash")).to_have_count(1)


@VISITORS
def test_the_release_goes_along(visit: Visit) -> None:
    """A chosen release is kept from the package to the spec and back; another is one step away."""
    page = visit.page
    page.goto("/package/hdf5?release=v0.23.1")
    expect(page.locator("#install")).to_contain_text("spack mirror add v0.23.1")
    page.locator("#configurations a.hash").first.click()
    expect(page.locator("pre.lines").first).to_contain_text("spack mirror add v0.23.1")

    page.get_by_role("link", name="Install from develop-2025-04-20").click()
    expect(page.locator("pre.lines").first).to_contain_text("spack mirror add develop-2025-04-20")

    page.locator(".up").get_by_role("link", name="hdf5").click()
    expect(page).to_have_url(f"{visit.server.address}/package/hdf5?release=develop-2025-04-20")


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


@pytest.mark.parametrize("permissions", [["clipboard-read", "clipboard-write"]])
def test_copies_the_install_command(
    browser: Browser, server: Server, permissions: list[str]
) -> None:
    """A copy button puts the command in the clipboard, and says so."""
    visit = Visit(browser, server, permissions=permissions)
    visit.page.goto(f"/spec/{spec_hash(MPI)}")
    visit.page.get_by_role("button", name="Copy all").click()
    expect(visit.page.locator("#announce")).to_have_text("Copied")
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    visit.context.close()

    assert copied.splitlines()[-1] == f"spack install --cache-only hdf5/{spec_hash(MPI)[:7]}"
    assert visit.faults == []


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
    """What is typed is completed: one small request, and the name leads to its page.

    The page's clock stands still while the name is typed: how fast this machine types must not
    decide how many requests there are.
    """
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
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


@VISITORS
def test_packages_with_one_target_and_without_another(visit: Visit) -> None:
    """From any page: the list, two choices, and there are the packages."""
    page = visit.page
    page.goto("/stack/e4s")
    page.get_by_role("navigation").get_by_role("link", name="Packages", exact=True).click()
    page.get_by_text("More filters").click()
    page.get_by_label("In release").select_option("develop")
    page.get_by_label("Has a binary for").select_option("x86_64_v3")
    page.get_by_label("Has no binary for").select_option("aarch64")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("5 of 6 packages")).to_be_visible()
    expect(page.locator("#rows").get_by_role("link", name="hdf5")).to_have_count(0)
