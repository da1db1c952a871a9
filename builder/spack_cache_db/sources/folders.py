"""Lists the members of folders of the input, and tells what was named.

Hidden names (with a leading dot) are skipped. A link to a folder is followed, unless
that folder is read anyway. A folder with a mirror or an installation is one member.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.database_file import is_database
from spack_cache_db.errors import Fault, reason
from spack_cache_db.sources.files import ADDRESS_FILE, File

# Functions of os.path return False for a name that is too long; methods of Path raise.


def named_file(path: str) -> File:
    """Return a file that was named.

    Only one that was named may be a database: those in folders are skipped, because an
    earlier build may have written them there.
    """
    file = File(path, Path(path).name)
    if is_database(Path(path)):
        return file._replace(kind="database")
    return file


def top_folder(path: str) -> File:
    """Return a folder that was named."""
    return File(path.rstrip(os.sep) or os.sep, "")


_NAME = attrgetter("name")
"""Returns the name of an entry of a folder."""


class Members(NamedTuple):
    """The members of a folder that are read: files and mirrors, folders, and faults."""

    files: list[File]
    folders: list[File]
    faults: list[Fault]


def list_folder(folder: File, real_folders: set[str]) -> Members:
    """Return the members of a folder; a mirror has itself as its only member.

    Args:
        folder: the folder.
        real_folders: the real paths of folders that are read anyway; a link to one of
            them is skipped. The targets of the links that are followed are added.
    """
    members = Members([], [], [])
    try:
        with os.scandir(folder.location) as found:
            entries = sorted(found, key=_NAME)
    except OSError as error:
        message = f"cannot be listed: {reason(error)}"
        members.faults.append(Fault(folder.location, 0, message))
        return members

    # A mirror is read as a whole.
    if _is_mirror(folder.location, map(_NAME, entries)):
        members.files.append(folder._replace(kind="mirror"))
        return members

    start = f"{folder.path}/" if folder.path else ""
    for entry in entries:
        if entry.name.startswith("."):
            continue
        member = File(entry.path, start + entry.name)
        if not _leads_to_folder(entry):
            members.files.append(member)
        elif not entry.is_symlink():
            members.folders.append(member)
        elif _is_circle(folder, member):
            message = "is a link to a folder that contains it, expected no circle"
            members.faults.append(Fault(member.location, 0, message))
        elif _is_first_link(member, real_folders):
            members.folders.append(member)
    return members


_FOLDERS_OF_MIRRORS = {
    # Mirrors of layout 2, before Spack 1.0.
    "build_cache": "",
    # Installations.
    ".spack-db": "",
    # Mirrors of layout 3.
    "v3": "manifests",
}
"""The folders by which mirrors are known, and the folder that has to be in each, if
any.
"""


_MARKS_OF_MIRRORS = frozenset({ADDRESS_FILE, *_FOLDERS_OF_MIRRORS})
"""Names in a folder without which it is neither a mirror nor an installation."""


def _is_mirror(folder: str, names: Iterable[str]) -> bool:
    """Return whether names in a folder are those of a mirror or an installation."""
    marks = _MARKS_OF_MIRRORS.intersection(names)
    # Nearly all folders are of pages, and have none of these names.
    if not marks:
        return False
    if ADDRESS_FILE in marks:
        return True
    for name in marks:
        path = os.path.join(folder, name, _FOLDERS_OF_MIRRORS[name])  # noqa: PTH118
        if os.path.isdir(path):  # noqa: PTH112
            return True
    return False


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link to itself, for example: opening it reports the error.


def _is_circle(folder: File, link: File) -> bool:
    """Return whether a link in a folder leads to a folder that contains it."""
    target = os.path.realpath(link.location)
    return _is_within(target, os.path.realpath(folder.location))


def _is_first_link(link: File, real_folders: set[str]) -> bool:
    """Return whether a folder is not read anyway, and add it to those that are."""
    target = os.path.realpath(link.location)
    if any(_is_within(known, target) for known in real_folders):
        return False
    real_folders.add(target)
    return True


def _is_within(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
