"""Finds the files of the input, recognizes each by its content, and reads it into
columns.

`plan` lists the files below the paths that the user named and divides them into units,
one for each task of a worker process. A worker passes its unit to `read`, which opens
the files, and what that yields to `read_files`, which calls the reader of each kind.

Hidden names (with a leading dot) are skipped. A link to a folder is followed, unless
that folder is read anyway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import LargeFileFault, read_wanted, unreadable
from spack_cache_db.database_file import is_database, is_own
from spack_cache_db.errors import Fault, InputError, LineFault, faults_of, reason
from spack_cache_db.foreign_files import foreign_fault
from spack_cache_db.sources.archives import MAX_PATH, read_archive
from spack_cache_db.sources.bounds import MAX_INDEX
from spack_cache_db.sources.databases import read_database
from spack_cache_db.sources.files import (
    ADDRESS_FILE,
    ANYWHERE,
    File,
    Place,
    RawFile,
    Share,
    Unit,
    is_archive,
)
from spack_cache_db.sources.indexes.mirrors import (
    files_to_read,
    is_spacks,
    open_file,
    open_mirror,
)
from spack_cache_db.sources.indexes.rows import add_indexes
from spack_cache_db.sources.modules import read_modules
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.sources.pages.front_matter import begins_page
from spack_cache_db.sources.pages.page import parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Columns, Writer

# Functions of os.path return False for a name that is too long; methods of Path raise.

AnyFile = RawFile | File
"""The bytes of a file, or a mirror or database that its reader opens itself."""

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
            if os.path.exists(path):  # noqa: PTH110
                message = "the folder has no file"
            self._refuse(path, f"{message}, expected pages or indexes")
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

    # A file. Only one that was named may be a database: those in folders are skipped,
    # because an earlier build may have written them there.
    if not os.path.isdir(path):  # noqa: PTH112
        file = File(path, Path(path).name)
        if is_database(Path(path)):
            file = file._replace(kind="database")
        return _Below([file], [])

    # A folder. Those that are found in it are added to the list that is being read.
    below = _Below([], [])
    folders = [top_folder(path)]
    for folder in folders:
        members = list_folder(folder, real_folders)
        below.files.extend(members.files)
        below.faults.extend(members.faults)
        folders.extend(members.folders)
    return below


def top_folder(path: str) -> File:
    """Return a folder that was named."""
    return File(path.rstrip(os.sep) or os.sep, "")


class Members(NamedTuple):
    """The members of a folder that are read: files and mirrors, folders, and faults."""

    files: list[File]
    folders: list[File]
    faults: list[Fault]


def list_folder(folder: File, real_folders: set[str]) -> Members:
    """Return the members of a folder; a mirror has itself as its only member.

    Args:
        folder: the folder.
        real_folders: as in `_files_below`.
    """
    members = Members([], [], [])
    try:
        with os.scandir(folder.location) as found:
            entries = sorted(found, key=_name)
    except OSError as error:
        message = f"cannot be listed: {reason(error)}"
        members.faults.append(Fault(folder.location, 0, message))
        return members

    # A mirror is read as a whole.
    if _is_mirror(folder.location, {entry.name for entry in entries}):
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


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


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


def _is_mirror(folder: str, names: set[str]) -> bool:
    """Return whether names in a folder are those of a mirror or an installation."""
    if ADDRESS_FILE in names:
        return True
    # Nearly all folders are of pages, and have none of these names.
    for name in names & _FOLDERS_OF_MIRRORS.keys():
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


def input_files(file: File) -> list[Path]:
    """Return the files that determine the content of a file or mirror of the input."""
    path = Path(file.location)
    return files_to_read(path) if file.kind == "mirror" else [path]


def read(unit: Unit, max_page_size: int) -> Iterator[AnyFile | Fault]:
    """Yield the files and mirrors of a unit, and a fault for each file that cannot be
    read.

    Archives are opened: their members are yielded instead of them.

    Args:
        unit: the unit.
        max_page_size: the maximum size of a page in bytes.
    """
    for entry in unit:
        if isinstance(entry, Fault):
            yield entry
            continue
        try:
            with faults_of(entry.location):
                for file in _opened(entry, max_page_size):
                    if isinstance(file, Fault):
                        yield file
                    else:
                        yield _name_fault(file.location, file.path) or file
        except InputError as error:
            yield from error.faults


def _opened(file: File, max_page_size: int) -> Iterable[AnyFile | Fault]:
    """Return the bytes of a file or of the members of an archive, or their faults.

    A mirror or a database is returned as it is.
    """
    if file.kind not in ("file", "modules"):
        return [file]
    if is_archive(file):
        return _members(file, max_page_size)
    content = _file_content(file, max_page_size)
    return [] if content is None else [content]


def _members(archive: File, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield the members of an archive, or their faults."""
    for member in read_archive(archive.location, max_page_size):
        if isinstance(member, RawFile):
            member = member._replace(release=archive.release, kind=archive.kind)
        yield member


