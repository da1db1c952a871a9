"""Recognizes each file of a unit by its content, and reads it into columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spack_cache_db.bounded_files import LargeFileFault, read_wanted, unreadable
from spack_cache_db.errors import Fault, InputError, faults_of
from spack_cache_db.foreign_files import environment_fault, foreign_fault
from spack_cache_db.sources import (
    ANYWHERE,
    File,
    Place,
    RawFile,
    Share,
    Unit,
    is_archive,
    is_circle,
    is_own,
)
from spack_cache_db.sources.archives import MAX_PATH, read_archive
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.databases import read_database
from spack_cache_db.sources.indexes.mirrors import MirrorReader, files_to_read, is_spacks
from spack_cache_db.sources.modules import read_modules
from spack_cache_db.sources.packages import is_package_data, read_facts
from spack_cache_db.sources.pages import PageReader, parse_page
from spack_cache_db.sources.strictness import MAX_INDEX

AnyFile = RawFile | File


def read_files(
    files: Iterable[AnyFile | Fault],
    place: Place = ANYWHERE,
    share: Share | None = None,
) -> Columns:
    """Return the columns of a unit; a file that cannot be read adds its faults.

    Args:
        files: the files and mirrors of the unit, and faults of others.
        place: release and stack of indexes that were given by name.
        share: called repeatedly with the part of an index that has been read.
    """
    writer = Writer()
    columns = writer.columns
    pages, mirrors = PageReader(writer), MirrorReader(writer, place, share)
    for file in files:
        if isinstance(file, Fault):
            columns.faults.append(file)
            continue
        try:
            with faults_of(file.location):
                if isinstance(file, File) and file.kind == "mirror":
                    mirrors.add_mirror(file)
                elif isinstance(file, File):
                    columns = read_database(file)  # It is a unit of its own.
                else:
                    columns.bytes_read += len(file.data)
                    if file.kind == "modules":
                        columns.modules += read_modules(file)
                    elif is_package_data(file.data):
                        columns.packages += read_facts(file)
                    elif is_spacks(file.data):
                        mirrors.add(file)
                    else:  # The reader of pages reports files of an unknown format.
                        pages.add(parse_page(file))
        except InputError as error:
            columns.faults.extend(_named_faults(file, error))
    return columns


def input_files(file: File) -> list[Path]:
    """Return the files that determine the content of a file or mirror of the input."""
    path = Path(file.location)
    return files_to_read(path) if file.kind == "mirror" else [path]


def _named_faults(file: AnyFile, error: InputError) -> Iterable[Fault]:
    """Return the faults of a file; a file of a known other kind has one fault that names it."""
    if isinstance(file, RawFile) and file.kind == "file":
        text = file.data.decode("utf-8", "replace")
        if fault := foreign_fault(text) or environment_fault(text):
            return [Fault(file.location, fault.line, fault.message)]
    return error.faults


def read(unit: Unit, max_page_size: int) -> Iterator[AnyFile | Fault]:
    """Yield the files and mirrors of a unit, and a fault for each file that cannot be read."""
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
                    fault = None if isinstance(file, Fault) else _name_fault(*file[:2])
                    if isinstance(file, RawFile) and isinstance(entry, File):
                        file = file._replace(release=entry.release, kind=entry.kind)
                    yield fault or file
        except InputError as error:
            yield from error.faults


def _name_fault(location: str, path: str) -> Fault | None:
    if len(path) > MAX_PATH:
        message = f"the name has {len(path):,} characters, expected at most {MAX_PATH:,}"
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
        # An index is far larger than a page.
        return None if is_own(data) else MAX_INDEX if data.startswith(b"{") else max_page_size

    try:
        data = read_wanted(file.location, limit)
    except LargeFileFault as error:
        yield Fault(file.location, 0, f"{unreadable(error)} (--max-page-size)")
    except OSError as error:
        message = unreadable(error)
        if is_circle(file.location):
            message = "is a link to a folder that contains it, expected no circle"
        yield Fault(file.location, 0, message)
    else:
        if data is not None:
            yield RawFile(file.location, file.path, data)
