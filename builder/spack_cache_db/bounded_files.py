"""Files: those of strangers, read within bounds and without waiting, and our own, put in place.

A pipe would keep whoever opens it waiting, a device has no end, and a sparse file takes gigabytes
of memory and none of the disk. All of them are refused, and links lead to files under the same
rules.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from spack_cache_db.errors import reason

LARGE = 2**20
"""Bytes of a file that is looked at for holes before it is read."""


KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
"""What is no regular file, by its type as `os.lstat` has it."""


class FileFault(OSError):
    """A file that is not read; `strerror` says what it is, and what was expected."""

    def __init__(self, path: str | Path, message: str) -> None:
        super().__init__(errno.EINVAL, message, str(path))


class LargeFileFault(FileFault):
    """A file that is larger than it may be."""


def open_regular(path: str | Path) -> FileIO:
    """Open a regular file for reading.

    Raises:
        FileFault: it is something else.
        OSError: it cannot be opened.
    """
    # A pipe would block whoever opens it, but for O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = KINDS.get(stat.S_IFMT(mode), "no file")
        raise FileFault(path, f"is {kind}, expected a regular file")
    return FileIO(descriptor, closefd=True)


def read_open(stream: FileIO, path: str | Path, limit: int) -> bytes:
    """Return the bytes of a file of `open_regular` from its position on.

    Raises:
        LargeFileFault: it has more than `limit` bytes.
        FileFault: it has holes.
        OSError: it cannot be read.
    """
    size = os.fstat(stream.fileno()).st_size
    if LARGE < size <= limit:
        _require_whole(stream, path, size)
    # A file may grow or shrink while it is read, and some of the system's have no size.
    data = b""
    while size <= limit and (more := stream.read(max(size - len(data), 0) + 1)):
        data = data + more if data else more
        if len(data) == size:
            break  # One byte more was asked for, and there is none.
        size = max(size, len(data))
    if size > limit:
        raise LargeFileFault(path, f"has {size:,} bytes, expected at most {limit:,}")
    return data


def read_file(path: str | Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes (raises as `read_open`)."""
    with open_regular(path) as stream:
        return read_open(stream, path, limit)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a regular file, as hexadecimal digits."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def put_in_place(part: Path, path: Path) -> None:
    """Give a file its name once it is on disk, and see that the name is on disk as well."""
    _force_to_disk(part)
    part.replace(path)
    _force_to_disk(path.parent)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unreadable(error: OSError | ValueError) -> str:
    """Return in words why a file was not read."""
    return reason(error) if isinstance(error, FileFault) else f"cannot be read: {reason(error)}"


def _require_whole(stream: FileIO, path: str | Path, size: int) -> None:
    hole = size
    # Not every file system can tell.
    with suppress(OSError, AttributeError):
        hole = os.lseek(stream.fileno(), 0, os.SEEK_HOLE)
    os.lseek(stream.fileno(), 0, os.SEEK_SET)
    if hole < size:
        raise FileFault(path, f"is a sparse file with a hole at byte {hole:,}, expected text")
