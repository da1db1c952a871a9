"""Finds the files of the input, and divides them into units.

A unit is what a worker process reads at a time. Hidden names (with a leading dot) are
skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.files import File, Unit, is_archive
from spack_cache_db.sources.folders import list_folder, named_file, top_folder

# Functions of os.path return False for a name that is too long; methods of Path raise.

ENTRIES_PER_UNIT = 800
"""Files of a unit: enough to make the cost of passing it to a process negligible."""


def plan(
    paths: Iterable[str],
    installations: Iterable[tuple[str, str]] = (),
    modules: Iterable[tuple[str | None, str]] = (),
) -> list[Unit]:
    """Return the input divided into units; the order of `paths` does not matter.

    Args:
        paths: files and folders.
        installations: release and path of each installation.
        modules: release, if given, and path of each list of modules.

    Raises:
        InputError: a path does not exist, or is a folder without a file.
    """
    # Installations come after paths, and in the order of their own paths, whatever the
    # order in which they were named.
    found = _FoundFiles()
    found.add_paths(sorted(paths), sorted(installations, key=_path_first))
    found.add_module_lists(modules)
    if found.faults:
        raise InputError(found.faults)
    units = _units_of(list(found.file_of_location.values()))
    # These faults are a part of the input, so that `--keep-going` builds the rest.
    if found.unlisted:
        databases = [unit for unit in units if is_of_database(unit)]
        units.insert(len(units) - len(databases), tuple(found.unlisted))
    return units


def _path_first(installation: tuple[str, str]) -> tuple[str, str]:
    release, path = installation
    return path, release


class _FoundFiles:
    """The files of the input, each once.

    Attributes:
        file_of_location: the files and mirrors by their locations.
        faults: what is wrong with the paths that were named.
        unlisted: faults of folders below them that cannot be listed.
    """

    def __init__(self) -> None:
        self.file_of_location: dict[str, File] = {}
        self.faults: list[Fault] = []
        self.unlisted: list[Fault] = []

    def add_paths(self, paths: list[str], installations: list[tuple[str, str]]) -> None:
        """Add all files below some paths, and those of installations."""
        # Folders that are read anyway, so that links to them are not followed.
        named_paths = paths + [path for _, path in installations]
        real_folders = set()
        for path in named_paths:
            if os.path.isdir(path):  # noqa: PTH112
                real_folders.add(os.path.realpath(path))

        # A file with two paths within the input is read once, under the first of them.
        for path in paths:
            for file in self._found_below(path, real_folders):
                known = self.file_of_location.get(file.location)
                if known is None or file < known:
                    self.file_of_location[file.location] = file

        # The name of an installation takes the place of its folder's.
        for release, path in installations:
            for file in self._found_below(path, real_folders):
                known = self.file_of_location.get(file.location)
                if known is not None and known.release not in (None, release):
                    message = (
                        f"is given as the installation {known.release} and as {release}"
                    )
                    self._refuse(path, f"{message}, expected one name")
                path_in_input = f"{release}/{file.path}".rstrip("/")
                named = file._replace(path=path_in_input, release=release)
                self.file_of_location[file.location] = named

    def _found_below(self, path: str, real_folders: set[str]) -> list[File]:
        """Return the files below a path; a path without any is a fault."""
        below = _files_below(path, real_folders)
        self.unlisted += below.faults
        if not below.files and not below.faults:
            message = "no such file or folder"
            expected = "expected pages or indexes"
            if os.path.exists(path):  # noqa: PTH110
                message = "the folder has no file"
            elif "://" in path:
                expected = "expected a download of this URL: spack-cache-db fetch"
            self._refuse(path, f"{message}, {expected}")
        return below.files

    def _refuse(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, 0, message))

    def add_module_lists(self, modules: Iterable[tuple[str | None, str]]) -> None:
        """Add lists of modules; each replaces a file that was found otherwise."""
        for release, path in modules:
            files = _files_below(path, set()).files
            # In a folder, other files are skipped.
            if os.path.isdir(path):  # noqa: PTH112
                suffixes = ("module-index.yaml", ".json")
                files = [file for file in files if file.path.endswith(suffixes)]
            if not files:
                message = "no such file, or folder with a list of modules"
                expected = "expected module-index.yaml, or JSON of Lmod's spider"
                self._refuse(path, f"{message}, {expected}")
            for file in files:
                path_in_input = f"{release or ''}/{file.path}".lstrip("/")
                module_list = File(file.location, path_in_input, "modules", release)
                self.file_of_location[file.location] = module_list


def _units_of(files: list[File]) -> list[Unit]:
    """Return files divided into units: many small ones together, each large one alone.

    Databases come last.
    Small files are sorted by the name of their folder, then by path. Pages of one
    package are in folders of its name, and have much the same content in every release;
    within a unit, equal texts are stored once.
    """
    small: list[File] = []
    large: list[Unit] = []
    databases: list[Unit] = []
    for file in sorted(files):
        if file.kind == "database":
            databases.append((file,))
        elif _is_large(file):
            large.append((file,))
        else:
            small.append(file)
    small.sort(key=_name_of_folder)
    units: list[Unit] = []
    for start in range(0, len(small), ENTRIES_PER_UNIT):
        units.append(tuple(small[start : start + ENTRIES_PER_UNIT]))
    return units + large + databases


def is_of_database(unit: Unit) -> bool:
    """Return whether a unit is a database."""
    first = unit[0]
    return isinstance(first, File) and first.kind == "database"


def _name_of_folder(file: File) -> str:
    """Return `zlib` for the path `develop/zlib/specs.md`; "" without a folder."""
    folder, _, _ = file.path.rpartition("/")
    return folder.rpartition("/")[2]


def _is_large(file: File) -> bool:
    """Return whether a file is a unit of its own: an index, a mirror, an archive."""
    if file.kind == "mirror":
        return True
    return is_archive(file) or file.path.endswith("index.json")


class _Below(NamedTuple):
    """The files and mirrors below a path, and the faults of folders below it."""

    files: list[File]
    faults: list[Fault]


def _files_below(path: str, real_folders: set[str]) -> _Below:
    """Return the files and mirrors of a path.

    Args:
        path: a file or a folder.
        real_folders: the real paths of folders that are read anyway; a link to one of
            them is skipped. The targets of the links that are followed are added.
    """
    if not os.path.exists(path):  # noqa: PTH110
        return _Below([], [])

    if not os.path.isdir(path):  # noqa: PTH112
        return _Below([named_file(path)], [])

    # A folder. Those that are found in it are added to the list that is being read.
    below = _Below([], [])
    folders = [top_folder(path)]
    for folder in folders:
        members = list_folder(folder, real_folders)
        below.files.extend(members.files)
        below.faults.extend(members.faults)
        folders.extend(members.folders)
    return below
