"""Reads the members of tar and zip archives as streams, within limits.

Archives are neither unpacked to disk nor loaded into memory, and names of members are only labels.
"""

from __future__ import annotations

import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from io import BufferedReader, FileIO
from typing import IO, Any, Protocol, cast

import zstandard

from spack_cache_db.bounded_files import FileFault, open_regular, unreadable
from spack_cache_db.errors import Fault, reason
from spack_cache_db.sources import RawFile

MAX_HEADERS = 2**20
"""Maximum size of a member's headers in bytes; real archives have a few hundred."""

MAX_DIRECTORY = 2**24
"""Maximum size of a zip archive's directory in bytes: that of 150,000 pages."""

_CHUNK = 2**16

_BROKEN_ARCHIVE = (
    tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError, zlib.error, struct.error,
    ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""Exceptions of Python's readers for archives that are truncated, damaged or hostile."""

MAX_PATH = 4096
"""Maximum length of a path; Linux allows as many bytes (limits.h, PATH_MAX)."""

_ZSTD_WINDOW = 2**27
"""Window size of zstd in bytes: the default limit of the command `zstd`."""


def unpacked_limit(packed_size: int) -> int:
    """Return the maximum unpacked size of an archive: pages never shrink to a thousandth."""
    return 2**26 + 1000 * packed_size


def decompressed(location: str, raw: IO[bytes]) -> _Readable:
    """Return the decompressed stream of a file; its name decides the compression."""
    name = location.lower()
    if name.endswith((".gz", ".tgz")):
        return gzip.GzipFile(fileobj=raw)
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
            raw, read_across_frames=True
        )
    return raw


class _Readable(Protocol):
    """The common methods of an archive's streams."""

    def read(self, size: int, /) -> bytes: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> Any: ...


class TarStream:
    """A forward-only stream of a tar archive that limits each read and checks the end.

    A header may claim any size (a long name, PAX records, a sparse map), and `tarfile` would read
    all of it into memory: `expect` sets the limit before each read. A tar file ends with two blocks
    of zeros (POSIX pax, "ustar Interchange Format"). `tarfile` treats a damaged header as the end
    and drops the remaining members without an error; `require_end` detects that.
    """

    def __init__(self, stream: _Readable, packed_size: int) -> None:
        self._stream = stream
        self._limit = unpacked_limit(packed_size)
        self._expected = MAX_HEADERS
        self._size = 0
        self._zeros = 0

    def expect(self, size: int) -> None:
        """Set how many bytes may be read until the next call; beyond, `read` raises `ReadError`."""
        self._expected = size

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._size

    def seek(self, position: int) -> None:
        """Skip forward to a position."""
        while self._size < position and self._take(min(position - self._size, _CHUNK)):
            pass

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        if size > self._expected:
            raise tarfile.ReadError(f"the headers of a member have more than {MAX_HEADERS:,} bytes")
        parts = []
        while size and (part := self._take(size)):
            parts.append(part)
            size -= len(part)
            self._expected -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def require_end(self, end: int) -> None:
        """Read to the end; raise `tarfile.ReadError` if the last member does not end at `end`."""
        while self._take(_CHUNK):
            pass
        if self._size < end + 2 * tarfile.BLOCKSIZE:
            raise tarfile.ReadError("it is truncated")
        if self._zeros > end:
            raise tarfile.ReadError(f"no member starts at byte {end:,}, and it goes on after it")

    def _take(self, size: int) -> bytes:
        data = self._stream.read(size)
        used = len(data.rstrip(b"\0"))
        if used:
            self._zeros = self._size + used
        self._size += len(data)
        if self._size > self._limit:
            raise tarfile.ReadError(f"it unpacks to more than {self._limit:,} bytes")
        return data


def read_archive(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield the members of an archive, and a fault for each that cannot be read."""
    members = _read_zip if location.lower().endswith(".zip") else _read_tar
    has_members = False
    try:
        for member in members(location, max_page_size):
            has_members = True
            yield member
        if not has_members:
            yield Fault(location, 0, "the archive contains no file, expected pages or indexes")
    except FileFault as error:
        yield Fault(location, 0, unreadable(error))
    except _BROKEN_ARCHIVE as error:
        yield Fault(location, 0, f"the archive cannot be read to its end: {reason(error)}")


def _read_tar(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    with open_regular(location) as file, decompressed(location, BufferedReader(file)) as stream:
        watched = TarStream(stream, os.fstat(file.fileno()).st_size)
        with tarfile.open(fileobj=cast(IO[bytes], watched), mode="r:") as tar:
            for member in _members(tar, watched):
                name = _within(location, member.name)
                if member.isdir() or _hidden(member.name):
                    continue
                if not member.isreg() or member.issparse():
                    # A sparse file's size is a claim of its header.
                    kind = "a sparse file" if member.isreg() else "a link or a device"
                    yield Fault(name, 0, f"is {kind}, expected a regular file")
                elif member.size > max_page_size:
                    yield _too_large(name, member.size, max_page_size)
                elif (content := tar.extractfile(member)) is not None:
                    watched.expect(member.size)
                    yield RawFile(name, member.name, content.read())
        watched.require_end(tar.offset)


def _members(tar: tarfile.TarFile, watched: TarStream) -> Iterator[tarfile.TarInfo]:
    """Yield the members one by one; iterating over `tarfile` would keep all in memory."""
    while True:
        watched.expect(MAX_HEADERS)
        member = tar.next()
        if member is None:
            return
        tar.members.clear()  # type: ignore[attr-defined]
        yield member


def _read_zip(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    with (
        open_regular(location) as file,
        zipfile.ZipFile(_ZipBytes(file.fileno(), closefd=False)) as archive,
    ):
        remaining = unpacked_limit(os.fstat(file.fileno()).st_size)
        for member in archive.infolist():
            name = _within(location, member.filename)
            if member.is_dir() or _hidden(member.filename):
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                yield Fault(name, 0, "is a link or a device, expected a regular file")
            elif member.file_size > max_page_size:
                yield _too_large(name, member.file_size, max_page_size)
            else:
                remaining -= member.file_size
                if remaining < 0:
                    raise zipfile.BadZipFile("it unpacks to more than a thousand times its size")
                yield RawFile(name, member.filename, _unzipped(archive, member))


class _ZipBytes(FileIO):
    """A zip archive with reads of at most `MAX_DIRECTORY`: `zipfile` loads the whole directory."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        remaining = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        size = remaining if size is None or size < 0 else min(size, remaining)
        if size > MAX_DIRECTORY:
            raise zipfile.BadZipFile(f"its directory has more than {MAX_DIRECTORY:,} bytes")
        return super().read(size) or b""


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member; `BadZipFile` if it has more or fewer than it claims.

    Reading in chunks limits the memory, because a single read unpacks a member before its size is
    checked. With bzip2 and LZMA even a chunk of 4 kB may unpack to a gigabyte.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is not compressed by deflate")
    with archive.open(member) as stream:
        return b"".join(iter(partial(stream.read, _CHUNK), b""))


def _within(location: str, name: str) -> str:
    """Return the path of a member in messages, shortened if its name is too long."""
    return f"{location}/{name if len(name) <= MAX_PATH else name[:100] + '...'}"


def _hidden(name: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in name.split("/"))


def _too_large(location: str, size: int, limit: int) -> Fault:
    message = f"has {size:,} bytes, expected at most {limit:,} (--max-page-size)"
    return Fault(location, 0, message)
