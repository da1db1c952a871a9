"""build.output: a build replaces an old database, takes a new name, and harms nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.errors import InputError, OutputError
from tests.commands import process, run
from tests.pagetexts import page, write


def link(path: Path) -> None:
    """Make a symbolic link to a file with text."""
    (path.parent / "precious").write_text("text")
    path.symlink_to("precious")


def dangling(path: Path) -> None:
    """Make a symbolic link to nothing."""
    path.symlink_to("nothing")


def device(path: Path) -> None:
    """Make a device like `/dev/null`."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


def listen(path: Path) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (link, "a symbolic link"),
        (dangling, "a symbolic link"),
        (os.mkfifo, "a pipe"),
        (listen, "a socket"),
        pytest.param(
            device,
            "a device",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices"),
        ),
    ],
)
@pytest.mark.parametrize("name", ["x.db", "x.inspect.json"])
def test_what_is_no_regular_file_is_not_replaced(
    make: Callable[[Path], None],
    kind: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither where the database belongs, nor its inspect file; nothing else is left behind."""
    monkeypatch.chdir(tmp_path)
    folder = write(Path("in"), a=page())
    make(Path(name))
    before = {path.name: path.lstat().st_mode for path in Path().iterdir()}
    with pytest.raises(OutputError) as caught:
        build(folder, "x.db")
    assert str(caught.value) == f"{name}: is {kind}, expected a regular file or a new name"
    assert {path.name: path.lstat().st_mode for path in Path().iterdir()} == before


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    """The same; what stands where the inspect file belongs is told when the database is there."""
    with pytest.raises(OutputError, match="is a folder, expected a regular file or a new name"):
        build(write(tmp_path / "in", a=page()), tmp_path)


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
        with pytest.raises(OutputError, match="is part of the input, expected another place"):
            build(paths, output)
        assert (folder / "a.md").read_bytes() == page()


def test_an_output_among_the_pages_does_not_break_the_next_build(tmp_path: Path) -> None:
    """A database and its inspect file are passed over, whatever they are called; so is litter."""
    folder = write(tmp_path / "in", a=page())
    first = build(folder, folder / "x.db")
    shutil.copy(folder / "x.db", folder / "b.md")
    shutil.copy(folder / "x.inspect.json", folder / "c.md")
    (folder / ".x.db.123.tmp").write_bytes(b"litter")
    second = build(folder, folder / "x.db")
    assert (second.sha256, second.pages, second.faults) == (first.sha256, 1, ())
    result = run("build", folder, "-o", folder / "x.db", "--max-page-size", "4K")
    assert result.exit_code == 0, result.output


def test_a_folder_of_databases_holds_no_pages(tmp_path: Path) -> None:
    """They are no pages; where nothing else is there, that is told."""
    folder = write(tmp_path / "in", a=page())
    build(folder, folder / "x.db")
    (folder / "a.md").unlink()
    result = run("build", folder, "-o", tmp_path / "y.db")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == f"{folder}: holds no file, expected pages or indexes"


@pytest.mark.slow
@pytest.mark.parametrize("output", ["", "x" * 300, "x" * 250, "y/" * 3000 + "x", ".", "/", "a\0b"])
def test_a_name_that_no_file_can_have_is_told(output: str, tmp_path: Path) -> None:
    """One line, and no traceback."""
    folder = write(tmp_path / "in", a=page())
    if "\0" in output:
        with pytest.raises(OutputError, match="cannot be written: "):
            build(folder, output)
        with pytest.raises(InputError, match=r"a\\x00b: no such file or folder"):
            build(output, tmp_path / "x.db")
        return
    done = process("build", folder, "-o", output)
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in done.stderr
