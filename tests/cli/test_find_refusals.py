"""cli.find: where there is no answer it says why, and with which exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spack_cache_db.cli import cli


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli, ["find", *map(str, arguments)])


@pytest.mark.parametrize(
    ("spec", "options", "status", "said"),
    [
        ("py-mpi4pi", (), 1, "py-mpi4pi: no package has this name (near: py-mpi4py)"),
        ("zzzz", (), 1, "zzzz: no package has this name\n"),
        (
            "py-mpi4py target=zen3",
            (),
            1,
            "with target=:zen3: 4 configurations; x86_64_v3 runs on zen3",
        ),
        ("py-mpi4py@99:", (), 1, "no binary in this database satisfies this spec"),
        ("py-mpi4py@99:", (), 1, "no version 99: of py-mpi4py: newest 4.0.1"),
        (
            "py-mpi4py %gcc target=:zen3",
            (),
            2,
            "before the '%'; perhaps you mean: py-mpi4py target=:zen3 %gcc",
        ),
        ("py-mpi4py", ("--here", "--host", "zen3"), 2, "exclude each other"),
        ("py-mpi4py@@4", (), 2, "  py-mpi4py@@4\n           ^\n"),
        ("", (), 2, "expected a package name"),
        ("py-mpi4py ^openmpi", (), 2, "this file has no dependency data"),
        ("mpi", (), 2, "virtual package"),
        ("py-mpi4py", ("--release", "devlop"), 2, "no release is called 'devlop'; close: develop"),
        ("py-mpi4py", ("--stack", "e4"), 2, "no stack is called 'e4'; close: e4s"),
        ("py-mpi4py", ("--json", "--csv"), 2, "exclude each other"),
        ("py-mpi4py", ("--json", "--install"), 2, "exclude each other"),
        ("py-mpi4py", ("--limit", "0"), 2, "--limit"),
    ],
)
def test_no_rows(
    samples_file: Path, spec: str, options: tuple[str, ...], status: int, said: str
) -> None:
    """Without rows standard output is empty, and standard error says why."""
    result = run(spec, samples_file, *options)

    assert result.exit_code == status, result.output
    assert said in result.stderr
    assert result.stdout == ""
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("content", [None, b"text", b"SQLite format 3\0" + b"\1" * 4096])
def test_no_database(tmp_path: Path, content: bytes | None) -> None:
    """A file that is no database is an error, status 2."""
    file = tmp_path / "some.db"
    if content is not None:
        file.write_bytes(content)

    result = run("hdf5", file)

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"Error: {file}")


def test_a_damaged_file(samples_file: Path, tmp_path: Path) -> None:
    """A file that is damaged inside is an error, not a traceback."""
    whole = samples_file.read_bytes()
    file = tmp_path / "damaged.db"
    file.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    result = run("hdf5", file)

    assert result.exit_code == 2, result.output
    assert "damaged" in result.stderr
