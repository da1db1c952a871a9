"""Files' bytes → columns: which kind of source a file is, by its content, and who reads that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from mmap import mmap
from typing import NamedTuple, Protocol

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.indexes.files import MirrorReader, is_spacks
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.units import Mirror


class Reader(Protocol):
    """Reads the files of one kind in one unit of the input into the unit's columns."""

    def add(self, file: RawFile) -> None:
        """Read one file; raise `InputError` with all its faults if it cannot be kept."""


class Kind(NamedTuple):
    """A kind of source: whether a file's bytes are of it, and who reads those."""

    knows: Callable[[bytes | mmap], bool]
    reader: Reader


def _anything(data: bytes | mmap) -> bool:
    return True


def read_files(files: Iterable[RawFile | Mirror | Fault], place: Place) -> Columns:
    """Read the files and mirrors of a unit; one that cannot be kept becomes faults.

    Args:
        place: the release and stack of indexes, where the input does not say it.
    """
    writer = Writer()
    columns = writer.columns
    mirrors = MirrorReader(writer, place)
    # The first kind that knows a file reads it. Pages come last: their reader says what is wrong
    # with a file that is none.
    kinds = (Kind(is_spacks, mirrors), Kind(_anything, PageReader(writer)))
    for file in files:
        try:
            if isinstance(file, Fault):
                columns.faults.append(file)
            elif isinstance(file, Mirror):
                mirrors.add_mirror(file)
            else:
                columns.bytes_read += len(file.data)
                next(kind.reader for kind in kinds if kind.knows(file.data)).add(file)
        except InputError as error:
            columns.faults.extend(error.faults)
    return columns
