"""Files' bytes → columns: which kind of source a file is, by its content, and who reads that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.reader import PageReader


class Reader(Protocol):
    """Reads the files of one kind in one unit of the input into the unit's columns."""

    def add(self, file: RawFile) -> None:
        """Read one file; raise `InputError` with all its faults if it cannot be kept."""


class Kind(NamedTuple):
    """A kind of source: whether a file's bytes are of it, and what makes a reader."""

    knows: Callable[[bytes], bool]
    reader: Callable[[Writer], Reader]


def _anything(data: bytes) -> bool:
    return True


KINDS: tuple[Kind, ...] = (Kind(_anything, PageReader),)
"""The first kind that knows a file reads it. Pages come last: their reader says what is wrong with
a file that is none."""


def read_files(files: Iterable[RawFile | Fault]) -> Columns:
    """Return what the files of a unit say; one that cannot be kept becomes faults."""
    writer = Writer()
    columns = writer.columns
    readers = [(kind.knows, kind.reader(writer)) for kind in KINDS]
    for file in files:
        if isinstance(file, Fault):
            columns.faults.append(file)
            continue
        columns.bytes_read += len(file.data)
        try:
            next(reader for knows, reader in readers if knows(file.data)).add(file)
        except InputError as error:
            columns.faults.extend(error.faults)
    return columns
