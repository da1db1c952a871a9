"""A browser that is started once, and visitors in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.chromium import FLAGS, find_chromium
from tests.programs import needed
from tests.serving import Server, serving
from tests.site.browser.visitors import SECONDS, WIDE, Visit


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser itself, while no test with asyncio runs: Playwright has its own event
    loop.
    """
    # Five seconds are Playwright's own choice: too few if the machine has much else to
    # do.
    expect.set_options(timeout=1_000 * SECONDS)
    path = find_chromium() or needed("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def visit(
    browser: Browser, server: Server, request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """A visitor who leaves without having met an error or another host."""
    options: dict[str, Any] = getattr(request, "param", {"viewport": WIDE})
    visitor = Visit(browser, server, **options)
    yield visitor
    visitor.context.close()
    assert visitor.faults == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window on a static host, in which nothing may go wrong."""
    context = browser.new_context()
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "console",
        lambda said: faults.append(said.text) if said.type == "error" else None,
    )
    yield opened
    context.close()
    assert faults == []


@pytest.fixture(scope="package")
def index_server(real_index_file: Path) -> Iterator[Server]:
    """A real server over a real index, which has dependencies."""
    with serving(real_index_file) as running:
        yield running
