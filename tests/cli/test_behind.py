"""`behind`: a table, JSON, CSV or Markdown, and a status that a script can ask for."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from spack_cache_db.build import build
from tests.commands import run
from tests.package_data import REAL
from tests.pagetexts import SAMPLES


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database of the sample pages and of package data."""
    output = tmp_path_factory.mktemp("behind") / "x.db"
    build([SAMPLES, REAL], output)
    return output


def test_every_form_has_the_same_rows(file: Path) -> None:
    """Exit status 1, because something is behind."""
    results = {form: run("behind", file, *form) for form in ((), ("--json",), ("--csv",))}
    assert {each.exit_code for each in results.values()} == {1}
    (row,) = json.loads(results["--json",].stdout)
    assert (row["name"], row["newest_version"], row["versions_behind"]) == ("py-mpi4py", "4.0.1", 4)
    (line,) = csv.DictReader(io.StringIO(results["--csv",].stdout))
    assert line == {name: "" if value is None else f"{value}" for name, value in row.items()}
    shown = results[()].stdout.splitlines()[1].split()
    assert shown == ["py-mpi4py", "4.0.1", row["latest_version"], "4", "91"]
    markdown = run("behind", file, "--markdown").stdout.splitlines()
    assert [cell.strip() for cell in markdown[2].strip("|").split("|")] == shown


def test_a_release_without_these_packages_is_no_answer(file: Path) -> None:
    """Nothing can be compared, which is not the same as nothing being behind."""
    result = run("behind", file, "--release", "develop-2025-04-20")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "so none can be compared" in result.stderr


@pytest.mark.parametrize(
    "options", [["--json", "--markdown"], ["--json", "--csv"], ["--stack", "nothing"]]
)
def test_errors_are_status_2(options: list[str], file: Path, samples_file: Path) -> None:
    """Forms that exclude each other, names that are not there, a file without package data."""
    assert run("behind", file, *options).exit_code == 2
    assert run("behind", samples_file).exit_code == 2
