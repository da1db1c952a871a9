"""The bytes of a tar archive, uncompressed, within bounds, with its end made sure of.

This module knows compression and the last two blocks of an archive, and nothing of its members.
"""

from __future__ import annotations

import gzip
import tarfile
from typing import IO, Any, Protocol

import zstandard

MAX_HEADERS = 2**20
"""Bytes of all headers of one member. Names and PAX records of real archives have a few hundred."""

_CHUNK = 2**16
_ZSTD_WINDOW = 2**27
"""Bytes that zstd may look back, as much as the command `zstd` allows without being told to."""


def unpacked_limit(packed_size: int) -> int:
    """Return how many bytes an archive may unpack to: no pages shrink to a thousandth."""
    return 2**26 + 1000 * packed_size


def decompressed(location: str, raw: IO[bytes]) -> _Readable:
    """Open what lies under the compression that the name says."""
    name = location.lower()
    if name.endswith((".gz", ".tgz")):
        return gzip.GzipFile(fileobj=raw)
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
            raw, read_across_frames=True
        )
    return raw


class _Readable(Protocol):
    """What the layers of an archive have in common."""

    def read(self, size: int, /) -> bytes: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> Any: ...


class Watched:
    """The bytes of a tar archive, read forwards only, and never more at once than is expected.

    A header may claim any size for itself (a long name, PAX records, the map of a sparse file), and
    `tarfile` would read all of that into memory: so the reader says what it expects with `expect`.
    The stream also remembers where its bytes end, and where its zeros begin. A tar file ends with
    two blocks of zeros (POSIX pax, "ustar Interchange Format"); `tarfile` takes a missing end or a
    damaged header for the end, so that the rest would be lost in silence.
    """

    def __init__(self, stream: _Readable, packed_size: int) -> None:
        self._stream = stream
        self._limit = unpacked_limit(packed_size)
        self._expected = MAX_HEADERS
        self._size = 0
        self._zeros = 0

    def expect(self, size: int) -> None:
        """Allow so many bytes to be read until the next call; raise `ReadError` beyond."""
        self._expected = size

    def tell(self) -> int:
        """Return how many bytes have been read."""
        return self._size

    def seek(self, position: int) -> None:
        """Read on to a position, without keeping anything."""
        while self._size < position and self._take(min(position - self._size, _CHUNK)):
            pass

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or what is left."""
        if size > self._expected:
            raise tarfile.ReadError(f"the headers of a member have more than {MAX_HEADERS:,} bytes")
        parts = []
        while size and (part := self._take(size)):
            parts.append(part)
            size -= len(part)
            self._expected -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def require_end(self, end: int) -> None:
        """Read what is left; raise `tarfile.ReadError` unless the archive ends at `end`."""
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
