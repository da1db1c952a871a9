"""Reads the files of the input into columns, each by the reader of its kind.

A worker passes its unit to `read`, which opens the files and the archives, and what
that yields to `read_files`, which recognizes each by its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spack_cache_db.bounded_files import LargeFileFault, read_wanted, unreadable
from spack_cache_db.database_file import is_own
from spack_cache_db.errors import Fault, InputError, LineFault, faults_of
from spack_cache_db.foreign_files import foreign_fault
from spack_cache_db.sources.archives import MAX_PATH, read_archive
from spack_cache_db.sources.bounds import MAX_INDEX
from spack_cache_db.sources.databases import read_database
from spack_cache_db.sources.files import (
    ANYWHERE,
    File,
    Place,
    RawFile,
    Share,
    Unit,
    is_archive,
)
from spack_cache_db.sources.indexes.mirrors import (
    is_spacks,
    open_file,
    open_mirror,
)
from spack_cache_db.sources.indexes.rows import add_indexes
from spack_cache_db.sources.modules import read_modules
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.sources.pages.front_matter import begins_page, is_faulty_page
from spack_cache_db.sources.pages.page import parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Columns, Writer

AnyFile = RawFile | File
"""The bytes of a file, or a mirror or database that its reader opens itself."""


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
        _refuse_unknown(file)


def _refuse_unknown(file: RawFile) -> None:
    """Raise `LineFault` or `InputError` for a file that no reader recognizes."""
    if is_faulty_page(file.path, file.data):
        # The reader of pages raises its own fault.
        parse_page(file)
    raise LineFault(
        0,
        "unknown kind of file, expected a page, an index, package data, an archive "
        "or a database",
    )


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
