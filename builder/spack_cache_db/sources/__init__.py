"""Finds the files of the input, and divides them into units of work for processes.

Hidden names (with a leading dot) are skipped. A link to a folder is followed, unless that folder is
read anyway.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from spack_cache_db import schema
from spack_cache_db.bounded_files import HEAD, open_regular
from spack_cache_db.errors import Fault, InputError, reason
from spack_cache_db.records import INSTALLED, ROOT


class Place(NamedTuple):
    """A release and a stack; None if the folders give the name."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of the index of a mirror.

        The first name that exists is used: those of this place, the view as a stack, the first two
        folders of `path` (the path of the index within the input), `ROOT`.
        """
        folders = [*path.split("/")[:-1], "", ""]
        release = self.release or folders[0] or ROOT
        return release, self.stack or view or folders[1] or ROOT

    def of_tree(self, index: File) -> tuple[str, str]:
        """Return release and stack of an installation from the path of its index.

        The release is the first folder within the input, or else the input itself, whose name is
        not one of `_USUAL_NAMES`.
        """
        top = Path(os.path.abspath(index.location.removesuffix(index.path)))  # noqa: PTH100
        top = top.parent if top.name == _TREE else top
        # The folder of a copied index is not that of an installation.
        folders = [*index.path.split("/")[:-1], *([top.name] if _TREE in index.location else [])]
        names = (name for name in folders if name not in _USUAL_NAMES)
        return self.release or next(names, INSTALLED), self.stack or ROOT


ANYWHERE = Place()
"""Release and stack come from the folders."""

_TREE = ".spack-db"
"""The folder with the index of an installation."""

_USUAL_NAMES = {_TREE, "", "apps", "install", "installed", "opt", "software", "spack", "sw"}
"""Names of folders that many installations have."""


_INSPECTION = b'{\n "spack-cache": {\n'


def is_own(head: bytes) -> bool:
    """Return whether a file is a spack-cache-db database or its inspect file.

    `head` is the first `HEAD` bytes of the file (SQLite docs, "Database File Format").
    """
    is_ours = head[68:72] == schema.APPLICATION_ID.to_bytes(4, "big")
    return (head.startswith(b"SQLite format 3\0") and is_ours) or head.startswith(_INSPECTION)


def is_database(path: Path) -> bool:
    """Return whether a file is a spack-cache-db database; False if it cannot be read."""
    try:
        with open_regular(path) as stream:
            return is_own(stream.read(HEAD))
    except OSError:
        return False


ADDRESS_FILE = "mirror.json"
"""The file with the address of a mirror, beside an index that was fetched from it."""

SIZES_FILE = "sizes.json"
"""The file with the size of each binary by its hash, in the same folder."""

ENTRIES_PER_UNIT = 800
"""Files of a unit: enough to make the cost of passing it to a process negligible."""


class File(NamedTuple):
    """A file on disk, or the folder of a mirror.

    Attributes:
        location: the path as the user would type it, for messages.
        path: the path within the input, which goes into the database.
        kind: `file`, `mirror`, `database` for a spack-cache-db database that was named itself, or
            `modules` for a list of environment modules.
        release: the release that was given for an installation or its modules.
    """

    location: str
    path: str
    kind: Literal["file", "mirror", "database", "modules"] = "file"
    release: str | None = None


class RawFile(NamedTuple):
    """The bytes of one file and their origin (see `File`)."""

    location: str
    path: str
    data: bytes
    release: str | None = None
    kind: str = "file"


Unit = tuple[File | Fault, ...]
"""Files that one process reads together, and the faults of folders that cannot be listed."""

Share = Callable[[float], None]
"""Called with the part of a unit that has been read, from 0 to 1."""


def plan(
    paths: Iterable[str],
    installations: Iterable[tuple[str, str]] = (),
    modules: Iterable[tuple[str | None, str]] = (),
) -> list[Unit]:
    """Return the input divided into units; the order of `paths` does not matter.

    Files are sorted by the name of their folder, then by path: pages of one package have much the
    same content in every release, and one unit stores equal texts once.

    Args:
        paths: files and folders.
        installations: release and path of each installation.
        modules: release, if given, and path of each list of modules.

    Raises:
        InputError: a path does not exist, or is a folder without a file.
    """
    files_by_location: dict[str, File] = {}
    faults: list[Fault] = []
    unlisted: list[Fault] = []
    installation_paths = sorted((path, release) for release, path in installations)
    inputs: list[tuple[str, str | None]] = [
        *((path, None) for path in sorted(paths)),
        *installation_paths,
    ]
    tops = {os.path.realpath(path) for path, _ in inputs if os.path.isdir(path)}  # noqa: PTH112
    for path, release in inputs:
        # Methods of Path raise for a name that is too long.
        if not os.path.exists(path):  # noqa: PTH110
            faults.append(Fault(path, 0, "no such file or folder, expected pages or indexes"))
            continue
        if not os.path.isdir(path):  # noqa: PTH112
            # Databases in folders are skipped: an earlier build may have written them there.
            files = [File(path, Path(path).name, "database" if is_database(Path(path)) else "file")]
        else:
            files, folder_faults = _files_below(path.rstrip(os.sep) or os.sep, tops)
            unlisted += folder_faults
            if not files and not folder_faults:
                faults.append(Fault(path, 0, "the folder has no file, expected pages or indexes"))
        for file in files:
            # A file with two paths is read once, under the first of them.
            earlier = files_by_location.get(file.location, file)
            if release and earlier.release not in (None, release):
                message = f"is given as the installation {earlier.release} and as {release}"
                faults.append(Fault(path, 0, f"{message}, expected one name"))
            renamed = file._replace(path=f"{release}/{file.path}".rstrip("/"), release=release)
            files_by_location[file.location] = renamed if release else min(earlier, file)
    for release, path in modules:
        files = _module_lists(path)
        for file in files:
            name = f"{release}/{file.path}" if release else file.path
            files_by_location[file.location] = file._replace(
                path=name, release=release, kind="modules"
            )
        if not files:
            expected = "expected module-index.yaml, or JSON of Lmod's spider"
            faults.append(
                Fault(path, 0, f"no such file, or folder with a list of modules, {expected}")
            )
    if faults:
        raise InputError(faults)
    small = [file for file in files_by_location.values() if not _is_large(file)]
    small.sort(key=lambda file: (posixpath.basename(posixpath.dirname(file.path)), file))
    chunks = range(0, len(small), ENTRIES_PER_UNIT)
    units: list[Unit] = [tuple(small[at : at + ENTRIES_PER_UNIT]) for at in chunks]
    units += [(file,) for file in sorted(files_by_location.values()) if _is_large(file)]
    return [*units, tuple(unlisted)] if unlisted else units


def _module_lists(path: str) -> list[File]:
    """Return a file that lists modules, or all such files below a folder."""
    if not os.path.isdir(path):  # noqa: PTH112
        return [File(path, Path(path).name)] if os.path.exists(path) else []  # noqa: PTH110
    files, _ = _files_below(path.rstrip(os.sep) or os.sep, set())
    return [file for file in files if file.path.endswith(("module-index.yaml", ".json"))]


def _is_large(file: File) -> bool:
    """Return whether a file is a unit of its own."""
    is_plain = file.kind in ("file", "modules")
    return not is_plain or is_archive(file) or file.path.endswith("index.json")


def is_archive(file: File) -> bool:
    """Return whether a file has the suffix of an archive."""
    return file.location.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst"))


def _files_below(top: str, tops: set[str]) -> tuple[list[File], list[Fault]]:
    """Return the files and mirrors below a folder, and the faults of folders that cannot be listed.

    Args:
        top: the folder.
        tops: real paths of folders that are read anyway; targets of links are added.
    """
    files: list[File] = []
    faults: list[Fault] = []
    folders = [File(top, "")]
    for folder in folders:
        prefix = f"{folder.path}/" if folder.path else ""
        try:
            with os.scandir(folder.location) as entries:
                members = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            faults.append(Fault(folder.location, 0, f"cannot be listed: {reason(error)}"))
            continue
        if any(member.name in _OF_MIRRORS and _is_of_a_mirror(member) for member in members):
            files.append(File(folder.location, folder.path, "mirror"))
            continue
        for member in members:
            entry = File(member.path, prefix + member.name)
            if member.name.startswith("."):
                continue
            if not _leads_to_folder(member) or (member.is_symlink() and is_circle(member.path)):
                # Opening it reports the circle.
                files.append(entry)
            elif not member.is_symlink() or _is_new(member.path, tops):
                folders.append(entry)
    return files, faults


def is_circle(link: str) -> bool:
    """Return whether a link leads to a folder that contains it."""
    return _holds(os.path.realpath(link), os.path.realpath(os.path.dirname(link)))  # noqa: PTH120


def _is_new(link: str, tops: set[str]) -> bool:
    """Return whether a link leads to a folder outside `tops`, and add that folder to `tops`."""
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
        return False  # A link to itself, for example: opening it reports the error.


_OF_MIRRORS = {"build_cache", ".spack-db", "v3", ADDRESS_FILE}


def _is_of_a_mirror(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of this name marks its folder as a mirror or an installation."""
    if entry.name in ("build_cache", ".spack-db"):
        return _leads_to_folder(entry)
    if entry.name == "v3":
        return os.path.isdir(os.path.join(entry.path, "manifests"))  # noqa: PTH112, PTH118 - fast
    return entry.name == ADDRESS_FILE
