"""cli.contents: releases, stacks, and what specs depend on."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.cli import COMMANDS
from spack_cache_db.cli.output import Heading, print_answer
from spack_cache_db.row_forms import Rows
from tests import graphs
from tests.commands import run

TABLES = {
    "releases": """
SELECT name, kind, date, package_count, spec_count FROM releases ORDER BY position""",
    "stacks": """
SELECT name, release_count, spec_count FROM stacks WHERE NOT is_root ORDER BY name""",
}


def rows(*arguments: object) -> list[dict[str, Any]]:
    """Return what a command prints as JSON."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", TABLES)
def test_a_list_has_each_row_of_its_table(name: str, all_samples_file: Path) -> None:
    """JSON, CSV and the table for people have the same rows, in the same order."""
    connection = sqlite3.connect(all_samples_file)
    expected = connection.execute(TABLES[name]).fetchall()
    connection.close()

    as_csv = [*csv.DictReader(io.StringIO(run(name, all_samples_file, "--csv").stdout))]
    lines = run(name, all_samples_file).stdout.splitlines()

    found = rows(name, all_samples_file)
    assert [tuple(each.values()) for each in found] == expected
    assert as_csv == [
        {key: "" if value is None else str(value) for key, value in each.items()} for each in found
    ]
    assert [line.split()[0] for line in lines] == ["name", *(each["name"] for each in found)]


def test_dependencies_are_those_of_the_index(real_index_file: Path) -> None:
    """Direct ones have their types; what is linked or run at any depth follows without types."""
    edges = graphs.edges()
    for dag_hash in sorted(edges, key=lambda each: -len(edges[each]))[:300:30]:
        found = {each["hash"]: each["types"] for each in rows("deps", dag_hash, real_index_file)}

        assert found.keys() == graphs.dependencies(dag_hash)
        direct = {each: types for each, types in found.items() if types}
        assert {each: {*types.split(",")} for each, types in direct.items()} == edges[dag_hash]
        assert [*found][: len(direct)] == [*direct]


def test_dependents_are_the_other_end_of_dependencies(real_index_file: Path) -> None:
    """Whoever uses a spec directly is listed with the types, and who links or runs it without."""
    edges = graphs.edges()
    for dag_hash in sorted(edges)[::90]:
        shown = json.loads(run("dependents", dag_hash, real_index_file, "--json").stdout)
        found = {each["hash"]: each["types"] for each in shown}

        direct = {each: needs[dag_hash] for each, needs in edges.items() if dag_hash in needs}
        others = {each for each in edges if dag_hash in graphs.run_time(each)} - {dag_hash}
        assert found.keys() == direct.keys() | others
        assert {each: {*types.split(",")} for each, types in found.items() if types} == direct


@pytest.mark.parametrize("command", ["deps", "dependents"])
@pytest.mark.parametrize("prefix", ["", "/", "nothing", "/2"])
def test_a_hash_has_to_name_one_spec(command: str, prefix: str, real_index_file: Path) -> None:
    """Otherwise the status is 2, and the message names the hashes that begin so."""
    result = run(command, prefix, real_index_file)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert ("several hashes" in result.stderr) == (prefix == "/2")


def test_a_spec_of_pages_has_no_dependencies_that_are_known(samples_file: Path) -> None:
    """A note says that nothing tells of them."""
    (first, *_) = json.loads(run("find", "*", samples_file, "--hashes", "--json").stdout)
    result = run("deps", f"/{first['hash'][:12]}", samples_file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"Note: the dependencies of /{first['hash'][:12]} are not known"
    )


def test_an_error_has_one_status_in_every_command(tmp_path: Path) -> None:
    """What is no database ends each command that reads one with status 2."""
    none = tmp_path / "none.db"
    first = {"find": ["zlib"], "diff": ["a", "b"], "deps": ["abc"], "dependents": ["abc"]}
    first["cover"] = [str(Path(__file__))]
    reading = COMMANDS.keys() - {"build", "check", "fetch", "site", "serve"}
    for name in sorted(reading):
        rest = [str(tmp_path)] if name == "verify" else []
        result = run(name, *first.get(name, []), none, *rest)
        assert (name, result.exit_code) == (name, 2), result.output


@pytest.mark.parametrize(("no_colour", "is_coloured"), [(None, True), ("", True), ("1", False)])
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
        monkeypatch.setattr(output, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr("sys.stdout", output)
        if no_colour is None:
            monkeypatch.delenv("NO_COLOR", raising=False)
        else:
            monkeypatch.setenv("NO_COLOR", no_colour)
        colours = {"near": "yellow", "removed": "red"}
        print_answer({}, lambda: Rows((), ()), lines, colours=colours)
        assert output.getvalue() == (coloured if is_terminal and is_coloured else plain)
