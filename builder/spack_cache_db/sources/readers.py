"""Recognizes each file of a unit by its content, and reads it into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol

from spack_cache_db.bounded_files import LargeFileFault, read_wanted, unreadable
from spack_cache_db.errors import Fault, FaultsOf, InputError
from spack_cache_db.foreign_files import environment_fault, foreign_fault
from spack_cache_db.sources import (
    ANYWHERE,
    DatabaseFile,
    File,
    MirrorFolder,
    Place,
    RawFile,
    Share,
    Unit,
    files_of,
    is_archive,
    is_circle,
    is_own,
)
from spack_cache_db.sources.archives import MAX_PATH, read_archive
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.databases import read_database
from spack_cache_db.sources.indexes.mirrors import MirrorReader, is_spacks
from spack_cache_db.sources.packages import PackageReader, is_package_data
from spack_cache_db.sources.pages.page_reader import PageReader
from spack_cache_db.sources.strictness import MAX_INDEX


class Reader(Protocol):
    """Reads the files of one kind in one unit of the input into the unit's columns."""

    def add(self, file: RawFile) -> None:
        """Read one file; raise `InputError` with all its faults if it cannot be kept."""


class Kind(NamedTuple):
    """A kind of source: whether a file's bytes are of it, and what makes a reader."""

    knows: Callable[[bytes], bool]
    reader: Callable[[Writer, Place], Reader]


def _anything(data: bytes) -> bool:
    return True


KINDS: tuple[Kind, ...] = (
    Kind(is_package_data, PackageReader),
    Kind(is_spacks, MirrorReader),
    Kind(_anything, PageReader),
)
"""The first kind that knows a file reads it. Pages come last: their reader says what is wrong with
a file that is none."""


_BATCH_FILES = 64
_BATCH_BYTES = 2**20
"""So many files, or as many as have so many bytes, are read before the first of them is parsed."""


def read_files(
    files: Iterable[RawFile | MirrorFolder | DatabaseFile | Fault],
    place: Place = ANYWHERE,
    share: Share | None = None,
) -> Columns:
    """Return what the files and mirrors of a unit say; one that cannot be kept becomes faults.

    Args:
        place: the release and stack of indexes, where the input does not say it.
        share: told, now and then, how much of an index has been read.
    """
    writer = Writer()
    columns = writer.columns
    readers = [(kind.knows, kind.reader(writer, place)) for kind in KINDS]
    mirrors = next(reader for _, reader in readers if isinstance(reader, MirrorReader))
    mirrors.share = share
    for file in chain.from_iterable(_batches(files)):
        if isinstance(file, Fault):
            columns.faults.append(file)
            continue
        try:
            with FaultsOf(file.location):
                if isinstance(file, MirrorFolder):
                    mirrors.add_mirror(file)
                elif isinstance(file, DatabaseFile):
                    columns = read_database(file)  # It is a unit of its own.
                else:
                    columns.bytes_read += len(file.data)
                    next(reader for knows, reader in readers if knows(file.data)).add(file)
        except InputError as error:
            columns.faults.extend(_named_faults(file, error))
    return columns


def _named_faults(
    file: RawFile | MirrorFolder | DatabaseFile, error: InputError
) -> Iterable[Fault]:
    """Return the faults of a file; what it is, if it was given by mistake."""
    if isinstance(file, RawFile):
        text = file.data.decode("utf-8", "replace")
        if fault := foreign_fault(text) or environment_fault(text):
            return [Fault(file.location, fault.line, fault.message)]
    return error.faults


def _batches(
    files: Iterable[RawFile | MirrorFolder | DatabaseFile | Fault],
) -> Iterator[list[RawFile | MirrorFolder | DatabaseFile | Fault]]:
    """Yield files some at a time: opening and parsing them in turns takes a quarter longer.

    Each call of the system leaves the processor's caches and predictions to the kernel.
    """
    batch: list[RawFile | MirrorFolder | DatabaseFile | Fault] = []
    size = 0
    for file in files:
        batch.append(file)
        size += len(file.data) if isinstance(file, RawFile) else 0
        if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def read(unit: Unit, max_page_size: int) -> Iterator[RawFile | MirrorFolder | DatabaseFile | Fault]:
    """Yield the files and mirrors of a unit, and a fault for whatever cannot be read."""
    for file in files_of(unit):
        try:
            with FaultsOf(file.path if isinstance(file, Fault) else file.location):
                if isinstance(file, Fault):
                    yield file
                elif isinstance(file, MirrorFolder | DatabaseFile):
                    yield _name_fault(file.location, file.path) or file
                elif is_archive(file):
                    yield from _named(read_archive(file.location, max_page_size))
                else:
                    yield from _named(_read_file(file, max_page_size))
        except InputError as error:
            yield from error.faults


def _named(files: Iterable[RawFile | Fault]) -> Iterator[RawFile | Fault]:
    """Yield files, and a fault for one whose name cannot be stored."""
    for file in files:
        fault = None if isinstance(file, Fault) else _name_fault(file.location, file.path)
        yield fault or file


def _name_fault(location: str, path: str) -> Fault | None:
    if len(path) > MAX_PATH:
        words = f"the name has {len(path):,} characters, expected at most {MAX_PATH:,}"
        return Fault(location, 0, words)
    try:
        path.encode()
    except UnicodeEncodeError:
        named = location.encode(errors="backslashreplace").decode()
        return Fault(named, 0, "the name is not UTF-8, expected a name that can be written down")
    return None


def _read_file(file: File, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield a file, or why it cannot be read; nothing for what this package wrote itself."""

    def limit(data: bytes) -> int | None:
        # An index is far larger than a page.
        return None if is_own(data) else MAX_INDEX if data.startswith(b"{") else max_page_size

    try:
        data = read_wanted(file.location, limit)
    except LargeFileFault as error:
        yield Fault(file.location, 0, f"{unreadable(error)} (--max-page-size)")
    except OSError as error:
        words = unreadable(error)
        if is_circle(file.location):
            words = "is a link to a folder in which it lies, expected no circle"
        yield Fault(file.location, 0, words)
    else:
        if data is not None:
            yield RawFile(file.location, file.path, data)
