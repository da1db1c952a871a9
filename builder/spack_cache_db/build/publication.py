"""Replaces a database by a new one, completely or not at all, with its inspect file.

The inspect file beside a database has the counts and the hash that Datasette would otherwise
compute. Datasette does not check it (docs: "performance", `datasette inspect`), so it is written
from the finished database, and a reader compares the hash (`current_inspection`).

This module loads nothing large: a signal handler calls `discard`.
"""

from __future__ import annotations

import glob
import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import KINDS, put_in_place, read_file, sha256_of
from spack_cache_db.database_file import is_database
from spack_cache_db.errors import DatabaseError, OutputError, reason

NAME = "spack-cache"
"""The database's name in URLs."""

RECORD = "build"
"""The key of an inspect file under which a build records its input."""

_MAX_INSPECTION = 2**20
"""Largest inspect file that is read, in bytes; a usual file has a few thousand."""


def inspect_path(database: Path) -> Path:
    """Return the path of a database's inspect file."""
    return database.with_suffix(".inspect.json")


def require_replaceable(output: Path, inputs: Iterable[str], *, force: bool) -> None:
    """Raise OutputError if writing would replace a file that is not an old database.

    Args:
        output: the file to be written, or the inspect file beside it.
        inputs: the input paths; a file in them is replaced only if it is a database.
        force: whether any other regular file may be replaced.

    Raises:
        OutputError: the output is not a regular file, is part of the input, or was not made by
            this program.
    """
    try:
        status = os.lstat(output)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        raise _cannot_write(output, error) from None
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OutputError(f"{output}: is {kind}, expected a regular file or a new name")
    if is_database(output):
        return
    if any(_is_within(output, path) for path in inputs):
        raise OutputError(f"{output}: is part of the input, expected another place to write to")
    if status.st_size and not force:
        expected = "expected an older database, an empty file or a new name"
        raise OutputError(
            f"{output}: was not made by spack-cache-db, {expected}; to replace it, use --force"
        )


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

    Files of earlier builds that were killed are removed too.

    Raises:
        OutputError: the folder cannot be written, or the disk is full.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for path in (output, inspect_path(output)):
            for left_over in output.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
                if not _is_being_written(left_over):
                    left_over.unlink(missing_ok=True)
        temporary(output).touch()
        yield temporary(output)
    except (OSError, sqlite3.OperationalError) as error:
        raise _cannot_write(output, error) from error
    finally:
        discard(output)


def publish(built: Path, output: Path, record: Mapping[str, Any]) -> tuple[str, bool]:
    """Move a finished database to `output`, then write its inspect file, with a build record.

    Returns:
        The sha256 in hex, and whether the old file has the same bytes and stays.

    Raises:
        OutputError: a folder has the name of the inspect file.
    """
    inspected = inspect(built)
    inspected[NAME] |= {"file": output.name, RECORD: record}
    text = json.dumps(inspected, indent=1, sort_keys=True) + "\n"
    inspect_file = inspect_path(output)
    temporary(inspect_file).write_text(text, encoding="utf-8")
    sha256 = str(inspected[NAME]["hash"])
    is_same = output.exists() and sha256_of(output) == sha256
    if not is_same:
        put_in_place(built, output)
    try:
        temporary(inspect_file).replace(inspect_file)
    except OSError as error:
        message = f"cannot be written: {error.strerror}; the database itself is complete"
        raise OutputError(f"{inspect_file}: {message}") from None
    return sha256, is_same


def inspect(database: Path) -> dict[str, Any]:
    """Return the content of Datasette's inspect file: hash, size in bytes, rows of each table."""
    with closing(_connected(database)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        counts = {name: {"count": _count(connection, name)} for (name,) in names.fetchall()}
    size = database.stat().st_size
    return {
        NAME: {"hash": sha256_of(database), "size": size, "file": database.name, "tables": counts}
    }


def _connected(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def _count(connection: sqlite3.Connection, table: str) -> int:
    quoted = table.replace('"', '""')
    (rows,) = connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()  # noqa: S608
    return int(rows)


def current_inspection(database: Path, published: Path | None = None) -> dict[str, Any]:
    """Return the content of the inspect file if its hash fits, otherwise inspect the database.

    Args:
        database: the database.
        published: the path beside which the inspect file is, if it differs from `database`.

    Raises:
        DatabaseError: the database has no inspect file and is damaged.
    """
    published = published or database
    try:
        inspected = json.loads(read_file(inspect_path(published), _MAX_INSPECTION))
        if inspected[NAME]["hash"] == sha256_of(database):
            return dict(inspected)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    try:
        _check(database)
        return inspect(database)
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{published}: is damaged: {error}; build it again") from None


def _check(database: Path) -> None:
    with closing(_connected(database)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise sqlite3.DatabaseError(" ".join(result.split()))


def _is_within(output: Path, path: str) -> bool:
    try:
        real, folder = os.path.realpath(output), os.path.realpath(path)
    except ValueError:
        # No file can have a path with a NUL; reading the input reports it.
        return False
    return os.path.commonpath([real, folder]) == folder


def _is_being_written(path: Path) -> bool:
    """Return whether a temporary file's name contains the id of another running process."""
    pid = path.name.split(".")[-2]
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return int(pid) != os.getpid()


def _cannot_write(output: Path, error: Exception) -> OutputError:
    """Return the error for an output that cannot be written."""
    why = reason(error)
    if isinstance(error, FileExistsError):
        why = f"{output.parent} is not a folder"
    return OutputError(
        f"{output}: cannot be written: {why}; free space or choose another place with -o. "
        "The old file, if there was one, is untouched."
    )
