"""Finds the input: paths → units of work that are worth a process.

Hidden names (they start with a dot) are passed over. A link to a folder is followed, unless that
folder is read anyway.
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
    """A release and a stack; None where nothing says which."""

    release: str | None = None
    stack: str | None = None

    def of(self, path: str, view: str | None = None) -> tuple[str, str]:
        """Return release and stack of the index of a mirror.

        Names that are given here come first, then the view of a mirror as a stack, then the first
        two folders of `path`, the index's path within the input, then `ROOT`.
        """
        folders = [*path.split("/")[:-1], "", ""]
        release = self.release or folders[0] or ROOT
        return release, self.stack or view or folders[1] or ROOT

    def of_tree(self, index: File) -> tuple[str, str]:
        """Return release and stack of an installation, given its index.

        Its release is the first folder within the input, or else the input, whose name is not one
        that many installations have.
        """
        top = Path(os.path.abspath(index.location.removesuffix(index.path)))  # noqa: PTH100
        top = top.parent if top.name == _TREE else top
        # The folder of a copied index says nothing.
        folders = [*index.path.split("/")[:-1], *([top.name] if _TREE in index.location else [])]
        named = (name for name in folders if name not in _USUAL_NAMES)
        return self.release or next(named, INSTALLED), self.stack or ROOT


ANYWHERE = Place()
"""Whatever the folders say."""

_TREE = ".spack-db"
"""The folder that an installation has its index in."""

_USUAL_NAMES = {_TREE, "", "apps", "install", "installed", "opt", "software", "spack", "sw"}
"""Names of folders that do not say which installation they have."""


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
"""The file with the address of a mirror, beside an index that was fetched from it."""

SIZES_FILE = "sizes.json"
"""The file with the bytes of each binary by its hash, in the same place."""

ENTRIES_PER_UNIT = 800
"""Enough that handing a unit to a process costs nothing beside reading it."""


class File(NamedTuple):
    """A file on disk, or the folder of a mirror, whose reader knows what lies where in it.

    Attributes:
        location: the path as the user would type it, for messages.
        path: the name within the input, which goes into the database.
        kind: `file`, `mirror`, `database` for a database of this program that was named itself, or
            `modules` for a list of environment modules.
        release: the release of an installation, or of its modules, that was given by name.
    """

    location: str
    path: str
    kind: Literal["file", "mirror", "database", "modules"] = "file"
    release: str | None = None


class RawFile(NamedTuple):
    """The bytes of one file and where they came from (see `File`)."""

    location: str
    path: str
    data: bytes
    release: str | None = None
    kind: str = "file"


Unit = tuple[File | Fault, ...]
"""Files that one process reads in one go, and folders that cannot be listed."""

Share = Callable[[float], None]
"""Called with how much of a unit has been read, from 0 to 1."""


def plan(
    paths: Iterable[str],
    installations: Iterable[tuple[str, str]] = (),
    modules: Iterable[tuple[str | None, str]] = (),
) -> list[Unit]:
    """Return the input divided into units, in an order that does not depend on that of `paths`.

    Installations are given as release and path, and so are modules, whose release may be unknown.

    Files are ordered by the folder they lie in, and only then by their path: pages of one package
    say much the same in every release, and what is read together is interned together.

    Raises:
        InputError: a path does not exist, or is a folder without any file.
    """
    found: dict[str, File] = {}
    faults: list[Fault] = []
    unlisted: list[Fault] = []
    named = sorted((path, release) for release, path in installations)
    given: list[tuple[str, str | None]] = [*((path, None) for path in sorted(paths)), *named]
    tops = {os.path.realpath(path) for path, _ in given if os.path.isdir(path)}  # noqa: PTH112
    for path, release in given:
        # Those of Path raise for a name that is too long.
        if not os.path.exists(path):  # noqa: PTH110
            faults.append(Fault(path, 0, "no such file or folder, expected pages or indexes"))
            continue
        if not os.path.isdir(path):  # noqa: PTH112
            # Databases in folders are left out: one may be what an older build wrote there.
            files = [File(path, Path(path).name, "database" if is_database(Path(path)) else "file")]
        else:
            files, here = _files_below(path.rstrip(os.sep) or os.sep, tops)
            unlisted += here
            if not files and not here:
                faults.append(Fault(path, 0, "the folder holds no file, expected pages or indexes"))
        for file in files:
            # A file that is named twice is read once, by the first of its names.
            known = found.get(file.location, file)
            if release and known.release not in (None, release):
                message = f"is given as the installation {known.release} and as {release}"
                faults.append(Fault(path, 0, f"{message}, expected one name"))
            own = file._replace(path=f"{release}/{file.path}".rstrip("/"), release=release)
            found[file.location] = own if release else min(known, file)
    for release, path in modules:
        files = _module_lists(path)
        for file in files:
            place = f"{release}/{file.path}" if release else file.path
            found[file.location] = file._replace(path=place, release=release, kind="modules")
        if not files:
            expected = "expected module-index.yaml, or JSON of Lmod's spider"
            faults.append(
                Fault(path, 0, f"no such file, or folder with a list of modules, {expected}")
            )
    if faults:
        raise InputError(faults)
    small = [each for each in found.values() if not _is_large(each)]
    small.sort(key=lambda file: (posixpath.basename(posixpath.dirname(file.path)), file))
    chunks = range(0, len(small), ENTRIES_PER_UNIT)
    units: list[Unit] = [tuple(small[at : at + ENTRIES_PER_UNIT]) for at in chunks]
    units += [(each,) for each in sorted(found.values()) if _is_large(each)]
    return [*units, tuple(unlisted)] if unlisted else units


def _module_lists(path: str) -> list[File]:
    """Return a file that lists modules, or all such files below a folder."""
    if not os.path.isdir(path):  # noqa: PTH112
        return [File(path, Path(path).name)] if os.path.exists(path) else []  # noqa: PTH110
    files, _ = _files_below(path.rstrip(os.sep) or os.sep, set())
    return [each for each in files if each.path.endswith(("module-index.yaml", ".json"))]


def _is_large(file: File) -> bool:
    """Return whether one file is work enough for a process."""
    is_plain = file.kind in ("file", "modules")
    return not is_plain or is_archive(file) or file.path.endswith("index.json")


def is_archive(file: File) -> bool:
    """Return whether a file's name is that of an archive."""
    return file.location.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst"))


def _files_below(top: str, tops: set[str]) -> tuple[list[File], list[Fault]]:
    """List what lies below a folder, and the folders that cannot be listed.

    Args:
        top: the folder.
        tops: real paths of folders that are read anyway; those that links lead to are added.
    """
    files: list[File] = []
    faults: list[Fault] = []
    folders = [File(top, "")]
    for folder in folders:
        prefix = f"{folder.path}/" if folder.path else ""
        try:
            with os.scandir(folder.location) as entries:
                members = sorted(entries, key=lambda each: each.name)
        except OSError as error:
            faults.append(Fault(folder.location, 0, f"cannot be listed: {reason(error)}"))
            continue
        if any(each.name in _OF_MIRRORS and _is_of_a_mirror(each) for each in members):
            files.append(File(folder.location, folder.path, "mirror"))
            continue
        for each in members:
            entry = File(each.path, prefix + each.name)
            if each.name.startswith("."):
                continue
            if not _leads_to_folder(each) or (each.is_symlink() and is_circle(each.path)):
                # Opening a circle says what it is.
                files.append(entry)
            elif not each.is_symlink() or _is_new(each.path, tops):
                folders.append(entry)
    return files, faults


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
