"""Checksums of the sources of a build: equal ones mean that no file has changed.

The content of a file is hashed, and not read otherwise. The checksum of many files is a
sum, so it does not depend on how several processes divide them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spack_cache_db.bounded_files import HEAD, open_regular, require_no_hole
from spack_cache_db.database_file import is_database, is_own
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.files import File, Unit
from spack_cache_db.sources.indexes.mirrors import files_to_read
from spack_cache_db.sources.readers import list_folder, plan, top_folder
from spack_cache_db.sources.writer import Columns

MOST_PARTS = 32
"""Maximum number of parts of an input: enough to keep several processes busy."""

_CHUNK = 2**16
"""Bytes that are hashed at a time; nearly all pages are smaller."""


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
            file = File(path, Path(path).name)
            if is_database(Path(path)):
                file = file._replace(kind="database")
            files.append(file)
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
        return sum(_checksum(file) for file in _files_of(part))
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
        columns: what they contain; the checksums of pages are among it.
    """
    # A file that was refused may be endless.
    if columns.faults:
        return None
    sha256_of_page = {}
    for document in columns.documents:
        if document.page:
            sha256_of_page[document.location] = document.sha256
    checksum = 0
    try:
        for file in unit:
            if isinstance(file, Fault):
                return None
            known = sha256_of_page.get(file.location)
            checksum += _checksum(file) if known is None else _entry(file, "", known)
    except UnreadableError:
        return None
    return checksum


def _checksum(file: File) -> int:
    """Return the checksum of a file, or of the files that determine what a mirror
    contains; 0 for a file that reading skips.
    """
    try:
        if file.kind != "mirror":
            sha256 = _sha256(file.location, skips_own=file.kind == "file")
            return 0 if sha256 is None else _entry(file, "", sha256)
        checksum = 0
        for path in files_to_read(Path(file.location)):
            name = os.path.relpath(path, file.location)
            checksum += _entry(file, name, _sha256(path))
        return checksum
    except (OSError, ValueError, InputError):
        raise UnreadableError(file.location) from None


def _entry(file: File, name: str, sha256: str | None) -> int:
    """Return the checksum of a file with its kind and its path.

    Args:
        file: the file or the mirror.
        name: the path of the file within a mirror; "" for the file itself.
        sha256: the checksum of its content.
    """
    facts = repr((file.kind, file.path, name, sha256))
    return int.from_bytes(hashlib.sha256(facts.encode()).digest())


def _sha256(path: str | Path, *, skips_own: bool = False) -> str | None:
    """Return the checksum of a file's content; None for a file of this program, if such
    files are skipped.
    """
    with open_regular(path) as stream:
        data = stream.read(_CHUNK)
        if skips_own and is_own(data[:HEAD]):
            return None
        digest = hashlib.sha256(data)
        # Nearly all files end here.
        if len(data) == _CHUNK:
            size = os.fstat(stream.fileno()).st_size
            require_no_hole(stream.fileno(), path, size)
        while len(data) == _CHUNK:
            data = stream.read(_CHUNK)
            digest.update(data)
    return digest.hexdigest()
