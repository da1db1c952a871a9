"""cli.build: faults and problems are told, and nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run
from tests.pagetexts import SAMPLES, page, write


def test_check_of_good_pages_says_so() -> None:
    """No fault, no problem, exit status 0."""
    result = run("check", SAMPLES)
    assert result.exit_code == 0, result.output
    assert result.stdout == "0 faults, 0 problems\n"


def test_check_tells_problems_without_failing(tmp_path: Path) -> None:
    """What does not add up is told; it is kept, so it is no fault."""
    folder = write(tmp_path, a=page(meta={"num_specs": 7}))
    result = run("check", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"{folder}/a.md: meta declares num_specs 7, the page lists 1",
        "0 faults, 1 problem",
    ]


def test_check_reports_for_machines(tmp_path: Path) -> None:
    """`--json` gives both lists."""
    folder = write(tmp_path, empty=b"")
    result = run("check", folder, SAMPLES, "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout) == {
        "faults": [f"{folder}/empty.md: the file is empty, expected a page that starts with ---"],
        "problems": [],
    }


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`check … | head` ends without a traceback."""
    folder = write(tmp_path, **{f"p{n}": page(f"p{n}", meta={"num_specs": 7}) for n in range(20)})
    command = [sys.executable, "-m", "spack_cache_db", "check", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
