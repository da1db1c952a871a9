"""The browser's tests on a machine without one: left out, and never in silence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from benchmarks.chromium import FLAGS, find_chromium

COMMAND = "apt-get install -y chromium"
LEFT_OUT = "there is no Chromium here"
_left_out: list[str] = []


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    found = find_chromium()
    if found is None:
        pytest.skip(LEFT_OUT)
    return found


@contextmanager
def started(chromium: str) -> Iterator[Browser]:
    """Run the browser while the context lasts.

    Playwright has an event loop of its own, so no test with asyncio may run meanwhile.
    """
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that were left out, by whichever process."""
    if report.skipped and LEFT_OUT in str(report.longrepr):
        _left_out.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything has to be tested, a test that was left out is a failure."""
    if _left_out and session.exitstatus == pytest.ExitCode.OK and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> Iterator[None]:
    """Say it in the last line."""
    yield
    if _left_out and not hasattr(config, "workerinput"):
        print(f"\nNOT TESTED: {len(_left_out)} tests of the site, {LEFT_OUT}. Run: {COMMAND}")
