"""The one opener of files: regular files alone, whole, within bounds, without waiting."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from spack_cache_db.bounded_files import (
    LARGE,
    FileFault,
    LargeFileFault,
    read_file,
    read_wanted,
    unreadable,
)


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    """A file and a link to one, of any size up to the limit."""
    (tmp_path / "link").symlink_to("file")
    for size in (0, 1, 1000, LARGE, LARGE + 1):
        (tmp_path / "file").write_bytes(os.urandom(size))
        assert read_file(tmp_path / "link", size) == (tmp_path / "file").read_bytes()
        if size:
            with pytest.raises(LargeFileFault, match=f"has {size:,} bytes, expected at most"):
                read_file(tmp_path / "file", size - 1)


def test_files_of_the_system_have_no_size() -> None:
    """What the kernel makes up is read to its end, within the limit."""
    assert read_file("/proc/self/status", LARGE).startswith(b"Name:")
    with pytest.raises(LargeFileFault):
        read_file("/proc/self/status", 100)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pipe", "is a pipe, expected a regular file"),
        ("device", "is a device, expected a regular file"),
        ("folder", "is a folder, expected a regular file"),
        ("socket", "cannot be read: No such device or address"),
        ("nothing", "cannot be read: No such file or directory"),
        ("loop", "cannot be read: Too many levels of symbolic links"),
        ("sparse", "is a sparse file with a hole at byte 0, expected text"),
    ],
)
def test_what_is_no_file(kind: str, words: str, tmp_path: Path) -> None:
    """Each is told in words, at once, and linked as well as under its own name."""
    place = Path(os.path.relpath(tmp_path)) / "x"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place = Path("/dev/zero")
    elif kind == "folder":
        place.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    elif kind == "loop":
        place.symlink_to("x")
    elif kind == "sparse":
        with place.open("wb") as stream:
            stream.truncate(2**34)
    (tmp_path / "link").symlink_to(place.absolute())
    for path in (place, tmp_path / "link"):
        with pytest.raises(OSError, match=r".") as caught:
            read_file(path, 2**35)
        assert unreadable(caught.value) == words
        assert isinstance(caught.value, FileFault) == (not words.startswith("cannot"))


def test_a_file_that_shrinks_ends_where_it_ends(tmp_path: Path) -> None:
    """What was cut off meanwhile is missing, and nothing else happens."""
    path = tmp_path / "x"
    path.write_bytes(b"x" * 100_000)

    def limit(_: bytes) -> int:
        os.truncate(path, 10)
        return 1_000_000

    assert read_wanted(path, limit) == b"x" * 10


def test_a_file_that_grows_is_read_to_its_end(tmp_path: Path) -> None:
    """What was added meanwhile is read, and counts for the limit."""
    path = tmp_path / "x"

    def limit(at_most: int) -> Callable[[bytes], int]:
        def grow(_: bytes) -> int:
            with path.open("ab") as stream:
                stream.write(b"y" * 300_000)
            return at_most

        return grow

    for size in (99_999, 100_000):
        path.write_bytes(b"x" * size)
        assert read_wanted(path, limit(400_000)) == b"x" * size + b"y" * 300_000
    with pytest.raises(LargeFileFault):
        read_wanted(path, limit(600_000))
