"""Reads files of strangers within limits and without waiting; puts our own files in place.

A pipe would keep whoever opens it waiting, a device has no end, and a sparse file takes gigabytes
of memory and none of the disk. All of them are refused, and links lead to files under the same
rules.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from spack_cache_db.errors import OutputError, reason

LARGE = 2**20
"""Bytes of a file that is looked at for holes before it is read."""

HEAD = 100
"""Bytes by which a file is known; so many are read first, whatever size the system tells."""

_FIRST = 2**16
"""At most so many are read first: most pages have fewer."""


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
    descriptor, _ = _opened(path)
    return FileIO(descriptor, closefd=True)


def _opened(path: str | Path) -> tuple[int, int]:
    """Return the descriptor of a regular file, open for reading, and its size in bytes."""
    # A pipe would block whoever opens it, but for O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "no file")
        raise FileFault(path, f"is {kind}, expected a regular file")
    return descriptor, status.st_size


def read_wanted(path: str | Path, limit_of: Callable[[bytes], int | None]) -> bytes | None:
    """Return the bytes of a regular file; None if it is not wanted.

    Args:
        path: the file.
        limit_of: given its first `HEAD` bytes at least, or all that there are, returns how many
            bytes it may have, or None if it is not wanted.

    Raises:
        LargeFileFault: it has more bytes.
        FileFault: it has holes, or is no regular file.
        OSError: it cannot be read.
    """
    descriptor, size = _opened(path)
    try:
        # One byte more than there should be: if it is not there, nothing is left to be read.
        data = more = os.read(descriptor, max(HEAD, min(size, _FIRST)) + 1)
        limit = limit_of(data)
        if limit is None:
            return None
        if len(data) < size <= limit:
            # From the start again, because joining the parts would take the memory of both.
            data = more = _read_large(descriptor, path, size)
        # A file may grow or shrink while it is read, and some of the system's have no size.
        while more and len(data) != size and size <= limit:
            size = max(size, len(data))
            more = os.read(descriptor, size - len(data) + _FIRST)
            data += more
    finally:
        os.close(descriptor)
    if max(size, len(data)) > limit:
        size = max(size, len(data))
        raise LargeFileFault(path, f"has {size:,} bytes, expected at most {limit:,}")
    return data


def _read_large(descriptor: int, path: str | Path, size: int) -> bytes:
    hole = size
    if size > LARGE:
        # Not every file system can tell.
        with suppress(OSError, AttributeError):
            hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
    if hole < size:
        raise FileFault(path, f"is a sparse file with a hole at byte {hole:,}, expected text")
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, size + 1)


def read_file(path: str | Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes (raises as `read_wanted`)."""
    data = read_wanted(path, lambda _: limit)
    assert data is not None
    return data


def sha256_of(path: Path) -> str:
    """Return the sha256 of a regular file, as hexadecimal digits."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def alone_in(folder: Path, command: str) -> Iterator[None]:
    """Create a folder if it is missing, and lock it against other runs of a command.

    The system releases the lock when the process ends. File systems without locks do without.

    Raises:
        OutputError: another run has the lock, or the folder cannot be created or opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OutputError(f"{folder}: {reason(error)}, expected a folder to write into") from None
    try:
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                words = f"another {command} writes into it, expected to be alone: wait for its end"
                raise OutputError(f"{folder}: {words}") from None
        yield
    finally:
        os.close(descriptor)


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
