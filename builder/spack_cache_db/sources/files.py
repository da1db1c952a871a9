"""Units → the bytes of their files, those of archives as well.

Of what a file says this module knows only whether this package wrote it, and that what is large and
begins as JSON need not be in memory. Hidden files (a name that starts with a dot) are passed over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from mmap import PROT_READ, mmap

from spack_cache_db.errors import Fault, reason
from spack_cache_db.sources.archives import MAX_PATH, read_archive, too_large
from spack_cache_db.sources.units import (
    HEAD,
    File,
    MirrorFolder,
    RawFile,
    Unit,
    files_of,
    is_archive,
    is_own,
)

SMALL = 2**20
"""Bytes; what is larger and begins as JSON does is mapped into memory, not read."""


def read(unit: Unit, max_page_size: int) -> Iterator[RawFile | MirrorFolder | Fault]:
    """Yield the files and mirrors of a unit, and a fault for whatever cannot be read."""
    for file in files_of(unit):
        if isinstance(file, Fault | MirrorFolder):
            yield file
        elif is_archive(file):
            yield from _checked(read_archive(file.location, max_page_size))
        else:
            yield from _checked(_read_file(file, max_page_size))


def _checked(pages: Iterable[RawFile | Fault]) -> Iterator[RawFile | Fault]:
    for page in pages:
        if isinstance(page, Fault):
            yield page
        elif len(page.path) > MAX_PATH:
            said = f"the name has {len(page.path):,} characters, expected at most {MAX_PATH:,}"
            yield Fault(page.location, 0, said)
        else:
            yield page if _is_text(page.path) else _no_text(page.location)


def _read_file(file: File, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield a file, or why it cannot be read; nothing for what this package wrote itself."""
    try:
        # A pipe would block whoever opens it, but for O_NONBLOCK.
        with open(file.location, "rb", buffering=0, opener=_open) as stream:
            status = os.fstat(stream.fileno())
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                yield Fault(file.location, 0, "is a pipe or a device, expected a regular file")
                return
            head = os.pread(stream.fileno(), HEAD, 0)
            if is_own(head):
                return
            if size > SMALL and head.startswith(b"{"):
                # An index is far larger than a page; its records are decoded one by one.
                yield RawFile(file.location, file.path, mmap(stream.fileno(), 0, prot=PROT_READ))
                return
            data = stream.read(size + 1 if size <= max_page_size else 0)
            # A file may grow while it is read, and some of the system's have no size.
            while size <= max_page_size and (more := stream.read(2**20)):
                data += more
                size = len(data)
            if size > max_page_size:
                yield too_large(file.location, size, max_page_size)
            else:
                yield RawFile(file.location, file.path, data)
    except OSError as error:
        yield Fault(file.location, 0, f"cannot be read: {reason(error)}")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_text(location: str) -> Fault:
    named = location.encode(errors="backslashreplace").decode()
    return Fault(named, 0, "the name is not UTF-8, expected a name that can be written down")
