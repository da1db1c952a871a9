"""The ratios of builds are held against the stored ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import ratios


def test_only_growth_by_more_than_a_tenth_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check names each ratio that grew by more than a tenth, and passes without one."""
    stored = tmp_path / "ratios.json"
    stored.write_text(json.dumps({"time": 4.0, "size": 0.2}))
    monkeypatch.setattr(ratios, "STORED", stored)

    def checked(time: float, size: float) -> tuple[int, str]:
        found = [("time", time), ("size", size)]
        monkeypatch.setattr(ratios, "ratios", lambda *_: iter(found))
        result = CliRunner().invoke(ratios.main, ["--dir", str(tmp_path)])
        return result.exit_code, result.output.splitlines()[-1]

    assert checked(4.39, 0.1)[0] == 0
    code, message = checked(4.41, 0.21)
    assert (code, "time" in message, "size" in message) == (1, True, False)
