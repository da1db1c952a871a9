"""The tasks that people come with, each from the first page to its answer, in a real
browser.
"""

import csv
import re
import sqlite3
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.serving import Server
from tests.site.browser.visitors import NARROW, WIDE, Visit
from tests.site.cache import spec_hash

pytestmark = pytest.mark.slow

COPIED = """() => {
  window.copied = [];
  navigator.clipboard.writeText = async (text) => { window.copied.push(text); };
}"""
CUDA = "py-torch 2.5.1 x86_64_v3 gcc@13.2.0 ('+cuda', 'build_system=python_pip') 0"
"""The seed of the hash of the only py-torch with +cuda."""


class Walk:
    """A visitor whose keys and clicks are counted."""

    def __init__(self, visit: Visit) -> None:
        self.page = visit.page
        self.keys = 0
        self.clicks = 0
        self.address = visit.server.address

    def search(self, text: str) -> None:
        """Type into the box of the page and send it."""
        box = self.page.locator("input[type=search][name=q]").first
        box.fill(text)
        box.press("Enter")
        self.page.wait_for_load_state()
        self.keys += len(text) + 1

    def follow(self, name: str) -> None:
        """Follow the first link of this name that can be seen."""
        place = self.page.get_by_role("main")
        place.get_by_role("link", name=name).locator("visible=true").first.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def copy(self, name: str) -> str:
        """Return the text that the first button of this name copies."""
        self.page.evaluate(COPIED)
        self.page.get_by_role("button", name=name).first.click()
        expect(self.page.locator("#announce")).to_have_text("Copied")
        self.clicks += 1
        (copied,) = self.page.evaluate("window.copied")
        return str(copied)

    @property
    def path(self) -> str:
        """The address of the page, below the site."""
        return self.page.url.removeprefix(self.address)


@pytest.fixture(
    params=[pytest.param(WIDE, id="wide"), pytest.param(NARROW, id="narrow")]
)
def walk(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Any:
    """A visitor on the first page, at a desk or with a phone."""
    visit = Visit(browser, server, viewport=request.param)
    visit.page.goto("/")
    yield Walk(visit)
    visit.context.close()
    assert visit.faults == []


def test_a_cuda_build_for_ones_machine(walk: Walk) -> None:
    """The command for py-torch with CUDA on a zen3 takes 25 keys and one click."""
    walk.search("pytorch +cuda zen3 gcc13")
    commands = walk.copy("Copy all").splitlines()

    assert commands[-1] == f"spack install --cache-only py-torch/{spec_hash(CUDA)[:7]}"
    assert commands[0].startswith("spack mirror add ")
    assert (walk.keys, walk.clicks) <= (25, 1)


def test_what_installs_an_environment(walk: Walk) -> None:
    """Of an environment of twelve, one button copies what installs the seven with a
    binary of one compiler; with others, there are eight.
    """
    having = "hdf5 hdf5@1.9 hdf5~mpi py-torch+cuda py-torch~cuda py-torchvision netcdf-c zlib"
    lacking = "nothing hdf5@99 zlib+nothing py-torch@9:"
    walk.follow("Check my spack.yaml")
    walk.page.locator("textarea").fill("\n".join(f"{having} {lacking}".split()))
    walk.page.get_by_role("main").get_by_role("button").first.click()

    for count in (7, 8):
        heading = walk.page.get_by_role("heading", level=1)
        expect(heading).to_contain_text(f"{count} of 12")
        commands = walk.copy("Copy: the command").splitlines()
        words = commands[-1].removeprefix("spack install --cache-only ").split()
        assert len(words) == count
        if count == 7:
            walk.follow("Mix compilers")


def test_a_machine_that_is_typed_replaces_the_chosen_one(walk: Walk) -> None:
    """What was understood can be removed with one click; the box keeps the words."""
    walk.search("torch for zen3 with cuda and gcc 13")
    box = walk.page.locator("input[type=search][name=q]").first
    expect(box).to_have_value("torch for zen3 with cuda and gcc 13")
    tokens = walk.page.get_by_role("list", name="What was understood")
    expect(tokens.get_by_role("listitem")).to_have_count(4)

    tokens.get_by_role("link", name="Remove zen3").click()
    walk.page.wait_for_load_state()
    expect(walk.page.get_by_role("link", name="Remove zen3")).to_have_count(0)


def test_what_runs_on_an_arm_machine(walk: Walk) -> None:
    """A search without a package lists packages; each button copies the command of its
    own row.
    """
    walk.search("arm")
    expect(walk.page.get_by_role("heading", level=1)).to_contain_text(
        re.compile("packages? ha(s|ve) a binary for any aarch64")
    )
    row = walk.page.locator("tr.package").first
    name = row.locator("th a").inner_text()
    commands = walk.copy("Copy install").splitlines()

    assert commands[-1].startswith(f"spack install --cache-only {name}/")


def test_what_changed_for_a_stack(walk: Walk) -> None:
    """Two clicks lead from the first page to the changes of e4s in the newest
    snapshot.
    """
    walk.follow("What changed")
    walk.follow("e4s")

    assert walk.path == "/diff/develop-2025-04-13...develop-2025-04-20?stack=e4s"
    expect(walk.page.get_by_role("main")).to_contain_text("1.14.10")
    assert walk.clicks <= 3


def test_what_changed_between_two_other_releases(walk: Walk) -> None:
    """Two choices and one click compare any other releases; both can be read."""
    walk.follow("What changed")
    for field, name in (("From", "v0.23.1"), ("To", "develop-2025-04-20")):
        choice = walk.page.get_by_label(field, exact=True)
        choice.select_option(name)
        assert choice.evaluate("field => field.clientWidth") > 24
    walk.page.get_by_role("button", name="Compare").click()
    walk.page.wait_for_load_state()

    assert walk.path == "/diff/v0.23.1...develop-2025-04-20"
    expect(walk.page.get_by_role("heading", level=1)).to_contain_text(
        "v0.23.1 → develop-2025-04-20"
    )


def test_what_changed_in_a_week(walk: Walk) -> None:
    """A column of the chart is a link to its week, also for a keyboard."""
    walk.follow("What changed")
    column = walk.page.get_by_role("group").get_by_role("link", name="20 Apr 2025")
    column.press("Enter")
    walk.page.wait_for_load_state()

    assert walk.path == "/diff/develop-2025-04-13...develop-2025-04-20"


def test_a_package_in_pandas(walk: Walk, conn: sqlite3.Connection) -> None:
    """One copied line reads all binaries of a package; CSV and JSON have the same
    rows.
    """
    walk.search("hdf5")
    walk.page.locator(".menu summary").click()
    walk.clicks += 1
    line = walk.copy("Copy for pandas")
    (address,) = re.findall(r'^pd\.read_csv\("(.*)"\)$', line)
    text = walk.page.request.get(address).text()
    link = walk.page.get_by_role("link", name="JSON", exact=True).get_attribute("href")
    records = walk.page.request.get(f"{walk.address}{link}").json()
    expected = {
        row[0] for row in conn.execute("SELECT hash FROM builds WHERE package = 'hdf5'")
    }

    assert {row["hash"] for row in csv.DictReader(text.splitlines())} == expected
    assert {row["hash"] for row in records} == expected
