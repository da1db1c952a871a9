"""The content encodings of HTTP that are understood, undone piece by piece.

A small body can unfold to any size. A kilobyte of gzip is at most a megabyte, one of zstd at most
32 of them, and the sum is compared with the limit before more is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import IO, Protocol

import zstandard

_PIECE = 1024
_ZSTD_WINDOW = 8 * 2**20
"""Bytes; what a decoder of HTTP has to take at least, and need not exceed (RFC 9659)."""


class BrokenEncoding(Exception):
    """The body is not what its encoding says, or is cut."""


class TooLong(Exception):
    """The body unfolds to more than the limit."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _zstd() -> _Decoder:
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "gzip": lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16),
    "zstd": _zstd,
}
ENCODINGS = tuple(_DECODERS)
"""The names of encodings, as in Accept-Encoding."""


def decoded(body: IO[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """Yield the parts of a body without its encoding.

    Args:
        body: what was sent.
        encoding: one of `ENCODINGS`.
        limit: bytes that all parts may have together.

    Raises:
        BrokenEncoding: it is damaged or cut.
        TooLong: there are more bytes than `limit`.
    """
    decoder, size = _DECODERS[encoding](), 0
    while piece := body.read(_PIECE):
        while piece:
            if decoder.eof:
                decoder = _DECODERS[encoding]()
            try:
                part = decoder.decompress(piece)
            except (zlib.error, zstandard.ZstdError) as error:
                raise BrokenEncoding(f"sends broken {encoding}: {error}") from None
            size += len(part)
            if size > limit:
                raise TooLong
            yield part
            piece = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        raise BrokenEncoding(f"sends {encoding} that is cut")
