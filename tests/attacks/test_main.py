"""`python -m attacks`, two seconds of each kind: it finds nothing, and it still runs."""

from __future__ import annotations

import re
import sys

import pytest

from attacks.__main__ import KINDS
from tests.paths import ROOT
from tests.programs import completed

OTHERS = {"endings": "tests/cli/test_serve.py ends servers with work under way"}
"""Kinds that other tests run."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in OTHERS])
def test_a_short_attack_holds(kind: str) -> None:
    """Each kind tries something of its own, all of which holds."""
    command = [sys.executable, "-m", "attacks", kind, "--seconds", "2"]
    done = completed(command, cwd=ROOT)
    (tried,) = re.findall(r"^\| .*?\| +([\d,]+) \|", done.stdout, re.MULTILINE)

    assert done.returncode == 0, done.stdout
    assert int(tried.replace(",", "")) > 0
