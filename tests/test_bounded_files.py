"""The one opener of files: regular files alone, whole, within bounds, without
waiting.
"""

import os
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from spack_cache_db.bounded_files import (
    LARGE,
    FileFault,
    LargeFileFault,
    read_file,
    read_wanted,
    sha256_of_wanted,
    unreadable,
)


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    """A file and a link to one, of any size up to the limit."""
    (tmp_path / "link").symlink_to("file")

    for size in (0, 1, 1000, LARGE, LARGE + 1):
        (tmp_path / "file").write_bytes(os.urandom(size))
        assert read_file(tmp_path / "link", size) == (tmp_path / "file").read_bytes()
        if size:
            with pytest.raises(
                LargeFileFault, match=f"has {size:,} bytes, expected at most"
            ):
                read_file(tmp_path / "file", size - 1)


def test_the_checksum_is_that_of_the_whole_file(tmp_path: Path) -> None:
    """Of files up to the size from which holes are looked for, and of larger ones."""
    path = tmp_path / "x"
    for size in (0, 1, 2**16, LARGE, LARGE + 1, 3 * LARGE):
        data = os.urandom(size)
        path.write_bytes(data)
        assert sha256_of_wanted(path, lambda _: True) == sha256(data).hexdigest()


def test_files_without_a_size_are_read_to_their_end() -> None:
    """Those of the kernel, within the limit."""
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
def test_only_regular_files_are_read(kind: str, words: str, tmp_path: Path) -> None:
    """The message names the kind, at once, and for a link to it as well."""
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


def test_a_file_that_changes_while_it_is_read_ends_where_it_ends(
    tmp_path: Path,
) -> None:
    """The missing end is not waited for, and added bytes count for the limit."""
    path = tmp_path / "x"

    def shrink(_: bytes) -> int:
        os.truncate(path, 10)
        return 1_000_000

    def grow(at_most: int) -> Callable[[bytes], int]:
        def limit(_: bytes) -> int:
            path.write_bytes(b"x" * 400_000)
            return at_most

        return limit

    for size in (99_999, 100_000):
        path.write_bytes(b"x" * size)
        assert read_wanted(path, shrink) == b"x" * 10
        path.write_bytes(b"x" * size)
        assert read_wanted(path, grow(400_000)) == b"x" * 400_000
        path.write_bytes(b"x" * size)
        with pytest.raises(LargeFileFault):
            read_wanted(path, grow(300_000))
