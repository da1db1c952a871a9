"""Finds the files of the input, recognizes each by its content, and reads it into
columns.

Hidden names (with a leading dot) are skipped. A link to a folder is followed, unless
that folder is read anyway.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import LargeFileFault, read_wanted, unreadable
from spack_cache_db.database_file import is_database, is_own
from spack_cache_db.errors import (
    Fault,
    InputError,
    LineFault,
    faults_of,
    foreign_fault,
    reason,
)
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
from spack_cache_db.sources.pages.front_matter import parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Columns, Writer

AnyFile = RawFile | File

ENTRIES_PER_UNIT = 800
"""Files of a unit: enough to make the cost of passing it to a process negligible."""


def plan(
    paths: Iterable[str],
    installations: Iterable[tuple[str, str]] = (),
    modules: Iterable[tuple[str | None, str]] = (),
) -> list[Unit]:
    """Return the input divided into units; the order of `paths` does not matter.

    Files are sorted by the name of their folder, then by path: pages of one package
    have much the
    same content in every release, and one unit stores equal texts once.

    Args:
        paths: files and folders.
        installations: release and path of each installation.
        modules: release, if given, and path of each list of modules.

    Raises:
        InputError: a path does not exist, or is a folder without a file.
    """
    file_of_location: dict[str, File] = {}
    faults: list[Fault] = []
    unlisted: list[Fault] = []

    # Files, folders and installations. A file with two paths is read once, under the
    # first of them.
    inputs: list[tuple[str, str | None]] = [(path, None) for path in sorted(paths)]
    inputs += sorted((path, release) for release, path in installations)
    real_folders = set()
    for path, _ in inputs:
        if os.path.isdir(path):  # noqa: PTH112
            real_folders.add(os.path.realpath(path))
    for path, release in inputs:
        below = _files_below(path, real_folders)
        unlisted += below.faults
        if not below.files and not below.faults:
            is_empty = os.path.exists(path)  # noqa: PTH110
            message = "the folder has no file" if is_empty else "no such file or folder"
            faults.append(Fault(path, 0, f"{message}, expected pages or indexes"))
        for file in below.files:
            earlier = file_of_location.get(file.location, file)
            if release is None:
                file_of_location[file.location] = min(earlier, file)
                continue
            if earlier.release not in (None, release):
                message = (
                    f"is given as the installation {earlier.release} and as {release}"
                )
                faults.append(Fault(path, 0, f"{message}, expected one name"))
            path_in_input = f"{release}/{file.path}".rstrip("/")
            renamed = file._replace(path=path_in_input, release=release)
            file_of_location[file.location] = renamed

    # Lists of modules. In a folder, other files are skipped.
    for release, path in modules:
        is_folder = os.path.isdir(path)  # noqa: PTH112
        lists = [
            file
            for file in _files_below(path, set()).files
            if not is_folder or file.path.endswith(("module-index.yaml", ".json"))
        ]
        for file in lists:
            name = f"{release or ''}/{file.path}".lstrip("/")
            module_list = File(file.location, name, "modules", release)
            file_of_location[file.location] = module_list
        if not lists:
            message = "no such file, or folder with a list of modules"
            expected = "expected module-index.yaml, or JSON of Lmod's spider"
            faults.append(Fault(path, 0, f"{message}, {expected}"))
    if faults:
        raise InputError(faults)
    units = _units_of(list(file_of_location.values()))
    if unlisted:
        units.append(tuple(unlisted))
    return units


def _units_of(files: list[File]) -> list[Unit]:
    """Return files divided into units, the small ones first."""
    small = sorted(file for file in files if not _is_large(file))
    small.sort(key=lambda file: posixpath.basename(posixpath.dirname(file.path)))
    units: list[Unit] = []
    for start in range(0, len(small), ENTRIES_PER_UNIT):
        units.append(tuple(small[start : start + ENTRIES_PER_UNIT]))
    for file in sorted(files):
        if _is_large(file):
            units.append((file,))
    return units


def _is_large(file: File) -> bool:
    """Return whether a file is a unit of its own."""
    is_plain = file.kind in ("file", "modules")
    return not is_plain or is_archive(file) or file.path.endswith("index.json")


class _Below(NamedTuple):
    """The files and mirrors below a path, and the folders that cannot be listed."""

    files: list[File]
    faults: list[Fault]


def _files_below(path: str, real_folders: set[str]) -> _Below:
    """Return the files and mirrors of a path, and the faults of folders that cannot be
    listed.

    Targets of links are added to `real_folders`, the real paths of folders that are
    read anyway.
    """
    if not os.path.exists(path):  # noqa: PTH110 - methods of Path raise for a name that is too long
        return _Below([], [])
    if not os.path.isdir(path):  # noqa: PTH112
        # Databases in folders are skipped: an earlier build may have written them
        # there.
        file = File(path, Path(path).name)
        if is_database(Path(path)):
            file = file._replace(kind="database")
        return _Below([file], [])
    files: list[File] = []
    faults: list[Fault] = []
    # Folders that are found are added while the list is read.
    folders = [File(path.rstrip(os.sep) or os.sep, "")]
    for folder in folders:
        try:
            with os.scandir(folder.location) as entries:
                members = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            message = f"cannot be listed: {reason(error)}"
            faults.append(Fault(folder.location, 0, message))
            continue
        if _is_mirror(folder.location, {member.name for member in members}):
            files.append(File(folder.location, folder.path, "mirror"))
            continue
        for member in members:
            if member.name.startswith("."):
                continue
            path_in_input = f"{folder.path}/{member.name}".lstrip("/")
            entry = File(member.path, path_in_input)
            if not _leads_to_folder(member):
                files.append(entry)
                continue
            if not member.is_symlink():
                folders.append(entry)
                continue
            # A link to a folder that is read anyway is skipped.
            target = os.path.realpath(member.path)
            if _is_within(target, os.path.realpath(folder.location)):
                message = "is a link to a folder that contains it, expected no circle"
                faults.append(Fault(member.path, 0, message))
            elif not any(_is_within(known, target) for known in real_folders):
                real_folders.add(target)
                folders.append(entry)
    return _Below(files, faults)


_FOLDERS_OF_MIRRORS = {"build_cache": "", ".spack-db": "", "v3": "manifests"}
"""Folders of mirrors of layout 2, installations, and mirrors of layout 3, each with the
folder that it has to have.
"""


def _is_mirror(folder: str, names: set[str]) -> bool:
    """Return whether names in a folder are those of a mirror or an installation."""
    if ADDRESS_FILE in names:
        return True
    for name, below in _FOLDERS_OF_MIRRORS.items():
        path = os.path.join(folder, name, below)  # noqa: PTH118 - fast
        if name in names and os.path.isdir(path):  # noqa: PTH112
            return True
    return False


def _is_within(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link to itself, for example: opening it reports the error.


def input_files(file: File) -> list[Path]:
    """Return the files that determine the content of a file or mirror of the input."""
    path = Path(file.location)
    return files_to_read(path) if file.kind == "mirror" else [path]


def read(unit: Unit, max_page_size: int) -> Iterator[AnyFile | Fault]:
    """Yield the files and mirrors of a unit, and a fault for each file that cannot be
    read.
    """
    for entry in unit:
        entries: Iterable[AnyFile | Fault]
        try:
            with faults_of(entry.path if isinstance(entry, Fault) else entry.location):
                if isinstance(entry, Fault) or entry.kind not in ("file", "modules"):
                    entries = [entry]
                elif is_archive(entry):
                    entries = read_archive(entry.location, max_page_size)
                else:
                    entries = _read_file(entry, max_page_size)
                for file in entries:
                    if isinstance(file, Fault):
                        yield file
                        continue
                    if isinstance(file, RawFile) and isinstance(entry, File):
                        file = file._replace(release=entry.release, kind=entry.kind)
                    yield _name_fault(file.location, file.path) or file
        except InputError as error:
            yield from error.faults


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


def _read_file(file: File, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield a file, or its fault; nothing for a file that this program wrote itself."""

    def limit(data: bytes) -> int | None:
        """Return the largest size of a file that starts so; None for one to skip."""
        if is_own(data):
            return None
        # An index is far larger than a page.
        return MAX_INDEX if data.startswith(b"{") else max_page_size

    try:
        data = read_wanted(file.location, limit)
    except LargeFileFault as error:
        yield Fault(file.location, 0, f"{unreadable(error)} (--max-page-size)")
    except OSError as error:
        yield Fault(file.location, 0, unreadable(error))
    else:
        if data is not None:
            yield RawFile(file.location, file.path, data)


