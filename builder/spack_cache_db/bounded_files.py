"""Reads untrusted files within limits and without blocking; checks arguments that are
paths.

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

AnyPath = str | os.PathLike[str]
"""A path as the functions of the API take it."""

DEFAULT_MAX_PAGE_SIZE = 64 * 2**20
"""Largest page that a build reads by default, in bytes; the largest known pages have a
few hundred kilobytes.
"""

HEAD = 100
"""Bytes at the beginning of a file by which its kind is recognized."""

LARGE = 2**20
"""Smallest file that is checked for holes before it is read, in bytes."""

_FIRST_READ = 2**16
"""Bytes that are read of a file before its limit is known; most pages are smaller."""

_NEXT_READ = 2**20
"""Bytes of a large file that are hashed at a time."""

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
"""File types other than regular files, by their bits in `st_mode` (`stat.S_IFMT`)."""


class FileFault(OSError):
    """A file that is refused; `strerror` is the reason."""

    def __init__(self, path: str | Path, message: str) -> None:
        super().__init__(errno.EINVAL, message, str(path))


class LargeFileFault(FileFault):
    """A file that exceeds its limit."""


def open_regular(path: str | Path) -> FileIO:
    """Open a regular file for reading, without a buffer; raises as
    `_open_descriptor`.
    """
    descriptor, _ = _open_descriptor(path)
    return FileIO(descriptor)


def _open_descriptor(path: str | Path) -> tuple[int, int]:
    """Open a regular file for reading, and return its descriptor and its size.

    Raises:
        FileFault: it is a folder, a pipe or another kind of file.
        OSError: it cannot be opened.
    """
    # Opening a pipe would wait for a writer without O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status.st_size
    os.close(descriptor)
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "not a file")
    raise FileFault(path, f"is {kind}, expected a regular file")


def read_file(path: str | Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; raises as
    `read_wanted`.
    """
    data = read_wanted(path, lambda _: limit)
    assert data is not None
    return data


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
    # The functions of `os` take half the time of a `FileIO`, and there may be 100,000
    # pages.
    descriptor, size = _open_descriptor(path)
    try:
        # Read its beginning, or all of a small file. Asking for one byte more than the
        # size shows whether the file ends there.
        most = max(HEAD, min(size, _FIRST_READ))
        data = os.read(descriptor, most + 1)
        limit = limit_of(data)
        if limit is None:
            return None

        # Read all of a larger file.
        if len(data) < size <= limit:
            require_no_hole(descriptor, path, size)
            # From the start, because joining two parts would take twice the memory.
            os.lseek(descriptor, 0, os.SEEK_SET)
            data = os.read(descriptor, size + 1)
        data = _read_on(descriptor, data, size, limit)
    finally:
        os.close(descriptor)
    longest = max(size, len(data))
    if longest > limit:
        raise LargeFileFault(path, f"has {longest:,} bytes, expected at most {limit:,}")
    return data


def require_no_hole(descriptor: int, path: str | Path, size: int) -> None:
    """Raise FileFault if a large file has a hole, which reads as zeros, without end.

    The position in the file stays.
    """
    if size <= LARGE:
        return
    # The end of a file counts as a hole. Not every file system finds holes.
    hole = size
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    with suppress(OSError, AttributeError):
        hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
    os.lseek(descriptor, position, os.SEEK_SET)
    if hole < size:
        raise FileFault(
            path, f"is a sparse file with a hole at byte {hole:,}, expected text"
        )


def _read_on(descriptor: int, data: bytes, size: int, limit: int) -> bytes:
    """Return data and what follows in a file, until its end or more than `limit` bytes.

    Most files end here at once, with `size` bytes. A file may grow or shrink while it
    is read, and files of the system report size 0.
    """
    while len(data) != size and size <= limit:
        size = max(size, len(data))
        more = os.read(descriptor, size - len(data) + _FIRST_READ)
        if not more:
            break
        data += more
    return data


def sha256_of(path: Path) -> str:
    """Return the sha256 of a regular file, as hexadecimal digits."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of_wanted(
    path: str | Path, is_wanted: Callable[[bytes], bool]
) -> str | None:
    """Return the sha256 of a regular file, as hexadecimal digits; None to skip it.

    Args:
        path: the file.
        is_wanted: returns whether a file with these first bytes (at least `HEAD` of
            them, or all) is wanted.

    Raises:
        FileFault: it has holes, or is not a regular file.
        OSError: it cannot be read.
    """
    descriptor, size = _open_descriptor(path)
    try:
        # Nearly all files are read at once.
        data = os.read(descriptor, max(HEAD, min(size + 1, _FIRST_READ)))
        if not is_wanted(data[:HEAD]):
            return None
        digest = hashlib.sha256(data)
        if len(data) != size:
            require_no_hole(descriptor, path, size)
            while data := os.read(descriptor, _NEXT_READ):
                digest.update(data)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def unreadable(error: OSError | ValueError) -> str:
    """Return why a file was not read, such as `cannot be read: Permission denied`."""
    why = reason(error)
    # The text of a FileFault is a sentence already: `is a pipe, expected …`.
    return why if isinstance(error, FileFault) else f"cannot be read: {why}"


def checked_paths(paths: object) -> list[str]:
    """Return the argument `paths`, one or many, as texts; raises `ArgumentError`."""
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
    """Return the path of a file.

    Args:
        name: the name of the argument.
        file: its value.
        description: what it should be, for the message about an empty path.

    Raises:
        ArgumentError: it is not a path, or empty.
    """
    path = _checked_path(name, file)
    if not path:
        raise ArgumentError(f"{name} is empty, expected the path of {description}")
    return Path(path)


def _checked_path(name: str, value: object) -> str:
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        # A path of the system may also be bytes.
        if isinstance(path, str):
            return path
    raise wrong(name, value, "str or Path")
