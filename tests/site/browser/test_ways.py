"""The ways that people go through the site, with their number of steps, in a real browser.

A step is what somebody does before something else is on the screen, or in the clipboard: to type a
text and send it, to choose a value, to follow a link, to press a button.
"""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.serving import Server
from tests.site.browser.visitors import NARROW, WIDE, Visit
from tests.site.cache import MPI, spec_hash

pytestmark = pytest.mark.slow

COPIED = """() => {
  window.copied = [];
  navigator.clipboard.writeText = async (text) => { window.copied.push(text); };
}"""


class Walk:
    """A visitor who counts the steps."""

    def __init__(self, visit: Visit, *, script: bool) -> None:
        self.page, self.script, self.steps = visit.page, script, 0
        self.address = visit.server.address

    def search(self, text: str) -> None:
        """Type into the box of the first page and send it."""
        self.page.get_by_label("Package, hash or spec").fill(text)
        self.page.keyboard.press("Enter")
        self.steps += 1

    def choose(self, label: str, value: str) -> None:
        """Choose a value."""
        self.page.get_by_label(label, exact=True).select_option(value)
        self.steps += 1

    def press(self, what: Locator) -> None:
        """Follow a link or press a button."""
        what.click()
        self.steps += 1

    def copy(self, name: str, command: str) -> None:
        """Copy a command by its button; without scripts by hand."""
        expect(self.page.get_by_text(command).first).to_be_visible()
        if self.script:
            self.page.evaluate(COPIED)
            self.page.get_by_role("button", name=f"Copy {name}").click()
            expect(self.page.locator("#announce")).to_have_text("Copied")
            (copied,) = self.page.evaluate("window.copied")
            assert copied.startswith(command)
        self.steps += 1

    def link(self, name: str) -> Locator:
        """The first link of this name that can be seen."""
        return self.page.get_by_role("link", name=name).locator("visible=true").first

    def button(self, name: str) -> Locator:
        """The button of this name in the page, not in the bar above it."""
        return self.page.get_by_role("main").get_by_role("button", name=name).first


@pytest.fixture(
    params=[
        pytest.param((WIDE, True), id="wide-script"),
        pytest.param((NARROW, False), id="narrow-no-script"),
    ]
)
def walk(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Any:
    """A visitor on the first page, on a desk or a phone, with scripts or without."""
    size, script = request.param
    visit = Visit(browser, server, viewport=size, java_script_enabled=script)
    visit.page.goto("/")
    yield Walk(visit, script=script)
    visit.context.close()
    assert visit.faults == []


def test_a_cuda_build_for_ones_machine(walk: Walk) -> None:
    """For zen3 and gcc 13 in the newest release, to the copied command: six steps."""
    walk.search("py-torch +cuda %gcc@13")
    walk.choose("Release", "v0.23.1")
    walk.choose("Runs on", "zen3")
    walk.press(walk.button("Search"))
    expect(walk.page.locator("#configurations tbody tr:not(.machines)")).to_have_count(1)
    walk.press(walk.link("Install"))
    expect(walk.page.get_by_text("spack mirror add v0.23.1")).to_be_visible()
    walk.copy("the install command", "spack install --cache-only py-torch/")

    assert walk.steps <= 6


def test_which_releases_list_a_hash(walk: Walk) -> None:
    """One step: all releases that list it stand on its page."""
    walk.search(spec_hash(MPI)[:9].upper())
    expect(walk.page.get_by_role("heading", name="In 4 releases")).to_be_visible()
    for name in ("develop", "develop-2025-04-20", "develop-2025-04-13", "v0.23.1"):
        expect(walk.page.locator("#listings ~ table").get_by_text(name, exact=True)).to_be_visible()

    assert walk.steps == 1


def test_what_a_stack_lost(walk: Walk) -> None:
    """Two links from the first page to what a stack lost between the last two snapshots."""
    walk.press(walk.link("e4s"))
    walk.press(walk.link("develop-2025-04-20 since develop-2025-04-13"))
    expect(walk.page.get_by_role("heading", level=1)).to_contain_text("→")
    expect(walk.page.get_by_text("e4s").first).to_be_visible()

    assert walk.steps <= 3


def test_the_whole_database(walk: Walk, database: Path, tmp_path: Path) -> None:
    """Two steps to the file, byte for byte."""
    walk.press(walk.link("Download"))
    with walk.page.expect_download() as download:
        walk.press(walk.link("Download spack-cache.db"))
    download.value.save_as(tmp_path / "got.db")

    assert (tmp_path / "got.db").read_bytes() == database.read_bytes()
    assert walk.steps == 2


def test_every_build_as_csv(walk: Walk, conn: sqlite3.Connection) -> None:
    """Two steps to the rows of all builds."""
    walk.press(walk.link("Download"))
    address = walk.link("All binaries as CSV").get_attribute("href")
    walk.steps += 1
    text = walk.page.request.get(f"{walk.address}{address}").text()
    rows = {row["hash"] for row in csv.DictReader(text.splitlines())}

    assert rows == {row[0] for row in conn.execute("SELECT hash FROM builds")}
    assert walk.steps == 2


def test_three_commands_that_fit_together(walk: Walk) -> None:
    """A newcomer copies three commands from the first page, all of one release."""
    mirror = "spack mirror add develop https://binaries.spack.io/develop"
    walk.copy("the command that adds the mirror", mirror)
    walk.copy("the command that trusts the keys", "spack buildcache keys --install --trust")
    walk.copy("the install command", "spack install --cache-only ")

    assert walk.steps == 3
