"""cli: what changed between two releases, on the sample pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from spack_cache_db.query.changes import diff
from tests.commands import run

SNAPSHOT, BRANCH = "develop-2025-04-20", "develop"


def test_exit_status_says_whether_anything_changed(samples_file: Path) -> None:
    """0 for no difference, 1 for some, 2 for what cannot be answered."""
    assert run("diff", BRANCH, BRANCH, samples_file).exit_code == 0
    assert run("diff", SNAPSHOT, BRANCH, samples_file).exit_code == 1
    for wrong in (("devel", BRANCH), (BRANCH, "develop:no-such"), (BRANCH, BRANCH, "--host", "x")):
        result = run("diff", *wrong[:2], samples_file, *wrong[2:])
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")


def test_json_is_the_answer_of_python(samples_file: Path) -> None:
    """`--json` prints the record that `diff` returns, with the options that narrow it."""
    result = run("diff", SNAPSHOT, BRANCH, samples_file, "--json", "--package", "py-ml-dtypes")
    found = diff(samples_file, SNAPSHOT, BRANCH, package="py-ml-dtypes")
    assert json.loads(result.stdout) == json.loads(json.dumps(found.as_dict()))


def test_csv_has_a_line_for_each_configuration(samples_file: Path) -> None:
    """Each changed configuration has the word for its change and its hashes counted."""
    rows = [
        *csv.DictReader(run("diff", SNAPSHOT, BRANCH, samples_file, "--csv").stdout.splitlines())
    ]
    found = diff(samples_file, SNAPSHOT, BRANCH)
    expected = [
        (change, *map(str, each.specs))
        for change, configurations in found.by_change.items()
        for each in configurations
    ]
    assert [(row["change"], row["kept"], row["added"], row["removed"]) for row in rows] == expected
    assert {"added", "grown"} <= {row["change"] for row in rows}


@pytest.mark.parametrize("form", [[], ["--markdown"]])
def test_report_names_what_changed(samples_file: Path, form: list[str]) -> None:
    """The report for people has the totals, and a line for each package that is new or gone."""
    text = run("diff", SNAPSHOT, BRANCH, samples_file, *form).stdout
    found = diff(samples_file, SNAPSHOT, BRANCH)
    assert f"{found.specs.added:,} added" in text
    for name in (*found.packages.added, *found.packages.removed):
        assert name in text


def test_formats_exclude_each_other(samples_file: Path) -> None:
    """Two formats at once are refused."""
    assert run("diff", BRANCH, BRANCH, samples_file, "--json", "--csv").exit_code == 2
