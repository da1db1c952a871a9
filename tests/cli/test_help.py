"""cli: what `--help` says, and what a wrong command is told."""

from __future__ import annotations

import pytest

from spack_cache_db.cli import COMMANDS
from tests.commands import run


def test_every_summary_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 columns each command has one line, which ends with its sentence."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()

    assert [line.split()[0] for line in lines] == sorted(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fnd", "find"), ("covers", "cover"), ("serv", "serve"), ("Build", "build")],
)
def test_an_unknown_command_names_the_closest(typed: str, meant: str) -> None:
    """It ends with status 2; where nothing is close, nothing is named."""
    result = run(typed)
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.stderr
    assert "Did you mean" not in run("xyzzy").stderr
