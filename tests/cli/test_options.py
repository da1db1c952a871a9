"""cli.options: what the commands that read an input share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spack_cache_db.errors import counted
from tests.commands import run
from tests.pagetexts import SAMPLES, page, write


@pytest.mark.parametrize(
    ("size", "accepted"), [("4000", True), ("4K", True), ("200", False), ("1G", True)]
)
def test_the_limit_is_given_in_bytes_or_with_a_unit(
    size: str, accepted: bool, tmp_path: Path
) -> None:
    """K, M and G are powers of 1024."""
    folder = write(tmp_path / "pages", a=page())
    result = run("build", folder, "-o", tmp_path / "x.db", "--max-page-size", size)
    assert (result.exit_code == 0) is accepted, result.output


@pytest.mark.parametrize("size", ["0", "-1", "K", "ten", "1T", ""])
def test_a_limit_that_is_no_size_is_a_usage_error(size: str, tmp_path: Path) -> None:
    """Exit status 2 and a message that says what a size looks like."""
    result = run("build", SAMPLES, "-o", tmp_path / "x.db", "--max-page-size", size)
    assert result.exit_code == 2
    assert "is not a size, expected bytes such as 500000, 64M or 1G" in result.output


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


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (110306, "110,306 pages")]
)
def test_numbers_have_their_word(number: int, text: str) -> None:
    """In the singular for one, with commas for thousands."""
    assert counted(number, "page") == text


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_are_a_number_from_one(jobs: str) -> None:
    """Anything else is a usage error."""
    result = run("check", SAMPLES, "--jobs", jobs)
    assert result.exit_code == 2
    assert "Invalid value for '--jobs'" in result.stderr


def test_a_pipe_has_no_progress_bar() -> None:
    """Nothing but errors goes to standard error there."""
    result = run("check", SAMPLES)
    assert (result.exit_code, result.stderr) == (0, "")


def test_the_only_database_need_not_be_named(
    samples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FILE is what SPACK_CACHE_DB names, or else the one of ours in `dist/` or in this folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    none = run("info")
    assert (none.exit_code, "there is none in dist/ and the current folder" in none.stderr) == (
        2,
        True,
    )

    monkeypatch.setenv("SPACK_CACHE_DB", str(samples_file))
    expected = run("info", samples_file).stdout
    assert run("info").stdout == expected
    monkeypatch.delenv("SPACK_CACHE_DB")

    (tmp_path / "dist").mkdir()
    shutil.copy(samples_file, tmp_path / "dist" / "a.db")
    assert run("find", "py-mpi4py").exit_code == 0
    shutil.copy(samples_file, tmp_path / "b.db")
    assert "there are 2 in dist/ and the current folder" in run("find", "py-mpi4py").stderr
