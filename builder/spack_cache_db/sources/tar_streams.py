"""The bytes of a tar archive, uncompressed, with its end made sure of.

This module knows compression and the last two blocks of an archive, and nothing of its members.
"""

from __future__ import annotations

import gzip
import tarfile
from typing import IO, Any, Protocol

import zstandard


def decompressed(location: str, raw: IO[bytes]) -> _Readable:
    """Open what lies under the compression that the name says."""
    name = location.lower()
    if name.endswith((".gz", ".tgz")):
        return gzip.GzipFile(fileobj=raw)
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return raw


class _Readable(Protocol):
    """What the layers of an archive have in common."""

    def read(self, size: int, /) -> bytes: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> Any: ...


class Watched:
    """A stream that remembers where its bytes end, and where its zeros begin.

    A tar file ends with two blocks of zeros (POSIX pax, "ustar Interchange Format"); `tarfile`
    takes a missing end or a damaged header for the end, so that the rest would be lost in silence.
    """

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._size = 0
        self._zeros = 0

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        data = self._stream.read(size)
        used = len(data.rstrip(b"\0"))
        if used:
            self._zeros = self._size + used
        self._size += len(data)
        return data

    def require_end(self, end: int) -> None:
        """Read what is left; raise `tarfile.ReadError` unless the archive ends at `end`."""
        while self.read(1 << 16):
            pass
        if self._size < end + 2 * tarfile.BLOCKSIZE:
            raise tarfile.ReadError("it is truncated")
        if self._zeros > end:
            raise tarfile.ReadError(f"no member starts at byte {end:,}, and it goes on after it")
