"""Finds the input: paths → units of work that are worth a process.

Only as much of a folder is listed here as it takes to divide it; what lies below is listed by
whoever reads it, for a folder costs as much to open as a file. Hidden names (they start with a
dot) are passed over. A link to a folder is followed, unless that folder is read anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from spack_cache_db import schema
from spack_cache_db.bounded_files import HEAD, open_regular
from spack_cache_db.errors import Fault, InputError, reason
from spack_cache_db.records import INSTALLED, ROOT


class Place(NamedTuple):
    """A release and a stack; None where nothing says which."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of the index of a mirror.

        What is given here comes first; then a named view of a mirror is a stack; then come the
        first two folders of `path`, the index's path within the input; what lies in none of
        them is of the release and the stack `ROOT`.
        """
        folders = [*path.split("/")[:-1], "", ""]
        release = self.release or folders[0] or ROOT
        return release, self.stack or view or folders[1] or ROOT

    def of_tree(self) -> tuple[str, str]:
        """Return release and stack of an installed tree: the folders around it say nothing."""
        return self.release or INSTALLED, self.stack or ROOT


ANYWHERE = Place()
"""Whatever the folders say."""


_INSPECTION = b'{\n "spack-cache": {\n'


def is_own(head: bytes) -> bool:
    """Return whether a file that begins so is a database of ours, or the inspect file of one.

    `head` has `HEAD` bytes at least, if the file has (SQLite docs, "Database File Format").
    """
    is_ours = head[68:72] == schema.APPLICATION_ID.to_bytes(4, "big")
    return (head.startswith(b"SQLite format 3\0") and is_ours) or head.startswith(_INSPECTION)


def is_database(path: Path) -> bool:
    """Return whether a file is a database of ours; False where it cannot be read."""
    try:
        with open_regular(path) as stream:
            return is_own(stream.read(HEAD))
    except OSError:
        return False


ADDRESS_FILE = "mirror.json"
"""What says where a mirror is, beside an index that was fetched from it."""

ENTRIES_PER_UNIT = 800
"""Enough that handing a unit to a process costs nothing beside reading it."""

ENOUGH_FOLDERS = 1000
"""So many folders can be divided well: they are not looked into."""


class File(NamedTuple):
    """A file on disk: one that some source reads, or an archive of such.

    `location` is the path as the user would type it, for messages; `path` is the name within the
    input, and goes into the database.
    """

    location: str
    path: str


class Folder(NamedTuple):
    """A folder on disk (as `File`); `path` is empty if it was named itself.

    `tops` are the real paths of the folders that are read with all that lies in them.
    """

    location: str
    path: str
    tops: tuple[str, ...] = ()


class MirrorFolder(NamedTuple):
    """The folder of a mirror (as `Folder`): whoever reads it knows what lies where in it."""

    location: str
    path: str


class DatabaseFile(NamedTuple):
    """A database of this program that was named itself (as `File`)."""

    location: str
    path: str


class RawFile(NamedTuple):
    """The bytes of one file and where they came from (see `File`)."""

    location: str
    path: str
    data: bytes


InputEntry = File | Folder | MirrorFolder | DatabaseFile

Unit = tuple[InputEntry, ...]
"""What one process reads in one go."""

Share = Callable[[float], None]
"""Called with how much of a unit has been read, from 0 to 1."""


def plan(paths: Iterable[str]) -> list[Unit]:
    """Return the input divided into units, in an order that does not depend on that of `paths`.

    Entries are ordered by the folder they lie in, and only then by their path: pages of one
    package say much the same in every release, and what is read together is interned together.

    Raises:
        InputError: a path does not exist, or is a folder without any file.
    """
    found: dict[str, InputEntry] = {}
    faults: list[Fault] = []
    paths = [*paths]
    tops = {os.path.realpath(path) for path in paths if os.path.isdir(path)}  # noqa: PTH112
    named = tuple(sorted(tops))
    for path in paths:
        for entry in _expanded(path, named, tops, faults):
            # What is named twice is read once, by the first of its names within the input.
            known = found.setdefault(entry.location, entry)
            if entry < known:
                found[entry.location] = entry
    if faults:
        raise InputError(faults)
    entries: Iterable[InputEntry] = found.values()
    if len(tops) > len(named):
        linked = tuple(sorted(tops))
        entries = [e._replace(tops=linked) if isinstance(e, Folder) else e for e in entries]
    small: list[InputEntry] = []
    large: list[InputEntry] = []
    for each in entries:
        (large if _is_large(each) else small).append(each)
    # Sorted twice, because texts are compared in half the time of tuples.
    small.sort(key=attrgetter("path", "location"))
    small.sort(key=_folder_name)
    chunks = range(0, len(small), ENTRIES_PER_UNIT)
    units: list[Unit] = [tuple(small[at : at + ENTRIES_PER_UNIT]) for at in chunks]
    return [*units, *((each,) for each in sorted(large))]


def files_of(unit: Unit) -> Iterator[File | MirrorFolder | DatabaseFile | Fault]:
    """Yield the files and mirrors of a unit, and a fault for each folder that cannot be listed."""
    for entry in unit:
        if not isinstance(entry, Folder):
            yield entry
            continue
        folders, tops = [entry], {*entry.tops}
        while folders:
            folder = folders.pop()
            try:
                files, below = _listed(folder, tops)
            except OSError as error:
                yield Fault(folder.location, 0, f"cannot be listed: {reason(error)}")
            else:
                yield from files
                folders += below


def _is_large(entry: InputEntry) -> bool:
    """Return whether one entry is work enough for a process."""
    if isinstance(entry, Folder):
        return False
    if isinstance(entry, MirrorFolder | DatabaseFile):
        return True
    return is_archive(entry) or entry.path.endswith("index.json")


def is_archive(file: File) -> bool:
    """Return whether a file's name is that of an archive."""
    return file.location.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst"))


