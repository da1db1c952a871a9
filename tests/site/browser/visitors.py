"""Visitors with a real browser: windows of two widths, and what must never happen in
them.
"""

from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.serving import Server

WIDE: ViewportSize = {"width": 1280, "height": 1000}
NARROW: ViewportSize = {"width": 390, "height": 844}


SECONDS = 60
"""The longest that a visitor waits for something to appear."""


class Visit:
    """One visitor's browser window, and what went wrong in it."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.options = options
        self.faults: list[str] = []
        self.context: BrowserContext = browser.new_context(
            base_url=server.address, **options
        )
        self.context.set_default_timeout(1_000 * SECONDS)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on(
            "pageerror", lambda error: self.faults.append(f"page error: {error}")
        )
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.server.address, "data:")):
            self.faults.append(f"request to {request.url}")


VISITORS = pytest.mark.parametrize(
    "visit",
    [
        pytest.param({"viewport": WIDE, "java_script_enabled": True}, id="wide-script"),
        pytest.param(
            {"viewport": NARROW, "java_script_enabled": False}, id="narrow-no-script"
        ),
    ],
    indirect=True,
)
"""Each width and each choice about scripts."""
