"""cli.input_options: what the commands that read an input share."""

import shutil
from pathlib import Path

import pytest

from spack_cache_db.cli.main import COMMANDS
from tests.commands import run
from tests.pagetexts import SAMPLES, page, write


@pytest.mark.parametrize(
    ("size", "status", "said"),
    [
        ("4000", 0, ""),
        ("4K", 0, ""),
        ("1g", 0, ""),
        ("200", 1, "expected at most 200 (--max-page-size)"),
        *(
            (size, 2, "is not a size, expected bytes such as")
            for size in ("0", "-1", "K", "1T", "")
        ),
    ],
)
def test_sizes_are_bytes_or_have_a_unit(
    size: str, status: int, said: str, tmp_path: Path
) -> None:
    """K, M and G are powers of 1024."""
    folder = write(tmp_path / "pages", a=page())
    result = run("check", folder, "--max-page-size", size)
    assert result.exit_code == status
    assert said in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", SAMPLES, "-o", ""),
        ("build", "", "-o", "x.db"),
        ("check", ""),
        ("fetch", "https://host/a", "-o", ""),
        ("find", "zlib", ""),
        ("info", ""),
        ("serve", ""),
        ("verify", "", SAMPLES),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_empty_path_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    """A variable of a script that is not set is not the folder that one stands in."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert "it is empty, expected a path" in result.stderr


def test_the_only_database_need_not_be_named(
    samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FILE is what SPACK_CACHE_DB names, or else the one of ours in `dist/` or in this
    folder.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    none = run("info")
    assert none.exit_code == 2
    assert "there is none in dist/ and the current folder" in none.stderr

    monkeypatch.setenv("SPACK_CACHE_DB", str(samples_file))
    expected = run("info", samples_file).stdout
    assert run("info").stdout == expected
    monkeypatch.delenv("SPACK_CACHE_DB")

    (tmp_path / "dist").mkdir()
    shutil.copy(samples_file, tmp_path / "dist" / "a.db")
    assert run("find", "py-mpi4py").exit_code == 0
    shutil.copy(samples_file, tmp_path / "b.db")
    assert (
        "there are 2 in dist/ and the current folder" in run("find", "py-mpi4py").stderr
    )


def test_every_summary_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 columns each command has one line, which ends with its
    sentence.
    """
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()

    assert [line.split()[0] for line in lines] == sorted(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fnd", "find"), ("covers", "cover"), ("serv", "serve"), ("Build", "build")],
)
def test_an_unknown_command_names_the_closest(typed: str, meant: str) -> None:
    """It ends with status 2; where nothing is close, nothing is named."""
    result = run(typed)
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.stderr
    assert "Did you mean" not in run("xyzzy").stderr