def _file_content(file: File, max_page_size: int) -> RawFile | Fault | None:
    """Return the bytes of a file, or its fault.

    None for a file that this program wrote itself: a database, or the file of counts
    beside it.
    """

    def limit(start: bytes) -> int | None:
        """Return the largest size of a file that starts so; None for one to skip."""
        if is_own(start):
            return None
        # An index is far larger than a page.
        if start.startswith(b"{"):
            return MAX_INDEX
        return max_page_size

    try:
        data = read_wanted(file.location, limit)
    except LargeFileFault as error:
        return Fault(file.location, 0, f"{unreadable(error)} (--max-page-size)")
    except OSError as error:
        return Fault(file.location, 0, unreadable(error))
    if data is None:
        return None
    return RawFile(file.location, file.path, data, file.release, file.kind)


def _name_fault(location: str, path: str) -> Fault | None:
    """Return a fault if the path of a file is too long or not UTF-8."""
    if len(path) > MAX_PATH:
        message = (
            f"the name has {len(path):,} characters, expected at most {MAX_PATH:,}"
        )
        return Fault(location, 0, message)
    try:
        path.encode()
    except UnicodeEncodeError:
        printed = location.encode(errors="backslashreplace").decode()
        return Fault(printed, 0, "the name is not UTF-8, expected a UTF-8 name")
    return None


def read_files(
    files: Iterable[AnyFile | Fault],
    place: Place = ANYWHERE,
    share: Share | None = None,
) -> Columns:
    """Return the columns of a unit; a file that cannot be read adds its faults.

    Args:
        files: what `read` yields.
        place: the release and stack that the user gave for indexes.
        share: called repeatedly with the part of an index that has been read.
    """
    writer = Writer()
    columns = writer.columns
    pages = PageReader(writer)
    for file in files:
        if isinstance(file, Fault):
            columns.faults.append(file)
            continue
        try:
            with faults_of(file.location):
                # A database has columns of its own, and is a unit of its own.
                if isinstance(file, File) and file.kind == "database":
                    columns = read_database(file)
                else:
                    _read_into(writer, pages, file, place, share)
        except InputError as error:
            columns.faults.extend(_named_faults(file, error))
    pages.finish()
    return columns


def _read_into(
    writer: Writer,
    pages: PageReader,
    file: AnyFile,
    place: Place,
    share: Share | None,
) -> None:
    """Read a file or a mirror with the reader of its kind."""
    if isinstance(file, File):
        add_indexes(writer, open_mirror(file, _own_place(place, file)), share)
        return
    columns = writer.columns
    columns.bytes_read += len(file.data)
    if file.kind == "modules":
        columns.modules += read_modules(file)
    elif begins_page(file.data):
        pages.add(parse_page(file))
    elif is_package_data(file.data):
        columns.packages += read_facts(file)
    elif is_spacks(file.data):
        index = open_file(file, _own_place(place, file))
        add_indexes(writer, [index], share)
    else:
        # The reader of pages reports files of an unknown format.
        parse_page(file)


def _own_place(place: Place, file: AnyFile) -> Place:
    """Return the place of an index; an installation may have a release of its own."""
    return place._replace(release=file.release or place.release)


def _named_faults(file: AnyFile, error: InputError) -> Iterable[Fault]:
    """Return the faults of a file that cannot be read.

    A file of a known other kind has one fault that names it, such as an HTML page.
    """
    if isinstance(file, RawFile) and file.kind == "file":
        text = file.data.decode("utf-8", "replace")
        fault = foreign_fault(text) or _environment_fault(text)
        if fault is not None:
            return [Fault(file.location, fault.line, fault.message)]
    return error.faults


def _environment_fault(text: str) -> LineFault | None:
    """Return a fault if a text lists the specs of an environment, but no binaries."""
    head = text[:4096].lstrip()
    if re.match(r"\[\s*\{[^\[\]]*\"arch\"", head):
        kind = "is output of 'spack find --json'"
    elif re.search(r"^spack\s*:", head, re.MULTILINE):
        kind = "is an environment"
    else:
        return None
    return LineFault(
        1, f"{kind}, and does not list binaries: use 'spack-cache-db cover'"
    )
