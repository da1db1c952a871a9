"""Puts a new database in the place of the old one, with its inspect file.

A database is written under a temporary name and renamed when it is complete, so that
readers find the old one or the new one, and never half a file.
"""

from __future__ import annotations

import glob
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.inspection import inspect, now, write_inspection
from spack_cache_db.assembly.output_lock import (
    FileState,
    cannot_write,
    require_unchanged,
    state_of,
)
from spack_cache_db.bounded_files import KINDS, sha256_of
from spack_cache_db.database_damage import is_of_system
from spack_cache_db.database_file import is_database
from spack_cache_db.errors import OutputError, reason
from spack_cache_db.inspect_file import (
    LOOKED,
    NAME,
    NOT_OURS,
    RECORD,
    inspect_path,
    read_inspection,
)
from spack_cache_db.output_folders import put_in_place


def require_replaceable(output: Path, inputs: Iterable[str], *, force: bool) -> None:
    """Raise OutputError if writing would replace a file that is not an old database.

    Any other regular file is replaced with `force`, but not if it is part of the input.
    """
    try:
        status = os.lstat(output)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        raise cannot_write(output, error) from None
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OutputError(f"{output}: is {kind}, expected a regular file or a new name")
    if is_database(output):
        return
    if any(_is_within(output, path) for path in inputs):
        raise OutputError(
            f"{output}: is part of the input, expected another place to write to"
        )
    if status.st_size and not force:
        expected = "expected an older database, an empty file or a new name"
        raise OutputError(
            f"{output}: was not made by spack-cache-db, {expected}; to replace it, use --force"
        )


def require_own_inspect_file(output: Path) -> None:
    """Raise OutputError if the inspect file of an output is that of another database.

    `x.inspect.json` is the inspect file of `x.db` and of `x.sqlite`.
    """
    inspect_file = inspect_path(output)
    try:
        owner = output.with_name(read_inspection(output)[NAME]["file"])
        shares_file = owner != output and inspect_path(owner) == inspect_file
    except NOT_OURS:
        # There is no inspect file, or something else wrote it.
        return
    # After a database was renamed, there is none of the old name.
    if shares_file and is_database(owner):
        raise OutputError(
            f"{output}: its inspect file {inspect_file} is that of {owner}, "
            "expected a name that differs before the suffix"
        )


def _is_within(output: Path, path: str) -> bool:
    try:
        file = os.path.realpath(output)
        folder = os.path.realpath(path)
    except ValueError:
        # No file can have a path with a NUL; reading the input reports it.
        return False
    return os.path.commonpath([file, folder]) == folder


def temporary(path: Path) -> Path:
    """Return the name under which this process writes a file until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def discard(output: Path) -> None:
    """Remove the incomplete files of this process, if there are any."""
    for path in (output, inspect_path(output)):
        # A name that no file can have is a ValueError.
        with suppress(OSError, ValueError):
            temporary(path).unlink()


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is removed at the end.

    Files of earlier builds that were killed are removed too. A folder that cannot be
    written, or a full disk, is an OutputError.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for path in (output, inspect_path(output)):
            # The names that `temporary` gives.
            pattern = f".{glob.escape(path.name)}.*.tmp"
            for left_over in output.parent.glob(pattern):
                if not _is_being_written(left_over):
                    left_over.unlink(missing_ok=True)
        temporary(output).touch()
        yield temporary(output)
    except OSError as error:
        raise cannot_write(output, error) from error
    except sqlite3.DatabaseError as error:
        if not is_of_system(error):
            raise
        raise cannot_write(output, error) from error
    finally:
        discard(output)


def _is_being_written(path: Path) -> bool:
    """Return whether a temporary file's name contains the id of another running
    process.
    """
    pid = path.name.split(".")[-2]
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return int(pid) != os.getpid()


def publish(
    built: Path, output: Path, record: Mapping[str, Any], before: FileState | None
) -> tuple[str, bool]:
    """Move a finished database to `output`, then write its inspect file, with a build
    record.

    Return the sha256 in hex, and whether the old file has the same bytes and stays.

    Args:
        built: the finished database under its temporary name.
        output: its place.
        record: what the next build compares: the fingerprint of the input, the day and
            the counts; empty if the next build must not compare it.
        before: the state of `output` when the build began.

    Raises:
        OutputError: another program has written `output` since, or a file cannot be
            written.
    """
    # The inspect file, complete under a temporary name.
    inspected = inspect(built)
    inspected[NAME]["file"] = output.name
    inspected[NAME][RECORD] = {**record, LOOKED: now()}
    inspect_file = inspect_path(output)
    write_inspection(temporary(inspect_file), inspected)

    # The database first: a reader compares the hash in an inspect file.
    sha256 = str(inspected[NAME]["hash"])
    is_same = output.exists() and sha256_of(output) == sha256
    new_inode = built.stat().st_ino
    try:
        if not is_same:
            require_unchanged(output, before)
            put_in_place(built, output)
        temporary(inspect_file).replace(inspect_file)
    except OSError as error:
        state = state_of(output)
        is_replaced = state is not None and state.inode == new_inode
        if not (is_same or is_replaced):
            raise
        outcome = "is unchanged"
        if is_replaced:
            outcome = "the new database is complete and in place"
        raise OutputError(
            f"{output}: {outcome}, but {inspect_file} was not written: {reason(error)}. "
            "`serve` works without it; build again to write it"
        ) from error
    return sha256, is_same


def note_look(output: Path, inspected: dict[str, Any]) -> None:
    """Write the time of now into an inspect file, whose database has nothing new.

    Args:
        output: the database.
        inspected: the content of its inspect file.
    """
    inspected[NAME][RECORD][LOOKED] = now()
    inspect_file = inspect_path(output)
    try:
        write_inspection(temporary(inspect_file), inspected)
        temporary(inspect_file).replace(inspect_file)
    except OSError as error:
        raise OutputError(
            f"{output}: has nothing new, but {inspect_file} was not written: {reason(error)}"
        ) from error
    finally:
        discard(output)
