"""Answers with rows are the same as a table, JSON, CSV and Markdown."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.cli.main import COMMANDS
from spack_cache_db.cli.tables import Heading, print_answer
from spack_cache_db.query.answers.diff import diff
from spack_cache_db.query.rows import Rows
from tests import graphs
from tests.commands import run
from tests.indexes import REAL_FILE
from tests.package_data import REAL
from tests.pagetexts import SAMPLES

SNAPSHOT = "develop-2025-04-20"
BRANCH = "develop"
TABLES = {
    "releases": """
SELECT name, kind, date, package_count, spec_count FROM releases ORDER BY position""",
    "stacks": """
SELECT name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name""",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database of the sample pages, a real index and package data."""
    output = tmp_path_factory.mktemp("forms") / "x.db"
    build([SAMPLES, REAL_FILE, REAL], output)
    return output


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    """Return the rows that a command prints as JSON."""
    found: list[dict[str, Any]] = json.loads(run(*arguments, "--json").stdout)
    return found


def table_of(text: str) -> list[dict[str, str]]:
    """Return the rows of CSV."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def cell(name: str, value: Any) -> str:
    """Return a value of JSON as a cell of CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        separator = "; " if name == "differences" else " "
        return separator.join(value)
    return str(value)


def cells(row: dict[str, Any]) -> dict[str, str]:
    """Return a row of JSON as a row of CSV."""
    return {name: cell(name, value) for name, value in row.items()}


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("releases",), 0),
        (("stacks",), 0),
        (("deps", "USER"), 0),
        (("dependents", "USED"), 0),
        (("find", "py-mpi4py"), 0),
        (("find", "py-mpi4py", "--hashes"), 0),
        (("find", "gmake", "--hashes"), 0),
        (("history", "py-ml-dtypes target=x86_64_v3"), 0),
        (("history", "py-ml-dtypes@99"), 1),
        (("behind",), 1),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else str(words),
)
def test_every_form_has_the_same_rows(
    command: tuple[str, ...], status: int, file: Path
) -> None:
    """In the same order, with the same exit status; the table has the first column of
    each row.
    """
    user, needs = max(graphs.edges().items(), key=lambda each: len(each[1]))
    words = [
        {"USER": user, "USED": next(iter(needs))}.get(word, word) for word in command
    ]

    plain = run(*words, file)
    as_json = run(*words, file, "--json")
    as_csv = run(*words, file, "--csv")

    assert {result.exit_code for result in (plain, as_json, as_csv)} == {status}
    rows = json.loads(as_json.stdout)
    assert rows
    assert table_of(as_csv.stdout) == [cells(row) for row in rows]
    if command[0] not in ("find", "history"):
        lines = plain.stdout.splitlines()
        first = next(iter(rows[0]))
        assert [line.split()[0] for line in lines] == [
            first,
            *(row[first] for row in rows),
        ]


@pytest.mark.parametrize(
    ("options", "package"),
    [((), None), (("--package", "py-ml-dtypes"), "py-ml-dtypes")],
)
def test_differences(options: tuple[str, ...], package: str | None, file: Path) -> None:
    """JSON and CSV are the answer of Python; people get the totals, and what is new or
    gone.
    """
    command = ("diff", SNAPSHOT, BRANCH, file, *options)
    found = diff(file, SNAPSHOT, BRANCH, package=package)

    as_json = json.loads(run(*command, "--json").stdout)
    assert as_json == json.loads(json.dumps(found.as_dict()))
    as_csv = table_of(run(*command, "--csv").stdout)
    rows = json.loads(json.dumps(found.rows.records))
    assert as_csv == [cells(row) for row in rows]
    for form in ((), ("--markdown",)):
        text = run(*command, *form).stdout
        assert f"{found.specs.added:,} added" in text
        for name in (*found.packages.added[:40], *found.packages.removed[:40]):
            assert name in text


@pytest.mark.parametrize(
    "command",
    [
        ("find", "zlib", "--json", "--csv"),
        ("find", "zlib", "--csv", "--install"),
        ("find", "zlib", "--here", "--host=zen3"),
        ("history", "zlib", "--json", "--csv"),
        ("behind", "--json", "--markdown"),
        ("diff", BRANCH, BRANCH, "--csv", "--markdown"),
        ("cover", "-", "--json", "--keeplist"),
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other(command: tuple[str, ...], file: Path) -> None:
    """Two formats at once are an error."""
    words = [word for word in command if not word.startswith("--")]
    result = run(*words[:3], file, *command[len(words) :])
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


@pytest.mark.parametrize("command", ["deps", "dependents"])
@pytest.mark.parametrize("prefix", ["", "/", "nothing", "/2"])
def test_a_hash_has_to_name_one_spec(
    command: str, prefix: str, real_index_file: Path
) -> None:
    """Otherwise the status is 2, and the message names the hashes that begin so."""
    result = run(command, prefix, real_index_file)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert ("several hashes" in result.stderr) == (prefix == "/2")


def test_an_error_has_one_status_in_every_command(tmp_path: Path) -> None:
    """What is no database ends each command that reads one with status 2."""
    none = tmp_path / "none.db"
    first = {
        "find": ["zlib"],
        "diff": ["a", "b"],
        "deps": ["abc"],
        "dependents": ["abc"],
    }
    first["cover"] = [str(Path(__file__))]

    for name in sorted(COMMANDS.keys() - {"build", "check", "fetch", "site", "serve"}):
        rest = [str(tmp_path)] if name == "verify" else []
        result = run(name, *first.get(name, []), none, *rest)
        assert (name, result.exit_code) == (name, 2), result.output


@pytest.mark.parametrize(
    ("no_colour", "is_coloured"), [(None, True), ("", True), ("1", False)]
)
def test_colours_are_for_terminals(
    no_colour: str | None, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe does not get them, nor does a terminal of a user who set NO_COLOR."""
    lines = (Heading("name"), "near  a\x1b", "Packages removed: 1", "  near  b", "near")
    plain = "name\nnear  a\\x1b\nPackages removed: 1\n  near  b\nnear\n"
    coloured = (
        "\x1b[1mname\x1b[0m\n\x1b[33mnear\x1b[0m  a\\x1b\n"
        "\x1b[31mPackages removed\x1b[0m: 1\n  near  b\nnear\n"
    )

    for is_terminal in (False, True):
        output = io.StringIO()
        monkeypatch.setattr(
            output, "isatty", lambda is_terminal=is_terminal: is_terminal
        )
        monkeypatch.setattr("sys.stdout", output)
        if no_colour is None:
            monkeypatch.delenv("NO_COLOR", raising=False)
        else:
            monkeypatch.setenv("NO_COLOR", no_colour)
        colours = {"near": "yellow", "removed": "red"}
        print_answer({}, lambda: Rows((), ()), lines, colours=colours)
        assert output.getvalue() == (coloured if is_terminal and is_coloured else plain)
