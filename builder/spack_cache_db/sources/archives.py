"""Reads the members of tar and zip archives as streams, within limits.

Archives are neither unpacked to disk nor loaded into memory, and names of members are
only labels.
"""

from __future__ import annotations

import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader, FileIO
from typing import IO, Any, cast

import zstandard

from spack_cache_db.bounded_files import FileFault, open_regular, unreadable
from spack_cache_db.errors import Fault, reason
from spack_cache_db.sources.files import RawFile

MAX_HEADERS = 2**20
"""Maximum size of a member's headers in bytes; real archives have a few hundred."""

MAX_DIRECTORY = 2**24
"""Maximum size of a zip archive's directory in bytes: that of 150,000 pages."""

_CHUNK = 2**16

_BROKEN_ARCHIVE = (
    tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError, zlib.error, struct.error,
    ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""Exceptions of Python's readers for archives that are truncated, damaged or
hostile.
"""

MAX_PATH = 4096
"""Maximum length of a path; Linux allows as many bytes (limits.h, PATH_MAX)."""


def unpacked_limit(packed_size: int) -> int:
    """Return the maximum unpacked size of an archive: pages never shrink to a
    thousandth.
    """
    return 2**26 + 1000 * packed_size


def decompressed(location: str, raw: IO[bytes]) -> Any:
    """Return the decompressed stream of a file; its name decides the compression."""
    name = location.lower()
    if name.endswith((".gz", ".tgz")):
        return gzip.GzipFile(fileobj=raw)
    if name.endswith(".zst"):
        # The window of the command `zstd`.
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**27)
        return BufferedReader(decompressor.stream_reader(raw, read_across_frames=True))
    return raw


class TarStream:
    """A forward-only stream of a tar archive that limits each read and checks the end.

    A header may claim any size (a long name, PAX records, a sparse map), and `tarfile`
    would read all of it into memory: `expect` sets the limit before each read.

    A tar file ends with two blocks of zeros (POSIX pax, "ustar Interchange Format").
    `tarfile` treats a damaged header as the end and drops the remaining members without
    an error; `require_end` detects that.
    """

    def __init__(self, stream: Any, packed_size: int) -> None:
        self._stream = stream
        self._limit = unpacked_limit(packed_size)
        self._expected = MAX_HEADERS
        self._size = 0
        self._zeros = 0

    def expect(self, size: int) -> None:
        """Set how many bytes may be read until the next call; beyond, `read` raises
        `ReadError`.
        """
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
            raise tarfile.ReadError(
                f"the headers of a member have more than {MAX_HEADERS:,} bytes"
            )
        self._expected -= size
        return self._take(size)

    def require_end(self, end: int) -> None:
        """Read to the end; raise `tarfile.ReadError` if the last member does not end at
        `end`.
        """
        while self._take(_CHUNK):
            pass
        if self._size < end + 2 * tarfile.BLOCKSIZE:
            raise tarfile.ReadError("it is truncated")
        if self._zeros > end:
            raise tarfile.ReadError(
                f"no member starts at byte {end:,}, and it goes on after it"
            )

    def _take(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        used = len(data.rstrip(b"\0"))
        if used:
            self._zeros = self._size + used
        self._size += len(data)
        if self._size > self._limit:
            raise tarfile.ReadError(f"it unpacks to more than {self._limit:,} bytes")
        return data


_Member = tuple[str, str, int, Callable[[], bytes]]
"""Name, what is wrong with its kind, size, and a function that returns the content."""


def read_archive(location: str, max_page_size: int) -> Iterator[RawFile | Fault]:
    """Yield the members of an archive, and a fault for each that cannot be read."""
    members = _zip_members if location.lower().endswith(".zip") else _tar_members
    has_members = False
    try:
        for name, oddity, size, content in members(location):
            name = name.removeprefix("./")
            if any(
                part.startswith(".") and part not in (".", "..")
                for part in name.split("/")
            ):
                continue
            has_members = True
            shown_name = name if len(name) <= MAX_PATH else f"{name[:100]}..."
            if not oddity and size > max_page_size:
                limit = f"at most {max_page_size:,} (--max-page-size)"
                yield Fault(
                    f"{location}/{shown_name}",
                    0,
                    f"has {size:,} bytes, expected {limit}",
                )
            elif oddity:
                message = f"is {oddity}, expected a regular file"
                yield Fault(f"{location}/{shown_name}", 0, message)
            else:
                yield RawFile(f"{location}/{shown_name}", name, content())
        if not has_members:
            yield Fault(
                location, 0, "the archive contains no file, expected pages or indexes"
            )
    except FileFault as error:
        yield Fault(location, 0, unreadable(error))
    except _BROKEN_ARCHIVE as error:
        yield Fault(
            location, 0, f"the archive cannot be read to its end: {reason(error)}"
        )


def _tar_members(location: str) -> Iterator[_Member]:
    with (
        open_regular(location) as file,
        decompressed(location, BufferedReader(file)) as stream,
    ):
        watched = TarStream(stream, os.fstat(file.fileno()).st_size)
        with tarfile.open(fileobj=cast(IO[bytes], watched), mode="r:") as tar:
            # Iterating over `tarfile` would keep all members in memory.
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]
                oddity = "" if member.isreg() else "a link or a device"
                # A sparse file's size is a claim of its header.
                oddity = "a sparse file" if member.issparse() else oddity
                if not member.isdir():
                    watched.expect(member.size)
                    content = tar.extractfile(member) if not oddity else None
                    yield (
                        member.name,
                        oddity,
                        member.size,
                        content.read if content else bytes,
                    )
                watched.expect(MAX_HEADERS)
        watched.require_end(tar.offset)


def _zip_members(location: str) -> Iterator[_Member]:
    with (
        open_regular(location) as file,
        zipfile.ZipFile(_ZipBytes(file.fileno(), closefd=False)) as archive,
    ):
        remaining = unpacked_limit(os.fstat(file.fileno()).st_size)

        def content(member: zipfile.ZipInfo) -> bytes:
            nonlocal remaining
            remaining -= member.file_size
            if remaining < 0:
                raise zipfile.BadZipFile(
                    "it unpacks to more than a thousand times its size"
                )
            # With bzip2 and LZMA even a chunk of 4 kB may unpack to a gigabyte.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(
                    f"{member.filename} is not compressed by deflate"
                )
            with archive.open(member) as stream:
                # A single read would unpack a member before its size is checked.
                return b"".join(iter(partial(stream.read, _CHUNK), b""))

        for member in archive.infolist():
            oddity = (
                "a link or a device" if stat.S_ISLNK(member.external_attr >> 16) else ""
            )
            if not member.is_dir():
                yield (
                    member.filename,
                    oddity,
                    member.file_size,
                    partial(content, member),
                )


class _ZipBytes(FileIO):
    """A zip archive with reads of at most `MAX_DIRECTORY`: `zipfile` loads the whole
    directory.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        remaining = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        size = remaining if size is None or size < 0 else min(size, remaining)
        if size > MAX_DIRECTORY:
            raise zipfile.BadZipFile(
                f"its directory has more than {MAX_DIRECTORY:,} bytes"
            )
        return super().read(size) or b""
