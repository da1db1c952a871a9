"""Faults are one line; a bug of ours is one as well, and everything else goes on."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from spack_cache_db.assembly.builds import build, check
from spack_cache_db.errors import TRACEBACK
from spack_cache_db.sources import readers
from spack_cache_db.sources.pages.reader import PageReader
from tests.commands import run
from tests.indexes import index, node, record
from tests.pagetexts import page

ERRORS = (
    ZeroDivisionError("of\n nobody"),
    KeyError("x"),
    MemoryError(),
    AssertionError(),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a page and an index."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_bytes(page())
    (tmp_path / "in" / "index.json").write_bytes(index(record(node("zlib"))))
    return tmp_path / "in"


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_a_bug_of_one_reader_hides_no_other_file(
    folder: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of one reader is told with the file's path; what the other reads is
    built.
    """

    def fail(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(readers, "add_indexes", fail)

    ((fault,), _) = check(folder)

    assert fault.path == str(folder / "index.json")
    assert str(fault).isprintable()
    assert ("please report it" in fault.message) == (not isinstance(error, MemoryError))
    report = build(folder, folder.parent / "x.db", keep_going=True)
    assert (report.pages, report.indexes, report.faults) == (1, 0, (fault,))


def test_tracebacks_are_shown_on_demand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The net is off: the exception comes as it is."""

    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(PageReader, "add", fail)
    result = run("check", "--jobs", "1", folder)
    assert result.exit_code == 1
    assert f"{folder}/a.md: unexpected ZeroDivisionError" in result.stderr

    monkeypatch.setenv(TRACEBACK, "")
    result = run("--traceback", "check", "--jobs", "1", folder)

    assert isinstance(result.exception, ZeroDivisionError)
    assert os.environ[TRACEBACK] == "1"


def test_a_bug_of_a_command_ends_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 1, one line, and how to see more."""
    monkeypatch.setattr("spack_cache_db.cli.site.site_folder", lambda: 1 / 0)
    result = run("site")

    assert result.exit_code == 1
    assert result.stderr == (
        "Error: unexpected ZeroDivisionError: division by zero; "
        "please report it (--traceback shows where)\n"
    )
