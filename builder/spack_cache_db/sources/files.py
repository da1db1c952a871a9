"""Units → the bytes of their files, those of archives as well.

Of what a file says this module knows only whether this package wrote it, and that an index may be
larger than a page. Hidden files (a name that starts with a dot) are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from spack_cache_db.bounded_files import LargeFileFault, open_regular, read_open, unreadable
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.safety_net import FaultsOf
from spack_cache_db.sources.archives import MAX_PATH, read_archive
from spack_cache_db.sources.bounds import MAX_INDEX
from spack_cache_db.sources.units import (
    HEAD,
    File,
    MirrorFolder,
    RawFile,
    Unit,
    files_of,
    is_archive,
    is_circle,
    is_own,
)


def read(unit: Unit, max_page_size: int) -> Iterator[RawFile | MirrorFolder | Fault]:
    """Yield the files and mirrors of a unit, and a fault for whatever cannot be read."""
    for file in files_of(unit):
        try:
            with FaultsOf(file.path if isinstance(file, Fault) else file.location):
                if isinstance(file, Fault):
                    yield file
                elif isinstance(file, MirrorFolder):
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
    try:
        with open_regular(file.location) as stream:
            head = os.pread(stream.fileno(), HEAD, 0)
            if not is_own(head):
                # An index is far larger than a page.
                limit = MAX_INDEX if head.startswith(b"{") else max_page_size
                yield RawFile(file.location, file.path, read_open(stream, file.location, limit))
    except LargeFileFault as error:
        yield Fault(file.location, 0, f"{unreadable(error)} (--max-page-size)")
    except OSError as error:
        words = unreadable(error)
        if is_circle(file.location):
            words = "is a link to a folder in which it lies, expected no circle"
        yield Fault(file.location, 0, words)
