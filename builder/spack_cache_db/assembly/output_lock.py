"""Lets one build at a time write an output.

A build reads the old database and replaces it later. Of two such builds at a time, the
second would replace the snapshots of the first.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from spack_cache_db.errors import OutputError, reason

_GUARD = Lock()
_in_this_process: set[str] = set()
"""The outputs that this process builds: threads share the locks of files, so they check
this.
"""
_lock_files: set[Path] = set()
"""The files on which this process has a lock."""


class FileState(NamedTuple):
    """The properties of a file that change if it is replaced or written."""

    inode: int
    size: int
    modified: int


def state_of(path: Path) -> FileState | None:
    """Return the state of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def alone_at(output: Path) -> Iterator[None]:
    """Create the folder of an output if it is missing, and lock the output against
    other builds.

    The lock is on a hidden file beside the output. The system releases it when the
    process ends, even if it is killed; a file that then stays does not block the next
    build. File systems without locks are not locked: `require_unchanged` notices other
    builds there.

    Raises:
        OutputError: another build has the lock, or the folder cannot be written.
    """
    # Other threads of this process.
    name = os.path.realpath(output)
    with _GUARD:
        if name in _in_this_process:
            raise _busy(output)
        _in_this_process.add(name)

    # Other processes.
    new_folders = [folder for folder in output.parents if not folder.exists()]
    try:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _locked(output)
        except OSError as error:
            raise cannot_write(output, error) from None
        _lock_files.add(_lock_file(output))
        try:
            yield
        finally:
            remove_lock_file(output)
            os.close(descriptor)
    finally:
        _in_this_process.discard(name)
        # A build that fails leaves no folder; one with files in it cannot be removed.
        with suppress(OSError):
            for folder in new_folders:
                folder.rmdir()


def remove_lock_file(output: Path) -> None:
    """Remove the file with the lock of this process, if it has one.

    It is removed before the lock ends: afterwards, the file may be that of another
    build.
    """
    path = _lock_file(output)
    if path in _lock_files:
        _lock_files.discard(path)
        path.unlink(missing_ok=True)


def _locked(output: Path) -> int:
    """Return a descriptor with the lock of an output.

    Locks by `lockf`, unlike those by `flock`, are not inherited by worker processes,
    which may outlive a killed build for a moment.
    """
    path = _lock_file(output)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise _busy(output) from None
            except OSError:
                # This file system has no locks.
                return descriptor
            # Another build may have removed the file between the two calls.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock_file(output: Path) -> Path:
    return output.with_name(f".{output.name}.lock")


def cannot_write(output: Path, error: Exception) -> OutputError:
    """Return the error about an output that cannot be written."""
    why = reason(error)
    if isinstance(error, FileExistsError):
        why = f"{output.parent} is not a folder"
    return OutputError(
        f"{output}: cannot be written: {why}; free space or choose another place with -o. "
        "The old file, if there was one, is untouched."
    )


def _busy(output: Path) -> OutputError:
    return OutputError(
        f"{output}: another build is writing it: wait for its end; nothing was written"
    )


def require_unchanged(output: Path, before: FileState | None) -> None:
    """Raise OutputError if another program has written or replaced a file since
    `before`.
    """
    if state_of(output) != before:
        raise OutputError(
            f"{output}: has changed since this build began, so another program writes it too; "
            "nothing was written. Build again"
        )
