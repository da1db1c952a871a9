"""Writes folders and files that other programs read: locked, complete, and on disk."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spack_cache_db.errors import OutputError, reason


@contextmanager
def alone_in(folder: Path, command: str) -> Iterator[None]:
    """Create a folder if it is missing, and lock it against other runs of a command.

    The system releases the lock when the process ends. File systems without locks are
    not locked.

    Raises:
        OutputError: another run has the lock, or the folder cannot be created or
            opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OutputError(
            f"{folder}: {reason(error)}, expected a folder to write into"
        ) from None
    try:
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"another {command} is writing into it: wait for its end"
                raise OutputError(f"{folder}: {message}") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def unfinished_folder(part: Path) -> Iterator[None]:
    """Make an empty folder for unfinished files, and remove it at the end.

    What a killed command may have left under this name is removed first; a link is not
    followed.
    """
    _remove(part)
    part.mkdir()
    try:
        yield
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    shutil.rmtree(part, ignore_errors=True)
    part.unlink(missing_ok=True)


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the system while a command writes a folder into OutputError."""
    try:
        yield
    except OSError as error:
        name = Path(error.filename2 or error.filename or folder).name
        advice = "free space or choose another folder with -o"
        message = f"{name} cannot be written: {reason(error)}; {advice}"
        raise OutputError(f"{folder}: {message}") from None


def other_files(folder: Path) -> OutputError:
    """Return the error of a folder with files that a command has not written."""
    message = "has other files, expected a new or an empty folder"
    return OutputError(f"{folder}: {message}")


def put_in_place(part: Path, path: Path) -> None:
    """Rename a file once its content is on disk, and flush the new name to disk as
    well.
    """
    _force_to_disk(part)
    part.replace(path)
    _force_to_disk(path.parent)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
