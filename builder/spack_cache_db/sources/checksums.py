"""Checksums of the sources of a build: equal ones mean that no file has changed.

The content of a file is hashed, and not read otherwise. The checksum of many files is a
sum, so it does not depend on how several processes divide them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from spack_cache_db.bounded_files import open_regular, sha256_of_wanted
from spack_cache_db.database_file import is_own
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.files import File, Unit
from spack_cache_db.sources.folders import list_folder, named_file, top_folder
from spack_cache_db.sources.units import plan

if TYPE_CHECKING:
    from spack_cache_db.sources.writer import Columns

MOST_PARTS = 32
"""Maximum number of parts of an input: enough to keep several processes busy."""


class Part(NamedTuple):
    """A part of the sources: files, and folders with everything below them.

    `real_folders` are the real paths of all folders that were named: a link to one of
    them is skipped.
    """

    files: tuple[File, ...]
    folders: tuple[File, ...]
    real_folders: frozenset[str]


class UnreadableError(Exception):
    """A file or a folder cannot be read; reading the sources reports it."""


def parts_of(
    paths: Iterable[str],
    installations: Iterable[tuple[str, str]] = (),
    modules: Iterable[tuple[str | None, str]] = (),
) -> list[Part]:
    """Return sources divided into parts; the arguments are those of `plan`.

    Raises:
        UnreadableError: a path does not exist, or a folder cannot be listed.
    """
    files = _named_otherwise(installations, modules)
    folders = []
    for path in sorted(paths):
        if os.path.isdir(path):  # noqa: PTH112 - methods of Path may raise
            folders.append(top_folder(path))
        elif os.path.exists(path):  # noqa: PTH110
            files.append(named_file(path))
        else:
            raise UnreadableError(path)
    real_folders = {os.path.realpath(folder.location) for folder in folders}

    # List one level of folders after the other until there are enough of them.
    while folders and len(folders) < MOST_PARTS:
        next_level = []
        for folder in folders:
            members = list_folder(folder, real_folders)
            if members.faults:
                raise UnreadableError(folder.location)
            files += members.files
            next_level += members.folders
        folders = next_level

    known = frozenset(real_folders)
    parts = [Part(tuple(files), (), known)]
    size = math.ceil(len(folders) / MOST_PARTS)
    for start in range(0, len(folders), max(size, 1)):
        parts.append(Part((), tuple(folders[start : start + size]), known))
    return parts


def _named_otherwise(
    installations: Iterable[tuple[str, str]], modules: Iterable[tuple[str | None, str]]
) -> list[File]:
    """Return the files of installations and lists of modules, which are few."""
    files = []
    try:
        units = plan([], installations, modules)
    except InputError:
        raise UnreadableError from None
    for unit in units:
        for file in unit:
            if isinstance(file, Fault):
                raise UnreadableError(file.path)
            files.append(file)
    return files


def checksum_of(part: Part) -> int | None:
    """Return the checksum of a part; None if a file or a folder cannot be read."""
    try:
        return sum(_checksum(file, {}) for file in _files_of(part))
    except UnreadableError:
        return None


def _files_of(part: Part) -> Iterator[File]:
    """Yield the files and mirrors of a part, those of its folders included."""
    yield from part.files
    # Two parts may follow links to the same folder, and both count it.
    real_folders = set(part.real_folders)
    # Folders that are found are added to the list that is being read.
    folders = list(part.folders)
    for folder in folders:
        members = list_folder(folder, real_folders)
        if members.faults:
            raise UnreadableError(folder.location)
        yield from members.files
        folders.extend(members.folders)


def checksum_of_unit(unit: Unit, columns: Columns) -> int | None:
    """Return the checksum of a unit that has been read; None if a file of it cannot be
    read.

    Args:
        unit: the files.
        columns: what they contain; the checksums of pages and indexes are among it.
    """
    # A file that was refused may be endless.
    if columns.faults:
        return None
    known = _sha256_of_documents(columns)
    checksum = 0
    try:
        for file in unit:
            if isinstance(file, Fault):
                return None
            checksum += _checksum(file, known)
    except UnreadableError:
        return None
    return checksum


def _sha256_of_documents(columns: Columns) -> dict[str, str]:
    """Return the checksums of the files that are documents, by location.

    The checksum of an index is that of its file, unless this is compressed or a
    manifest.
    """
    known = {}
    for document in columns.documents:
        location = document.location
        if document.page or _is_plain_index(location):
            known[location] = document.sha256
    return known


def _is_plain_index(location: str) -> bool:
    """Return whether a document is a file `index.json` that is not compressed."""
    if os.path.basename(location) != "index.json":  # noqa: PTH119
        return False
    try:
        with open_regular(location) as file:
            return file.read(1) == b"{"
    except (OSError, ValueError):
        return False


def _checksum(file: File, known: Mapping[str, str]) -> int:
    """Return the checksum of a file, or of the files that determine what a mirror
    contains; 0 for a file that reading skips.

    `known` has the checksums of files that have been read already, by location.
    """
    try:
        if file.kind == "mirror":
            return _checksum_of_mirror(file, known)
        sha256 = known.get(file.location)
        if sha256 is None:
            # A file of this program is skipped unless it was named as a database.
            is_wanted = _is_foreign if file.kind == "file" else _is_any
            sha256 = sha256_of_wanted(file.location, is_wanted)
        return 0 if sha256 is None else _entry(file, "", sha256)
    except (OSError, ValueError, InputError):
        raise UnreadableError(file.location) from None


def _is_foreign(head: bytes) -> bool:
    """Return whether this program did not make a file that starts so."""
    return not is_own(head)


def _is_any(head: bytes) -> bool:
    """Return True for every file."""
    return True


def _checksum_of_mirror(mirror: File, known: Mapping[str, str]) -> int:
    """Return the checksum of the files that determine what a mirror contains."""
    # Imported late: pages need nothing of it, and loading it takes a tenth of a second.
    from spack_cache_db.sources.indexes.mirrors import files_to_read

    checksum = 0
    for path in files_to_read(Path(mirror.location)):
        name = os.path.relpath(path, mirror.location)
        sha256 = known.get(str(path)) or sha256_of_wanted(path, _is_any)
        assert sha256 is not None
        checksum += _entry(mirror, name, sha256)
    return checksum


def _entry(file: File, name: str, sha256: str) -> int:
    """Return the checksum of a file with its kind and its path.

    Args:
        file: the file or the mirror.
        name: the path of the file within a mirror; "" for the file itself.
        sha256: the checksum of its content.
    """
    # Names have no NUL, and those of a file system may be no UTF-8.
    facts = "\0".join((file.kind, file.path, name, sha256))
    data = facts.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(data).digest())
