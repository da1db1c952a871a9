"""build.history: no build erases releases of an older database, unless an option says
so.
"""

import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import HistoryError, OutputError
from spack_cache_db.schema import identity
from tests.assembly.test_history import listed, night
from tests.commands import run
from tests.indexes import node
from tests.pagetexts import page, spec, write
from tests.trees import installed, write_tree


def as_old(file: Path) -> None:
    """Give a database a schema version that no reader knows."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 1")


def truncated(file: Path) -> None:
    """Leave only the beginning of a file."""
    os.truncate(file, 20_000)


def emptied(file: Path) -> None:
    """Leave nothing of a file."""
    os.truncate(file, 0)


def overwritten(file: Path) -> None:
    """Replace a file by bytes that mean nothing."""
    file.write_bytes(b"x" * 5000)


def as_page(file: Path) -> None:
    """Replace a file by a page."""
    file.write_text("---\ntitle: x\n---\n")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "old": as_old,
    "truncated": truncated,
    "empty": emptied,
    "overwritten": overwritten,
    "page": as_page,
}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A database with the snapshots of two nights, beside the folder `mirrors`."""
    file = tmp_path / "x.db"
    for day, name in (("2026-11-24", "a"), ("2026-11-25", "b")):
        mirrors = night(tmp_path / "mirrors", name)
        build([file, mirrors], file, snapshot=day)
    return file


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_database_that_cannot_be_read_is_never_left_out(
    damage: str, history: Path, tmp_path: Path
) -> None:
    """With each option, into the same file or another: an error, and no file is
    written.
    """
    DAMAGES[damage](history)
    before = history.read_bytes()

    for output in (history, tmp_path / "y.db"):
        command = ("build", history, tmp_path / "mirrors", "-o", output)
        for options in (["--keep-going"], ["--keep-going", "--snapshot", "2026-11-26"]):
            result = run(*command, *options)
            assert result.exit_code in (1, 2), result.output
            assert str(history) in result.stderr
            assert "--keep-going" not in result.stderr
        with pytest.raises((HistoryError, OutputError)):
            build([history, tmp_path / "mirrors"], output, keep_going=True)
    assert history.read_bytes() == before
    assert not (tmp_path / "y.db").exists()


def test_the_message_says_what_is_read_and_what_to_do(
    history: Path, tmp_path: Path
) -> None:
    """The versions, that nothing was written, and that moving the file begins a new
    history.
    """
    as_old(history)
    result = run("build", history, tmp_path / "mirrors", "-o", history, "--keep-going")

    assert f"{history}: has schema version 1, " in result.stderr
    assert str(identity.SCHEMA_VERSION) in result.stderr
    assert "; nothing was written. " in result.stderr
    assert "If you move it away, the next build begins a new history." in result.stderr


def test_a_build_without_the_database_keeps_its_releases(
    history: Path, tmp_path: Path
) -> None:
    """The error names the releases, and the command that it shows keeps them."""
    before = history.read_bytes()
    mirrors = night(tmp_path / "mirrors", "c")

    for options in ([], ["--keep-going"], ["--snapshot", "2026-11-26"]):
        result = run("build", mirrors, "-o", history, *options)
        assert result.exit_code == 2
        assert result.stderr.startswith(
            f"Error: {history}: has 2 releases (site-2026-11-25, site-2026-11-24), which the input "
            "does not have; nothing was written. To keep them: spack-cache-db build "
        )
        assert history.read_bytes() == before

    command = result.stderr.partition("To keep them: spack-cache-db ")[2].partition(
        ". To "
    )[0]
    assert command == f"build {history} {mirrors} -o {history} --snapshot 2026-11-26"
    assert run(*command.split()).exit_code == 0
    assert listed(history).keys() == {
        "site", "site-2026-11-24", "site-2026-11-25", "site-2026-11-26"
    }  # fmt: skip
    assert run("build", mirrors, "-o", history, "--force").exit_code == 0
    assert listed(history).keys() == {"site"}


def test_the_command_that_keeps_releases_has_the_options_of_the_build(
    history: Path, tmp_path: Path
) -> None:
    """No path is published, and no input refused, that the build would not have."""
    options = [
        "--snapshot",
        "2026-11-26",
        "--first",
        "site",
        "--recipes",
        "centre=https://git.example.org/{package}",
        "--without-paths",
        "--keep-going",
    ]
    result = run("build", night(tmp_path / "mirrors", "c"), "-o", history, *options)

    assert f"-o {history} {shlex.join(options)}. To replace" in result.stderr


def test_the_same_sources_replace_their_database(tmp_path: Path) -> None:
    """Of pages, the example and an installation; a release more is no loss, one fewer
    is.
    """
    example = ("build", "--example", "-o", tmp_path / "example.db")
    assert [run(*example).exit_code for _ in range(2)] == [0, 0]

    pages = write(tmp_path / "pages", a=page("a", "develop", [spec(1)]))
    build(pages, tmp_path / "x.db")
    write(tmp_path / "pages", b=page("b", "v1.0", [spec(2)]))
    build(pages, tmp_path / "x.db")
    (pages / "a.md").write_bytes(b"---\n")

    with pytest.raises(
        OutputError, match=r"has the release develop, which the input does not"
    ):
        build(pages, tmp_path / "x.db", keep_going=True)

    tree = write_tree(tmp_path / "opt", [installed(node("a"))])
    for _ in range(2):
        build([], tmp_path / "tree.db", installations=[("casper", tree)])
    with pytest.raises(OutputError, match=r"has the release casper, which .* derecho="):
        build([], tmp_path / "tree.db", installations=[("derecho", tree)])


def test_an_output_whose_releases_cannot_be_read_is_replaced_by_force_only(
    history: Path, tmp_path: Path
) -> None:
    """A truncated database is not replaced by chance, and its old version is named."""
    copy = Path(shutil.copy(history, tmp_path / "old.db"))
    as_old(copy)

    with pytest.raises(OutputError, match="has 2 releases"):
        build(tmp_path / "mirrors", copy)

    os.truncate(history, 5000)
    with pytest.raises(OutputError, match="is a database that cannot be read"):
        build(tmp_path / "mirrors", history)
    assert history.stat().st_size == 5000

    build(tmp_path / "mirrors", history, force=True)
    assert listed(history).keys() == {"site"}