def _expanded(
    path: str, named: tuple[str, ...], tops: set[str], faults: list[Fault]
) -> list[InputEntry]:
    """List files and folders at or below a path, level by level, until there are enough."""
    # Those of Path raise for a name that is too long.
    if not os.path.exists(path):  # noqa: PTH110
        faults.append(Fault(path, 0, "no such file or folder, expected pages or indexes"))
        return []
    if not os.path.isdir(path):  # noqa: PTH112
        # Databases in folders are left out: one of them may be what an older build wrote there.
        kind = DatabaseFile if is_database(Path(path)) else File
        return [kind(path, Path(path).name)]
    found: list[InputEntry] = []
    level = [Folder(path.rstrip(os.sep) or os.sep, "", named)]
    while level and len(level) < ENOUGH_FOLDERS:
        below: list[Folder] = []
        for folder in level:
            try:
                files, folders = _listed(folder, tops)
            except OSError:
                found.append(folder)  # Whoever reads it will say why.
            else:
                found += files
                below += folders
        level = below
    found += level
    if not found:
        faults.append(Fault(path, 0, "the folder holds no file, expected pages or indexes"))
    return found


def _listed(folder: Folder, tops: set[str]) -> tuple[list[File | MirrorFolder], list[Folder]]:
    """List what lies in a folder; `OSError` if that cannot be.

    Args:
        folder: the folder.
        tops: real paths of folders that are read anyway; those that links lead to are added.
    """
    files: list[File | MirrorFolder] = []
    folders = []
    prefix = f"{folder.path}/" if folder.path else ""
    with os.scandir(folder.location) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name in _OF_MIRRORS and _is_of_a_mirror(entry):
                return [MirrorFolder(folder.location, folder.path)], []
            if entry.name.startswith("."):
                continue
            if not _leads_to_folder(entry) or (entry.is_symlink() and is_circle(entry.path)):
                # Whoever opens a circle says what it is.
                files.append(File(entry.path, prefix + entry.name))
            elif not entry.is_symlink() or _is_new(entry.path, tops):
                folders.append(Folder(entry.path, prefix + entry.name, folder.tops))
    return files, folders


def is_circle(link: str) -> bool:
    """Return whether a link leads to a folder in which it lies."""
    return _holds(os.path.realpath(link), os.path.realpath(os.path.dirname(link)))  # noqa: PTH120


def _is_new(link: str, tops: set[str]) -> bool:
    """Return whether a link leads to a folder that is not read anyway; from now on it is."""
    real = os.path.realpath(link)
    if any(_holds(top, real) for top in tops):
        return False
    tops.add(real)
    return True


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link to itself, for example: whoever opens it will say why.


_OF_MIRRORS = {"build_cache", ".spack-db", "v3", ADDRESS_FILE}


def _is_of_a_mirror(entry: os.DirEntry[str]) -> bool:
    """Return whether a thing of such a name is that of a mirror, or of an installation."""
    if entry.name in ("build_cache", ".spack-db"):
        return _leads_to_folder(entry)
    if entry.name == "v3":
        return os.path.isdir(os.path.join(entry.path, "manifests"))  # noqa: PTH112, PTH118 - fast
    return entry.name == ADDRESS_FILE


def _folder_name(entry: InputEntry) -> str:
    folder = entry.path if isinstance(entry, Folder) else entry.path.rpartition("/")[0]
    return folder.rpartition("/")[2]
