"""The Datasette that `serve` runs: which file, settings and plugins make up the site.

The file is served under a path of its own, so that what is built in its place meanwhile changes
nothing: Datasette opens a file again in every thread, and a restarted worker opens it anew. It is
linked (where that is impossible: copied) into a folder that belongs to this server alone. That
folder is locked for as long as a process of the server lives; the next server removes what a killed
one left behind.
"""

from __future__ import annotations

import fcntl
import inspect
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from datasette.app import Datasette

from spack_cache_db.build.publication import NAME, current_inspection
from spack_cache_db.errors import DatabaseError, reason
from spack_cache_db.query.connection import open_database
from spack_cache_db.site import site_folder

PREFIX = ".spack-cache-db-served-"

SettingValues = dict[str, bool | int]


def site_settings() -> SettingValues:
    """Return Datasette's settings from datasette.yml, by name."""
    text = (site_folder() / "datasette.yml").read_text(encoding="utf-8")
    settings: SettingValues = yaml.safe_load(text)["settings"]
    return settings


@dataclass(frozen=True, slots=True)
class Served:
    """A file as Datasette serves it, under the name that it has in URLs.

    Args:
        path: leads to the file for as long as it is served.
        inspected: what an inspect file says, of this very file: Datasette would believe a stale
            one.
    """

    path: Path
    inspected: dict[str, Any]


@contextmanager
def served(database: Path) -> Iterator[Served]:
    """Yield a file that is whole, and stays what it is while it is served.

    Raises:
        DatabaseError: it is no file that build made, or a damaged one, or Datasette cannot show it.
    """
    open_database(database).close()
    with pinned(database, f"{NAME}.db") as path:
        inspected = current_inspection(path, database)
        for name in inspected[NAME]["tables"]:
            # Datasette 0.65 and 1.0 put names into SQL between brackets as they are.
            if "]" in name:
                message = "a name that Datasette cannot show; rename it"
                raise DatabaseError(f"{database}: has a table {name!r}, {message}")
        yield Served(path, inspected)


def datasette(file: Served, *, sql: bool, cors: bool) -> Any:
    """Return the Datasette that serves a file.

    Args:
        file: the file.
        sql: whether visitors may type SQL of their own.
        cors: whether pages of other sites may read what is served.
    """
    here = site_folder()
    described = yaml.safe_load((here / "metadata.yml").read_text(encoding="utf-8"))
    return Datasette(
        immutables=[str(file.path)],
        inspect_data=file.inspected,
        metadata=described,
        **_for_version_1(file, described),
        template_dir=str(here / "templates"),
        plugins_dir=str(here / "plugins"),
        static_mounts=[("static", str(here / "static"))],
        settings={**site_settings(), "default_allow_sql": sql},
        cors=cors,
    )


def _for_version_1(file: Served, described: dict[str, Any]) -> dict[str, Any]:
    """Return what only Datasette 1.0 is told: it reads half of what describes a site as `config`.

    Its own bookkeeping is a file, one for each process, which else a killed server leaves behind.
    """
    if "internal" not in inspect.signature(Datasette).parameters:
        return {}
    return {"config": described, "internal": str(file.path.with_name(f"internal-{os.getpid()}.db"))}


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
