"""Programs that tests run: installed if they can be, and a missing one is reported."""

from __future__ import annotations

import pytest

from tests.programs import needed


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_a_missing_program_is_named(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the package that has it; the test is skipped, or fails in CI."""
    monkeypatch.setenv("CI", ci)
    message = "apt-get install -y --no-install-recommends nginx-light"
    with pytest.raises(outcome, match=message):
        needed("nginy", "nginx-light")
