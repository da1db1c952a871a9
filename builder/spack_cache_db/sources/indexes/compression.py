"""Compressed indexes and spec files: gzip and zstd, known by their first bytes, bounded in size."""

from __future__ import annotations

import zlib
from mmap import mmap
from typing import Any

import zstandard

from spack_cache_db.sources.indexes.faults import IndexFault, said

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STEP = 1024
"""A kilobyte of gzip is at most a megabyte, one of zstd at most 32 of them."""
_ZSTD_WINDOW = 2**27


def unpacked_limit(packed_size: int) -> int:
    """Return how many bytes may lie under a compression: hashes do not shrink to a hundredth."""
    return 2**26 + 100 * packed_size


def decompressed(data: bytes | mmap, max_size: int) -> bytes | mmap:
    """Return the bytes under a compression, at most `max_size` of them; others as they are.

    Raises:
        IndexFault: they are broken, cut, too many, or more than `unpacked_limit` allows.
    """
    max_size = min(max_size, unpacked_limit(len(data)))
    if data[:2] == _GZIP:
        return _read(zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), data, max_size)
    if data[:4] == _ZSTD:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return _read(decompressor.decompressobj(), data, max_size)
    return data


def _read(decompressor: Any, data: bytes | mmap, max_size: int) -> bytes:
    found = bytearray()
    try:
        for start in range(0, len(data), _STEP):
            found += decompressor.decompress(data[start : start + _STEP])
            if len(found) > max_size:
                words = f"has more than {max_size:,} bytes when it is not compressed"
                raise IndexFault(f"{words}, expected less")
    except (zlib.error, zstandard.ZstdError) as error:
        raise IndexFault(f"broken compression: {said(error)}, expected a whole file") from None
    if not decompressor.eof:
        raise IndexFault("broken compression: it is cut, expected a whole file")
    return bytes(found)
