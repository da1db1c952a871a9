"""environments: files as centres and projects write them, and what each asks for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from spack_cache_db.environments import Surroundings, ways
from spack_cache_db.environments.formats import read_environment
from tests.environments.asked import asked_text

DATA = Path(__file__).parents[1] / "data" / "written_environments.txt"
CASES = re.findall(
    r"^=== (.+)\n((?:(?!--- asks).*\n)*)--- asks\n((?:(?!=== ).*\n)*)",
    DATA.read_text("utf-8"),
    re.M,
)
HERE = {"platform": "linux", "os": "rhel8", "target": "zen3", "hostname": "login-1"}


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_an_environment_asks_what_its_author_meant(text: str, expected: str) -> None:
    """Sections of every Spack since 0.13, comments and spellings that Spack reads are read."""
    found = read_environment(
        text.encode(), "spack.yaml", surroundings=Surroundings(names=HERE, env={})
    )

    asked = (
        [asked_text(replace(spec, query=way)) for way in ways(spec.query, spec.rules)]
        if spec.query is not None and spec.group != "require"
        else [asked_text(spec)]
        for spec in found.specs
    )
    assert "".join(f"{' or '.join(ways)}\n" for ways in asked) == expected
    assert all(each.error is None for each in found.specs)
