"""The command `site`."""

from __future__ import annotations

from tests.commands import run
from tests.paths import ROOT


def test_it_prints_the_folder_alone() -> None:
    """Its output is a folder's path and nothing else, so that a shell can put it into a command."""
    result = run("site")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{ROOT}\n", "")
