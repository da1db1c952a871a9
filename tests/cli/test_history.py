"""cli: the history of a spec, on the sample pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from spack_cache_db.query.answers import history
from tests.commands import run

SPEC = "py-ml-dtypes target=x86_64_v3"


def test_json_and_csv_are_the_answer_of_python(samples_file: Path) -> None:
    """Both print the rows that `history` returns."""
    expected = [each.as_dict() for each in history(samples_file, SPEC).releases]
    assert json.loads(run("history", SPEC, samples_file, "--json").stdout) == expected
    rows = [*csv.DictReader(run("history", SPEC, samples_file, "--csv").stdout.splitlines())]
    assert rows == [
        {name: "" if value is None else str(value) for name, value in each.items()}
        for each in expected
    ]


def test_table_has_a_line_for_each_release(samples_file: Path) -> None:
    """The table for people says the same, with the newest release at the end."""
    lines = run("history", SPEC, samples_file).stdout.splitlines()
    names = [each.release for each in history(samples_file, SPEC).releases]
    assert [line.split()[0] for line in lines[-len(names) :]] == names


def test_nothing_found_is_explained(samples_file: Path) -> None:
    """Where no release has such a spec the status is 1, and a note says what exists."""
    result = run("history", "py-ml-dtypes@99", samples_file, "--json")
    assert result.exit_code == 1
    assert {row["specs"] for row in json.loads(result.stdout)} == {0}
    assert "without @99" in result.stderr


@pytest.mark.parametrize(
    "wrong", [("py-ml-dtypes@",), ("*", "--stack", "no-such"), ("*", "--json", "--csv")]
)
def test_what_cannot_be_answered_is_an_error(samples_file: Path, wrong: tuple[str, ...]) -> None:
    """A text that is no spec, an unknown stack and two formats at once have status 2."""
    result = run("history", wrong[0], samples_file, *wrong[1:])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
