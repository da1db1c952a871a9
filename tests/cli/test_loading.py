"""What each command loads: nothing that takes long and that it does not need."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from spack_cache_db import build
from spack_cache_db.cli.main import COMMANDS, cli
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.processes import completed

QUERY = (
    "sqlite3",
    *(f"spack_cache_db.{name}" for name in ("api", "query.database", "spack.parser")),
)
HEAVY = {
    "asyncio", "datasette", "httpx", "msgspec", "multiprocessing", "numpy",
    "sqlite_utils", "tarfile", "uvicorn", "yaml", "zstandard", *QUERY,
}  # fmt: skip
SERVERS = {"httpx", "datasette", "uvicorn"}
PROGRAM = f"""
import json, sys
from spack_cache_db.cli.main import cli
loaded = []
for arguments in json.loads(sys.argv[1]):
    try:
        cli.main(arguments)
    except SystemExit as ended:
        assert ended.code in (None, 0, 1, 2), ended.code
    loaded.append(sorted({{*{sorted(HEAVY)!r}}} & {{*sys.modules}}))
print()
print(json.dumps(loaded))
"""


def loaded_by_each(*commands: Sequence[object]) -> dict[str, list[str]]:
    """Run commands in one process; return which of the heavy packages were loaded after
    each.
    """
    words = [list(map(str, command)) for command in commands]
    done = completed([sys.executable, "-c", PROGRAM, json.dumps(words)])
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(map(" ".join, words), found, strict=True))


@pytest.mark.slow
def test_what_is_only_said_needs_nothing() -> None:
    """Neither a version nor the help of any command waits: so a shell may complete its
    options.
    """
    found = loaded_by_each(
        ["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)
    )

    assert {command: packages for command, packages in found.items() if packages} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "needed", "never"),
    [
        ("find --install --here * FILE", set(), HEAVY),
        ("find py-mpi4py+nothing FILE --json", set(), HEAVY),
        ("cover SPECS FILE", set(), HEAVY),
        ("info FILE", set(), HEAVY),
        ("cover MANIFEST FILE", {"yaml"}, HEAVY - {"yaml"}),
        (
            "build PAGES -o OUTPUT --jobs 1",
            {"numpy", "msgspec", "sqlite_utils"},
            SERVERS,
        ),
        ("verify FILE PAGES --jobs 1", {"msgspec"}, SERVERS),
        (
            "fetch http://127.0.0.1:1/v1 -o OUT --retries 0",
            {"httpx"},
            {"numpy", "datasette"},
        ),
        # uvicorn only with --proxy.
        ("serve OUTPUT", {"datasette"}, set()),
    ],
)
def test_each_command_loads_what_it_needs(
    command: str, needed: set[str], never: set[str], samples_file: Path, tmp_path: Path
) -> None:
    """And no more: a question waits for nothing that builds, fetches or serves."""
    words: dict[str, object] = {
        "MANIFEST": tmp_path / "spack.yaml",
        "FILE": samples_file,
    }
    words |= {"PAGES": SAMPLES, "OUTPUT": tmp_path / "x.db", "OUT": tmp_path}
    words["SPECS"] = tmp_path / "specs.txt"
    (tmp_path / "specs.txt").write_text("py-mpi4py@4\npy-mpi4py@99\n")
    (tmp_path / "spack.yaml").write_text("spack:\n  specs: [py-mpi4py]\n")
    (found,) = loaded_by_each(
        [words.get(word, word) for word in command.split()]
    ).values()

    assert needed <= set(found)
    assert never.isdisjoint(set(found) - set(QUERY))


def test_a_night_with_nothing_new_loads_nothing_that_builds(tmp_path: Path) -> None:
    """It takes little more than hashing the sources."""
    output = tmp_path / "x.db"
    build(SAMPLES, output)

    (found,) = loaded_by_each(["build", SAMPLES, "-o", output]).values()

    assert set(found).isdisjoint({"numpy", "sqlite_utils", "yaml", "zstandard"})


@pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if command.extra]
)
def test_a_missing_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what its extra installs, a command says in one line what to install."""

    def callback(**_: object) -> None:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    monkeypatch.setattr(command, "callback", callback)
    monkeypatch.setattr(command, "params", [])
    result = run(name)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {name} needs numpy, which is not installed; "
        f"install the extra `{COMMANDS[name].extra}`\n"
    )


def test_help_is_the_first_sentence_of_each_command() -> None:
    """The list of commands has it without importing them."""
    for name, described in COMMANDS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert described.help == command.get_short_help_str(100)
