"""Where a database may be written: over a regular file or to a new name, and over nothing else.

And under which names until it is whole. Loads nothing large: a signal may ask at any moment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from spack_cache_db.errors import OutputError, reason
from spack_cache_db.sources.own import is_database

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def require_replaceable(target: Path, inputs: Iterable[str]) -> None:
    """Refuse to write where something else than an old database would be lost.

    Args:
        target: the file to be written, or the inspect file beside it.
        inputs: the paths that are read; no file of theirs is replaced, unless it is our own.

    Raises:
        OutputError: the target is no regular file, or is read.
    """
    try:
        status = os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        raise cannot_write(target, reason(error)) from None
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OutputError(f"{target}: is {kind}, expected a regular file or a new name")
    if any(_is_within(target, path) for path in inputs) and not is_database(target):
        raise OutputError(f"{target}: is part of the input, expected another place to write to")


def cannot_write(target: Path, why: str) -> OutputError:
    """Return the error for a target that the system refuses."""
    return OutputError(
        f"{target}: cannot be written: {why}; free space or choose another place with -o. "
        "The old file, if there was one, is untouched."
    )


def temporary(target: Path) -> Path:
    """Return the path under which this process writes a database until it is whole."""
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def temporary_inspect_file(target: Path) -> Path:
    """Return the path under which this process writes a database's inspect file."""
    # Ends in `.PID.tmp`, as what a killed build left has to: the next build removes it.
    return target.with_name(f".{target.name}.inspect.{os.getpid()}.tmp")


def discard(target: Path) -> None:
    """Remove what this process has begun to write, if there is anything."""
    for path in (temporary, temporary_inspect_file):
        # What has no name of its own (a ValueError) was never begun.
        with suppress(OSError, ValueError):
            path(target).unlink()


def _is_within(target: Path, path: str) -> bool:
    try:
        real, folder = os.path.realpath(target), os.path.realpath(path)
    except ValueError:
        # A path with a NUL: nothing can be there, which whoever reads the input says.
        return False
    return os.path.commonpath([real, folder]) == folder
