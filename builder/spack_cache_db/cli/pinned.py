"""A served file under a name of its own: what is built in its place meanwhile changes nothing.

Datasette opens a file again in every thread, and a worker that was restarted opens it anew. So the
file is linked (where that is impossible: copied) into a folder that belongs to this server alone.
The folder is locked for as long as a process of the server lives; what a killed one left behind is
removed by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spack_cache_db.errors import DatabaseError, reason

PREFIX = ".spack-cache-db-served-"


@contextmanager
def pinned(database: Path, name: str) -> Iterator[Path]:
    """Yield another path of the file, called `name`, which leads to it whatever replaces it.

    Raises:
        DatabaseError: the file can neither be linked nor copied.
    """
    beside = database.resolve().parent
    places = [Path(tempfile.gettempdir()), beside]
    for place in places:
        _remove_left_behind(place)
    folder, lock = _linked(database, name, places) or _copied(database, name, places[0])
    owner = os.getpid()
    try:
        yield folder / name
    finally:
        # A worker that ends comes by here too; the others go on.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _linked(database: Path, name: str, places: list[Path]) -> tuple[Path, int] | None:
    for place in places:
        try:
            folder, lock = _own_folder(place)
        except OSError:
            continue
        try:
            (folder / name).hardlink_to(database.resolve())
        except OSError:
            # Another file system, one without links, or a file of somebody else.
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
        else:
            return folder, lock
    return None


def _copied(database: Path, name: str, place: Path) -> tuple[Path, int]:
    try:
        folder, lock = _own_folder(place)
    except OSError as error:
        raise DatabaseError(f"{place}: {reason(error)}; set TMPDIR to another folder") from None
    try:
        shutil.copyfile(database, folder / name)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        message = f"cannot be copied to {place}: {reason(error)}; set TMPDIR to another folder"
        raise DatabaseError(f"{database}: {message}") from None
    return folder, lock


def _own_folder(place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another server may have taken it for one left behind before it was locked.
        if folder.exists():
            return folder, lock
        os.close(lock)


def _remove_left_behind(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)
