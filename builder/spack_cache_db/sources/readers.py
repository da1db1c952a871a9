"""Files' bytes → columns: which kind of source a file is, by its content, and who reads that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.safety_net import FaultsOf
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.indexes.index_reader import Share
from spack_cache_db.sources.indexes.mirrors import MirrorReader, is_spacks
from spack_cache_db.sources.packages.package_format import is_package_data
from spack_cache_db.sources.packages.package_reader import PackageReader
from spack_cache_db.sources.pages.page_reader import PageReader
from spack_cache_db.sources.units import ANYWHERE, MirrorFolder, Place, RawFile

__all__ = ["KINDS", "Kind", "Reader", "Share", "read_files"]


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


def _page_reader(writer: Writer, place: Place) -> PageReader:
    # A page names its release and stacks itself.
    return PageReader(writer)


KINDS: tuple[Kind, ...] = (
    Kind(is_package_data, PackageReader),
    Kind(is_spacks, MirrorReader),
    Kind(_anything, _page_reader),
)
"""The first kind that knows a file reads it. Pages come last: their reader says what is wrong with
a file that is none."""


def read_files(
    files: Iterable[RawFile | MirrorFolder | Fault],
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
    for file in files:
        if isinstance(file, Fault):
            columns.faults.append(file)
            continue
        try:
            with FaultsOf(file.location):
                if isinstance(file, MirrorFolder):
                    mirrors.add_mirror(file)
                else:
                    columns.bytes_read += len(file.data)
                    next(reader for knows, reader in readers if knows(file.data)).add(file)
        except InputError as error:
            columns.faults.extend(error.faults)
    return columns
