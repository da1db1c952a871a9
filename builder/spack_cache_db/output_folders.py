"""Writes folders and files so that nobody sees an unfinished one.

A command locks its folder (`alone_in`), writes into a folder beside the old files
(`unfinished_folder`), and renames each file when it is complete (`put_in_place`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spack_cache_db.errors import OutputError, reason


@contextmanager
def alone_in(folder: Path, command: str) -> Iterator[None]:
    """Create a folder if it is missing, and lock it against other runs of a command.

    The system releases the lock when the process ends. File systems without locks are
    not locked.

    Args:
        folder: the folder.
        command: the name of the command, for messages.

    Raises:
        OutputError: another run has the lock, or the folder cannot be created or
            opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        message = f"{reason(error)}, expected a folder to write into"
        raise OutputError(f"{folder}: {message}") from None
    try:
        _lock(descriptor, folder, command)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path, command: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = f"another {command} is writing into it: wait for its end"
        raise OutputError(f"{folder}: {message}") from None
    except OSError:
        # The file system has no locks.
        return


@contextmanager
def unfinished_folder(part: Path) -> Iterator[None]:
    """Make an empty folder for unfinished files, and remove it at the end.

    A killed command may have left files under this name; they are removed first. If it
    is a link, only the link is removed.
    """
    _remove(part)
    part.mkdir()
    try:
        yield
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a folder, a file or a link, if there is one."""
    shutil.rmtree(part, ignore_errors=True)
    part.unlink(missing_ok=True)


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the system while a command writes a folder into OutputError."""
    try:
        yield
    except OSError as error:
        # For a rename, the second name is the one that should be written.
        name = Path(error.filename2 or error.filename or folder).name
        advice = "free space or choose another folder with -o"
        message = f"{name} cannot be written: {reason(error)}; {advice}"
        raise OutputError(f"{folder}: {message}") from None


def other_files(folder: Path) -> OutputError:
    """Return the error of a folder with files that a command has not written."""
    message = "has other files, expected a new or an empty folder"
    return OutputError(f"{folder}: {message}")


def put_in_place(part: Path, path: Path) -> None:
    """Rename a complete file, so that it keeps its content if the power fails.

    Args:
        part: the file, which is flushed to disk first.
        path: its new path, whose folder is flushed to disk afterwards.
    """
    _force_to_disk(part)
    part.replace(path)
    _force_to_disk(path.parent)


def put_all_in_place(part: Path, folder: Path, names: Iterable[str]) -> None:
    """Rename many complete files of a folder, as `put_in_place` does.

    Each folder is flushed to disk once. A link in place of a folder is replaced.

    Args:
        part: the folder of the files.
        folder: the folder into which they are moved.
        names: their names, such as `index.html` or `package/hdf5.html`.
    """
    parents = {folder}
    for name in names:
        path = folder / name
        if path.parent not in parents:
            _make_folder(path.parent)
            parents.add(path.parent)
        _force_to_disk(part / name)
        (part / name).replace(path)
    for parent in parents:
        _force_to_disk(parent)


def _make_folder(path: Path) -> None:
    """Create a folder, in place of a link or a file of its name."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    path.mkdir(exist_ok=True)


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
