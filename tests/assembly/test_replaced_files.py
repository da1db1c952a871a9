"""assembly.replacement: a database replaces an old one or takes a new name, and harms
nothing else.
"""

import hashlib
import json
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly import replacement
from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.inspection import current_inspection
from spack_cache_db.errors import InputError, OutputError
from spack_cache_db.inspect_file import inspect_path
from spack_cache_db.schema.views import VIEW_COUNTS
from tests.commands import run
from tests.pagetexts import page, write

NOBODY = 2**22 + 1
"""No process has this id: Linux stops at 2**22."""


def listen(path: Path) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path: path.symlink_to("precious"), "a symbolic link"),
        (lambda path: path.symlink_to("nothing"), "a symbolic link"),
        (os.mkfifo, "a pipe"),
        (listen, "a socket"),
        (Path.mkdir, "a folder"),
    ],
)
@pytest.mark.parametrize("name", ["x.db", "x.inspect.json"])
def test_only_a_regular_file_is_replaced(
    make: Callable[[Path], None],
    kind: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database and its inspect file replace nothing else, and leave nothing
    behind.
    """
    monkeypatch.chdir(tmp_path)
    folder = write(Path("in"), a=page())
    Path("precious").write_text("text")
    make(Path(name))
    before = {path.name: path.lstat().st_mode for path in Path().iterdir()}

    with pytest.raises(OutputError) as caught:
        build(folder, "x.db")
    assert (
        str(caught.value) == f"{name}: is {kind}, expected a regular file or a new name"
    )
    assert {path.name: path.lstat().st_mode for path in Path().iterdir()} == before


def test_a_page_that_is_read_is_not_replaced(tmp_path: Path) -> None:
    """By whatever name it is called, and whether it was named or its folder."""
    folder = write(tmp_path / "in", a=page())
    (tmp_path / "also").symlink_to("in")

    for paths, output in (
        ([folder], folder / "a.md"),
        ([folder / "a.md"], folder / "a.md"),
        ([tmp_path / "also"], folder / "a.md"),
        ([folder], tmp_path / "also" / "a.md"),
        ([folder], tmp_path / "in" / ".." / "in" / "a.md"),
    ):
        with pytest.raises(
            OutputError, match="is part of the input, expected another place"
        ):
            build(paths, output)
        assert (folder / "a.md").read_bytes() == page()


@pytest.mark.parametrize("name", ["README.md", "README.inspect.json"])
def test_a_file_of_another_program_is_not_replaced(name: str, tmp_path: Path) -> None:
    """Neither where the database belongs nor where its inspect file does, unless that
    is forced.
    """
    folder = write(tmp_path / "in", a=page())
    other = tmp_path / name
    other.write_text("precious")

    with pytest.raises(OutputError, match=f"{name}: was not made by spack-cache-db"):
        build(folder, tmp_path / "README.md")

    result = run("build", folder, "-o", tmp_path / "README.md")
    assert result.exit_code == 2
    assert "use --force" in result.stderr
    assert other.read_text() == "precious"
    assert names(tmp_path) == {"in", name}

    result = run("build", folder, "-o", tmp_path / "README.md", "--force")
    assert result.exit_code == 0, result.output
    assert build(folder, tmp_path / "README.md").pages == 1
    with pytest.raises(OutputError, match="is part of the input"):
        build(folder, folder / "a.md", force=True)


def test_the_inspect_file_of_another_database_is_not_replaced(tmp_path: Path) -> None:
    """`x.txt` would have the inspect file of `x.db`, unless `x.db` got this name."""
    folder = write(tmp_path / "in", a=page())
    build(folder, tmp_path / "x.db")
    inspected = inspect_path(tmp_path / "x.db").read_bytes()

    result = run("build", folder, "-o", tmp_path / "x.txt", "--force")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"Error: {tmp_path}/x.txt: its inspect file {tmp_path}/x.inspect.json is that of "
        f"{tmp_path}/x.db, expected a name that differs before the suffix"
    )
    assert names(tmp_path) == {"in", "x.db", "x.inspect.json"}
    assert inspect_path(tmp_path / "x.db").read_bytes() == inspected

    (tmp_path / "x.db").rename(tmp_path / "x.txt")
    assert run("build", folder, "-o", tmp_path / "x.txt").exit_code == 0


def test_an_output_among_the_pages_does_not_break_the_next_build(
    tmp_path: Path,
) -> None:
    """A database and its inspect file are passed over, whatever they are called; so is
    litter.
    """
    folder = write(tmp_path / "in", a=page())
    first = build(folder, folder / "x.db")
    shutil.copy(folder / "x.db", folder / "b.md")
    shutil.copy(folder / "x.inspect.json", folder / "c.md")
    (folder / ".x.db.123.tmp").write_bytes(b"litter")
    second = build(folder, folder / "x.db")

    assert (second.sha256, second.pages, second.faults) == (first.sha256, 1, ())

    result = run("build", folder, "-o", folder / "x.db", "--max-page-size", "4K")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "output", ["", "x" * 300, "x" * 250, "y/" * 3000 + "x", ".", "/", "a\0b"]
)
def test_a_name_that_no_file_can_have_is_an_error(output: str, tmp_path: Path) -> None:
    """One line, and no traceback."""
    folder = write(tmp_path / "in", a=page())
    if "\0" in output:
        with pytest.raises(OutputError, match="cannot be written: "):
            build(folder, output)
        with pytest.raises(InputError, match=r"a\\x00b: no such file or folder"):
            build(output, tmp_path / "x.db")
        return

    result = run("build", folder, "-o", output)
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.splitlines()[-1].startswith("Error: ")


def names(folder: Path) -> set[str]:
    """Return the names in a folder."""
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    "error", [RuntimeError, KeyboardInterrupt, OSError, sqlite3.DatabaseError]
)
def test_an_error_leaves_the_old_file(
    error: type[BaseException], tmp_path: Path
) -> None:
    """Whatever is raised, the old file stays and the temporary file goes."""
    output = tmp_path / "x.db"
    output.write_bytes(b"old")

    with (
        pytest.raises((error, OutputError)),
        replacement.replacing(output) as temporary,
    ):
        temporary.write_bytes(b"half")
        raise error
    assert output.read_bytes() == b"old"
    assert names(tmp_path) == {"x.db"}


def of_process(path: Path, number: int) -> Path:
    """Return the temporary path that another process would take."""
    return path.with_name(path.name.replace(f".{os.getpid()}.", f".{number}."))


@pytest.mark.parametrize("output", ["x.db", "[x].db", "x*.db"])
def test_files_of_a_killed_build_are_removed(output: str, tmp_path: Path) -> None:
    """Its files are named for its process; names of other targets are not touched."""
    of_other = of_process(replacement.temporary(tmp_path / "other.db"), NOBODY)
    of_other.touch()
    for path in (tmp_path / output, inspect_path(tmp_path / output)):
        of_process(replacement.temporary(path), NOBODY).touch()
    with replacement.replacing(tmp_path / output):
        pass

    assert names(tmp_path) == {of_other.name}


def test_a_running_build_keeps_its_files(tmp_path: Path) -> None:
    """Two builds of one output do not remove each other's files."""
    theirs = of_process(replacement.temporary(tmp_path / "x.db"), os.getppid())
    theirs.touch()
    with replacement.replacing(tmp_path / "x.db"):
        pass
    assert names(tmp_path) == {theirs.name}


def test_a_build_writes_the_inspect_file(tmp_path: Path) -> None:
    """Hash, size, and the number of rows of each table, which are not counted again."""
    output = tmp_path / "x.db"
    build(write(tmp_path / "pages", a=page()), output)
    path = inspect_path(output)
    inspected = json.loads(path.read_text())
    written = inspected["spack-cache"]

    assert written["hash"] == hashlib.sha256(output.read_bytes()).hexdigest()
    assert (written["size"], written["file"]) == (output.stat().st_size, "x.db")

    with closing(sqlite3.connect(output)) as db:
        tables = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        counts = {
            name: {"count": db.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0]}
            for (name,) in tables
        }
        views = {
            name: {"count": db.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0]}
            for name in VIEW_COUNTS
        }
    assert written["tables"] == counts
    assert written["views"] == views
    assert counts["specs"] == {"count": 1}

    counts["specs"]["count"] = 77
    written["tables"] = counts
    path.write_text(json.dumps(inspected))
    found = current_inspection(output)

    assert found["spack-cache"]["tables"]["specs"]["count"] == 77
