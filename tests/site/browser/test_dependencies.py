"""The dependencies of a spec in a real browser: a tree that unfolds, and that everyone can read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.serving import Server
from tests.site.browser.test_every_page import faults_of
from tests.site.browser.visitors import NARROW, WIDE, Visit

pytestmark = pytest.mark.slow


FLEX = "/spec/dyheadhjccf4dd3wofittcndk263tjmh"
"""It links gcc-runtime, which links glibc, and has five other binaries of its configuration."""


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_dependencies_unfold(browser: Browser, index_server: Server, script: bool) -> None:
    """A dependency unfolds, what stands above is found there, and a link leads to its page."""
    visit = Visit(browser, index_server, viewport=NARROW, java_script_enabled=script)
    page = visit.page
    page.goto(FLEX)
    page.get_by_role("heading", name="9 dependencies").click()
    tree = page.get_by_role("list", name="To run")
    below = tree.locator("details").get_by_role("link", name="glibc@2.36")
    expect(below).to_be_hidden()
    tree.locator("summary", has_text="gcc-runtime").click()
    expect(below).to_be_visible()
    expect(page.get_by_text("gcc-runtime target x86_64_v3 → x86_64_v4")).to_be_visible()

    built_with = page.get_by_role("list", name="Only to build it")
    expect(built_with.locator("summary")).to_have_count(0)
    built_with.get_by_role("link", name="gcc@13.2.0").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("gcc@13.2.0")
    expect(page.get_by_text("It is an external, at /opt/compilers/gcc-13.2.0")).to_be_visible()
    expect(page.get_by_text("spack install")).to_have_count(0)
    visit.context.close()
    assert visit.faults == []


def test_everyone_can_read_dependencies(browser: Browser, index_server: Server) -> None:
    """Axe finds nothing in an unfolded tree, nothing sticks out, and no text is pale."""
    visit = Visit(browser, index_server, viewport=WIDE, reduced_motion="reduce")
    found = [fault for path in (FLEX, "/package/gcc") for fault in faults_of(visit, path)]
    visit.context.close()
    assert [*found, *visit.faults] == []
