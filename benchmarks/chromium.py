"""Find and start headless Chromium, for benchmarks and tests.

`python -m benchmarks.chromium` prints the path of the browser, or exits with status 1.
"""

from __future__ import annotations

import shutil
import sys
import time
from statistics import median

from playwright.sync_api import sync_playwright

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


def find_chromium() -> str | None:
    """Return the path of the browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def first_shown(chromium: str, address: str, selector: str, times: int = 5) -> float:
    """Return the median milliseconds until a page shows the first of some elements."""
    milliseconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(times):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_selector(selector)
            milliseconds.append((time.perf_counter() - start) * 1000)
            page.close()
        browser.close()
    return median(milliseconds)


if __name__ == "__main__":
    print(find_chromium() or "no Chromium here")
    sys.exit(find_chromium() is None)
