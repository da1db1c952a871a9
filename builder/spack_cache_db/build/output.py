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


def require_replaceable(output: Path, inputs: Iterable[str]) -> None:
    """Refuse to write where something else than an old database would be lost.

    Args:
        output: the file to be written, or the inspect file beside it.
        inputs: the paths that are read; no file of theirs is replaced, unless it is our own.

    Raises:
        OutputError: the output is no regular file, or is read.
    """
    try:
        status = os.lstat(output)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        raise cannot_write(output, reason(error)) from None
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OutputError(f"{output}: is {kind}, expected a regular file or a new name")
    if any(_is_within(output, path) for path in inputs) and not is_database(output):
        raise OutputError(f"{output}: is part of the input, expected another place to write to")


def cannot_write(output: Path, why: str) -> OutputError:
    """Return the error for an output that the system refuses."""
    return OutputError(
        f"{output}: cannot be written: {why}; free space or choose another place with -o. "
        "The old file, if there was one, is untouched."
    )


def temporary(output: Path) -> Path:
    """Return the path under which this process writes a database until it is whole."""
    return output.with_name(f".{output.name}.{os.getpid()}.tmp")


def temporary_inspect_file(output: Path) -> Path:
    """Return the path under which this process writes a database's inspect file."""
    # Ends in `.PID.tmp`, as what a killed build left has to: the next build removes it.
    return output.with_name(f".{output.name}.inspect.{os.getpid()}.tmp")


def discard(output: Path) -> None:
    """Remove what this process has begun to write, if there is anything."""
    for path in (temporary, temporary_inspect_file):
        # What has no name of its own (a ValueError) was never begun.
        with suppress(OSError, ValueError):
            path(output).unlink()


def _is_within(output: Path, path: str) -> bool:
    try:
        real, folder = os.path.realpath(output), os.path.realpath(path)
    except ValueError:
        # A path with a NUL: nothing can be there, which whoever reads the input says.
        return False
    return os.path.commonpath([real, folder]) == folder
