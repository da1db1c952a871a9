"""Reads untrusted files within limits and without blocking; writes our own files;
checks paths.

Pipes, which would block, devices, which are endless, and sparse files, which take
gigabytes of memory and no disk, are refused. Links are followed under the same rules.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from spack_cache_db.arguments import wrong
from spack_cache_db.errors import ArgumentError, reason

LARGE = 2**20
"""Smallest file that is checked for holes before it is read, in bytes."""

HEAD = 100
"""Bytes by which the kind of a file is recognized: the minimum of the first read."""

_FIRST = 2**16
"""Maximum of the first read, in bytes; most pages are smaller."""

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
"""File types other than regular files, as in `os.lstat`."""


class FileFault(OSError):
    """A file that is refused; `strerror` is the reason."""

    def __init__(self, path: str | Path, message: str) -> None:
        super().__init__(errno.EINVAL, message, str(path))


class LargeFileFault(FileFault):
    """A file that exceeds its limit."""


def open_regular(path: str | Path) -> FileIO:
    """Open a regular file for reading; raises `FileFault` for other files, or
    `OSError`.
    """
    # Without O_NONBLOCK, opening a pipe blocks.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return FileIO(descriptor)
    os.close(descriptor)
    raise FileFault(
        path,
        f"is {KINDS.get(stat.S_IFMT(mode), 'not a file')}, expected a regular file",
    )


def read_wanted(
    path: str | Path, limit_of: Callable[[bytes], int | None]
) -> bytes | None:
    """Return the bytes of a regular file; None to skip it.

    Args:
        path: the file.
        limit_of: returns the maximum size for a file with these first bytes (at least
            `HEAD` of them, or all), or None to skip the file.

    Raises:
        LargeFileFault: it has more bytes.
        FileFault: it has holes, or is not a regular file.
        OSError: it cannot be read.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        # Reading one byte more than the size confirms the end of the file.
        data = more = stream.read(max(HEAD, min(size, _FIRST)) + 1)
        limit = limit_of(data)
        if limit is None:
            return None
        if len(data) < size <= limit:
            _require_no_hole(stream, path, size)
            # Read again from the start, because joining two parts would double the
            # memory.
            stream.seek(0)
            data = more = stream.read(size + 1)
        # A file may grow or shrink while it is read, and files of the system may report
        # size 0.
        while more and len(data) != size and size <= limit:
            size = max(size, len(data))
            more = stream.read(size - len(data) + _FIRST)
            data += more
    if (size := max(size, len(data))) > limit:
        raise LargeFileFault(path, f"has {size:,} bytes, expected at most {limit:,}")
    return data


def _require_no_hole(stream: FileIO, path: str | Path, size: int) -> None:
    hole = size
    # Not supported by every file system.
    with suppress(OSError, AttributeError):
        hole = stream.seek(0, os.SEEK_HOLE) if size > LARGE else size
    if hole < size:
        raise FileFault(
            path, f"is a sparse file with a hole at byte {hole:,}, expected text"
        )


def read_file(path: str | Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; raises as
    `read_wanted`.
    """
    data = read_wanted(path, lambda _: limit)
    assert data is not None
    return data


def sha256_of(path: Path) -> str:
    """Return the sha256 of a regular file, as hexadecimal digits."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unreadable(error: OSError | ValueError) -> str:
    """Return the reason why a file was not read."""
    return (
        reason(error)
        if isinstance(error, FileFault)
        else f"cannot be read: {reason(error)}"
    )


AnyPath = str | os.PathLike[str]

DEFAULT_MAX_PAGE_SIZE = 64 * 2**20
"""In bytes; the largest known pages have a few hundred kilobytes."""


def checked_paths(paths: object) -> list[str]:
    """Return one path or many as texts; raises `ArgumentError`."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise wrong("paths", paths, "a path or several, str or Path")
    checked = [_checked_path("a path", path) for path in paths]
    if not checked:
        raise ArgumentError("paths is empty, expected at least one file or folder")
    return checked


def checked_file(
    name: str, file: object, description: str = "a file made by build"
) -> Path:
    """Return the path of a file; raises `ArgumentError` with the name and the
    description.
    """
    path = _checked_path(name, file)
    if not path:
        raise ArgumentError(f"{name} is empty, expected the path of {description}")
    return Path(path)


def _checked_path(name: str, value: object) -> str:
    if isinstance(value, str | os.PathLike) and isinstance(
        path := os.fspath(value), str
    ):
        return path
    raise wrong(name, value, "str or Path")
