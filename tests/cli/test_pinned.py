"""A file under a name of its own: linked where it can be, copied where not, tidied up."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from spack_cache_db.cli.server import PREFIX, pinned
from spack_cache_db.errors import DatabaseError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and a folder for temporary files on the same file system."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "beside").mkdir()
    path = tmp_path / "beside" / "x.db"
    path.write_bytes(b"old")
    return path


def no_links(self: Path, target: Path) -> None:
    """Refuse to link, as a file system without links does."""
    raise OSError(errno.EPERM, "Operation not permitted")


def replace(file: Path) -> None:
    """Put another file in its place, as a build does."""
    other = file.with_suffix(".tmp")
    other.write_bytes(b"new")
    other.replace(file)


@pytest.mark.parametrize("can_link", [True, False])
def test_what_replaces_the_file_changes_nothing(
    file: Path, can_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linked or copied, the other path leads to the file that stood there; then it is gone."""
    if not can_link:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    with pinned(file, "y.db") as path:
        assert path.name == "y.db"
        assert path.samefile(file) is can_link
        replace(file)
        assert path.read_bytes() == b"old"
    assert not path.parent.exists()
    assert file.read_bytes() == b"new"


def test_no_place_for_a_copy_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: one message that says what to do, and nothing left."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    monkeypatch.setattr(shutil, "copyfile", full)
    place = Path(tempfile.gettempdir())
    with pytest.raises(DatabaseError) as caught, pinned(file, "y.db"):
        pass
    assert str(caught.value) == (
        f"{file}: cannot be copied to {place}: No space left on device; "
        "set TMPDIR to another folder"
    )
    assert not list(place.iterdir())


def test_only_what_was_left_behind_is_removed(file: Path) -> None:
    """Folders of killed servers go; those of living and new ones, links and files stay."""
    place = Path(tempfile.gettempdir())
    left = place / f"{PREFIX}left"
    left.mkdir()
    (left / "spack-cache.db").write_bytes(b"left")
    (place / f"{PREFIX}new").mkdir()
    os.utime(left, (0, 0))
    (place / f"{PREFIX}link").symlink_to(file.parent)
    (place / f"{PREFIX}file").write_bytes(b"")
    with pinned(file, "y.db") as living, pinned(file, "z.db"):
        assert living.exists()
        assert not left.exists()
    names = {f"{PREFIX}{end}" for end in ("link", "file", "new")}
    assert {path.name for path in place.iterdir()} == names
    assert file.exists()
