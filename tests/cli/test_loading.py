"""What each command loads: nothing that takes long and that it does not need."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from spack_cache_db.cli import COMMANDS, cli
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.processes import completed

HEAVY = {
    *("asyncio", "datasette", "httpx", "msgspec", "multiprocessing", "numpy", "sqlite_utils"),
    *("tarfile", "uvicorn", "yaml", "zstandard"),
}
PROGRAM = f"""
import sys
from spack_cache_db.cli import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    assert ended.code in (None, 0, 1, 2), ended.code
print(*({{*{sorted(HEAVY)!r}}} & {{*sys.modules}}))
"""


def loaded(*arguments: object) -> set[str]:
    """Return which of the heavy packages a command has loaded when it ends."""
    done = completed([sys.executable, "-c", PROGRAM, *map(str, arguments)])
    assert done.returncode == 0, done.stderr
    return {*done.stdout.splitlines()[-1].split()}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["site"]])
def test_what_is_only_said_needs_nothing(arguments: list[str]) -> None:
    """Neither a version nor the list of commands waits for what the commands need."""
    assert loaded(*arguments) == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_nothing(command: str) -> None:
    """Nor does the help of any command, so a shell may complete its options."""
    assert loaded(command, "--help") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["find", "*"],
        ["find", "--json", "py-mpi4py"],
        ["find", "--csv", "--hashes", "py-mpi4py"],
        ["find", "--install", "--here", "*"],
        ["find", "py-mpi4py+nothing"],
        ["cover", "SPECS"],
        ["info"],
        ["info", "--json"],
    ],
    ids=" ".join,
)
def test_what_reads_a_file_needs_sqlite_alone(
    command: list[str], samples_file: Path, tmp_path: Path
) -> None:
    """Whoever asks a question waits for nothing that builds, fetches or serves."""
    specs = tmp_path / "specs.txt"
    specs.write_text("py-mpi4py@4\npy-mpi4py@99\n")
    arguments = [specs if each == "SPECS" else each for each in command]
    assert loaded(*arguments, samples_file) == set()


@pytest.mark.slow
def test_each_other_command_loads_what_it_needs(samples_file: Path, tmp_path: Path) -> None:
    """And no more; so what is compared above can be another."""
    manifest = tmp_path / "spack.yaml"
    manifest.write_text("spack:\n  specs: [py-mpi4py]\n")

    covered = loaded("cover", manifest, samples_file)
    built = loaded("build", SAMPLES, "-o", tmp_path / "x.db", "--jobs", 1)
    checked = loaded("check", SAMPLES, "--jobs", 1)
    verified = loaded("verify", samples_file, SAMPLES, "--jobs", 1)
    fetched = loaded("fetch", "http://127.0.0.1:1/v1", "-o", tmp_path, "--retries", 0)
    served = loaded("serve", tmp_path / "none.db")

    assert covered == {"yaml"}
    assert {"numpy", "msgspec", "sqlite_utils"} <= built
    assert built.isdisjoint({"httpx", "datasette", "uvicorn"})
    assert "msgspec" in checked
    assert checked.isdisjoint({"httpx", "datasette", "uvicorn"})
    assert "msgspec" in verified
    assert verified.isdisjoint({"httpx", "datasette", "uvicorn"})
    assert "httpx" in fetched
    assert fetched.isdisjoint({"numpy", "sqlite_utils", "datasette", "uvicorn"})
    assert {"datasette", "uvicorn"} <= served


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.extra])
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
        f"install it with: pip install 'spack-cache-db[{COMMANDS[name].extra}]'\n"
    )
