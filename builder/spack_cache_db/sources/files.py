"""Units → the bytes of their files, those of archives as well, streamed.

This module knows file systems and archive formats, and of what a file says no more than whether
this package wrote it, and that what is large and begins as JSON does need not be in memory. Nothing
is unpacked to disk, no archive is held whole in memory, and a name inside an archive is only a
label. Hidden files (a name that starts with a dot) are passed over.
"""

from __future__ import annotations

import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from mmap import PROT_READ, mmap
from typing import IO, cast

import zstandard

from spack_cache_db.errors import Fault, reason
from spack_cache_db.sources.own import HEAD, is_own
from spack_cache_db.sources.tar_streams import MAX_HEADERS, Watched, decompressed, unpacked_limit
from spack_cache_db.sources.units import File, Mirror, Unit, files_of, is_archive

SMALL = 2**20
"""Bytes; what is larger and begins as JSON does is mapped into memory, not read."""

_BROKEN_ARCHIVE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zstandard.ZstdError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    UnicodeDecodeError,
)


MAX_PATH = 4096
"""Characters of a file's name with its folders; Linux takes as many bytes (limits.h, PATH_MAX)."""

_CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class RawFile:
    """The bytes of one file and where they came from (see `File`)."""

    location: str
    path: str
    data: bytes | mmap


def read(unit: Unit, max_page_size: int) -> Iterator[RawFile | Mirror | Fault]:
    """Yield the files and mirrors of a unit, and a fault for whatever cannot be read."""
    for file in files_of(unit):
        if isinstance(file, Fault | Mirror):
            yield file
        elif is_archive(file):
            yield from _checked(_read_archive(file.location, max_page_size))
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


def _read_archive(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    members = _read_zip if location.lower().endswith(".zip") else _read_tar
    found = False
    try:
        for page in members(location, max_page_size):
            found = True
            yield page
        if not found:
            yield Fault(location, 0, "the archive holds no file, expected pages or indexes")
    except _BROKEN_ARCHIVE as error:
        yield Fault(location, 0, f"the archive cannot be read to its end: {reason(error)}")


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
                yield _too_large(file.location, size, max_page_size)
            else:
                yield RawFile(file.location, file.path, data)
    except OSError as error:
        yield Fault(file.location, 0, f"cannot be read: {reason(error)}")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _read_tar(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    with open(location, "rb") as raw, decompressed(location, raw) as stream:  # noqa: PTH123
        watched = Watched(stream, os.fstat(raw.fileno()).st_size)
        with tarfile.open(fileobj=cast(IO[bytes], watched), mode="r:") as tar:
            for member in _members(tar, watched):
                name = _within(location, member.name)
                if member.isdir() or _hidden(member.name):
                    continue
                if not member.isreg():
                    yield Fault(name, 0, "is a link or a device, expected a regular file")
                elif member.size > max_page_size:
                    yield _too_large(name, member.size, max_page_size)
                elif (content := tar.extractfile(member)) is not None:
                    watched.expect(member.size)
                    yield RawFile(name, member.name, content.read())
        watched.require_end(tar.offset)


def _members(tar: tarfile.TarFile, watched: Watched) -> Iterator[tarfile.TarInfo]:
    """Yield the members one by one; `tarfile` itself would remember all of them."""
    while True:
        watched.expect(MAX_HEADERS)
        member = tar.next()
        if member is None:
            return
        tar.members.clear()  # type: ignore[attr-defined]
        yield member


def _read_zip(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    left = unpacked_limit(os.stat(location).st_size)  # noqa: PTH116
    with zipfile.ZipFile(location) as archive:
        for member in archive.infolist():
            name = _within(location, member.filename)
            if member.is_dir() or _hidden(member.filename):
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                yield Fault(name, 0, "is a link or a device, expected a regular file")
            elif member.file_size > max_page_size:
                yield _too_large(name, member.file_size, max_page_size)
            else:
                left -= member.file_size
                if left < 0:
                    raise zipfile.BadZipFile("it unpacks to more than a thousand times its size")
                yield RawFile(name, member.filename, _unzipped(archive, member))


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, as many as it claims to have; `BadZipFile` if it has others.

    Read at once, it would be unpacked as far as it goes before its size is looked at. So it is by
    bzip2 and LZMA, of which `zipfile` unpacks each piece whole: 4 kB may hold a gigabyte.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is not compressed by deflate")
    with archive.open(member) as stream:
        return b"".join(iter(partial(stream.read, _CHUNK), b""))


def _within(location: str, name: str) -> str:
    """Return where a member lies, for messages: a name may have a million characters."""
    return f"{location}/{name if len(name) <= MAX_PATH else name[:100] + '...'}"


def _hidden(name: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in name.split("/"))


def _too_large(location: str, size: int, limit: int) -> Fault:
    return Fault(
        location,
        0,
        f"has {size:,} bytes, expected at most {limit:,} (--max-page-size)",
    )


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_text(location: str) -> Fault:
    named = location.encode(errors="backslashreplace").decode()
    return Fault(named, 0, "the name is not UTF-8, expected a name that can be written down")
