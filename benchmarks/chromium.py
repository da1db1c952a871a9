"""Find and start headless Chromium, for benchmarks and tests.

`python -m benchmarks.chromium` prints the path of the browser, or exits with status 1.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VISITS = 9
"""Number of visits that are measured; their median is the result."""
NOTE_WHEN_SHOWN = """
(() => {
  const look = () => {
    const element = document.querySelector(%s);
    if (!element || !element.getClientRects().length) requestAnimationFrame(look);
    // The frame with the element has been drawn when the next one begins.
    else requestAnimationFrame((now) => { document.documentElement.dataset.shown = now; });
  };
  requestAnimationFrame(look);
})();
"""
"""Notes in a page when the first element of a selector was drawn, in milliseconds since
the navigation began.
"""


def find_chromium() -> str | None:
    """Return the path of the browser, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    return None


class Shown(NamedTuple):
    """How long a reader waits for a page, in milliseconds.

    Attributes:
        by_browser: from the start of the navigation until the browser has drawn the
            elements, by its own clock.
        by_benchmark: from the command to the browser until the benchmark knows of them.
            That includes the start of a process of Chromium for the page, and the
            messages between both.
    """

    by_browser: float
    by_benchmark: float


def first_shown(
    chromium: str, address: str, selector: str, before: str | None = None
) -> Shown:
    """Return how long the first of some elements takes to appear, as medians.

    The browser runs already, and has nothing of the site in its cache.

    Args:
        chromium: the path of the browser.
        address: the address of the page.
        selector: the selector of the elements.
        before: another page of the site, which the reader has read before; its style
            sheets are in the cache then.
    """
    visits = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(VISITS):
            # A new context has an empty cache.
            context = browser.new_context()
            context.add_init_script(NOTE_WHEN_SHOWN % json.dumps(selector))
            page = context.new_page()
            if before is not None:
                page.goto(before)
            visits.append(_visit(page, address, selector))
            context.close()
        browser.close()
    by_browser = median(visit.by_browser for visit in visits)
    by_benchmark = median(visit.by_benchmark for visit in visits)
    return Shown(by_browser, by_benchmark)


def _visit(page: Page, address: str, selector: str) -> Shown:
    """Go to an address, and return how long the elements take to appear."""
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(selector)
    seconds = time.perf_counter() - started
    # The script in the page has noted the time of the browser's own clock.
    noted = page.locator("html[data-shown]").get_attribute("data-shown")
    assert noted is not None
    return Shown(by_browser=float(noted), by_benchmark=1000 * seconds)


if __name__ == "__main__":
    chromium = find_chromium()
    if chromium is None:
        sys.exit("no Chromium here")
    print(chromium)
