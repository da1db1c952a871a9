"""Programs that tests run: installed if they can be, and a missing one is reported."""

from __future__ import annotations

import pytest

from tests.programs import needed

ONE = """def test_one(chromium):
    pass
"""


INSTALL = "apt-get install -y --no-install-recommends nginx-light"


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the package that has it, and the test is left out."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(
        pytest.skip.Exception,
        match=f"no nginy here: {INSTALL}",
    ):
        needed("nginy", "nginx-light")


def test_a_missing_program_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, all that the tests need is installed."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=INSTALL):
        needed("nginy", "nginx-light")