def read_files(
    files: Iterable[AnyFile | Fault],
    place: Place = ANYWHERE,
    share: Share | None = None,
) -> Columns:
    """Return the columns of a unit; a file that cannot be read adds its faults.

    `place` is the release and stack of indexes that were given by name. `share` is
    called repeatedly with the part of an index that has been read.
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
                own_place = place._replace(release=file.release or place.release)
                if isinstance(file, File) and file.kind == "mirror":
                    add_indexes(writer, open_mirror(file, own_place), share)
                elif isinstance(file, File):
                    columns = read_database(file)  # It is a unit of its own.
                else:
                    columns.bytes_read += len(file.data)
                    if file.kind == "modules":
                        columns.modules += read_modules(file)
                    elif is_package_data(file.data):
                        columns.packages += read_facts(file)
                    elif is_spacks(file.data):
                        add_indexes(writer, [open_file(file, own_place)], share)
                    else:  # The reader of pages reports files of an unknown format.
                        pages.add(parse_page(file))
        except InputError as error:
            columns.faults.extend(_named_faults(file, error))
    return columns


def _named_faults(file: AnyFile, error: InputError) -> Iterable[Fault]:
    """Return the faults of a file; a file of a known other kind has one fault that
    names it.
    """
    if isinstance(file, RawFile) and file.kind == "file":
        text = file.data.decode("utf-8", "replace")
        fault = foreign_fault(text) or _environment_fault(text)
        if fault is not None:
            return [Fault(file.location, fault.line, fault.message)]
    return error.faults


def _environment_fault(text: str) -> LineFault | None:
    """Return a fault if a text is an environment, which is not a source of binaries."""
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
