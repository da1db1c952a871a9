"""A browser that is started once, and visitors in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import started
from tests.serving import Server, serving
from tests.site.browser.visitors import SECONDS, WIDE, Visit


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """The browser itself; it has ended when tests with asyncio begin."""
    # Five seconds are Playwright's own choice: too few where the machine has much else to do.
    expect.set_options(timeout=1_000 * SECONDS)
    with started(chromium) as launched:
        yield launched


@pytest.fixture
def visit(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A visitor who leaves without having met an error or another host."""
    options: dict[str, Any] = getattr(request, "param", {"viewport": WIDE})
    visitor = Visit(browser, server, **options)
    yield visitor
    visitor.context.close()
    assert visitor.faults == []


@pytest.fixture(scope="package")
def index_server(real_index_file: Path) -> Iterator[Server]:
    """A real server over a real index, which has dependencies."""
    with serving(real_index_file) as running:
        yield running
