"""A machine without Chromium is told so, in the last line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.browser import COMMAND
from tests.paths import ROOT

ONE = "tests/site/test_browser.py::test_from_search_to_a_hash"


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "workers", "status"), [("", "0", 0), ("true", "1", 1)])
def test_a_missing_browser_is_never_passed_over(ci: str, workers: str, status: int) -> None:
    """Without Chromium its tests are skipped, the last line says so, and CI counts a failure."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", workers, ONE],
        cwd=ROOT,
        env={**os.environ, "PATH": "/nowhere", "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == status, ran.stdout
    last = ran.stdout.rstrip().splitlines()[-1]
    assert last.startswith("NOT TESTED: ")
    assert last.endswith(COMMAND)
