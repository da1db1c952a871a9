"""How a mirror is laid out: manifests and blobs, its address, compressed files.

Spack 1.0 `url_buildcache.py`. A manifest may be clear-signed, blobs are not. This module knows the
formats, neither a disk nor a network.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import msgspec
import zstandard
from msgspec import Struct, structs

from spack_cache_db.sources.indexes.spack_json import IndexFault, without_signature
from spack_cache_db.sources.strictness import BROKEN, read_strictly, require_once, said


class _Address(Struct, frozen=True, forbid_unknown_fields=True):
    url: str


_ADDRESS = msgspec.json.Decoder(_Address)

MAX_ADDRESS = 2**16
"""Bytes of the file that says where a mirror is."""


def read_address(data: bytes) -> str:
    """Return the URL of a mirror from the bytes of its file; `IndexFault` if it says none."""
    try:
        url = _ADDRESS.decode(data).url
        read_strictly(data)
    except BROKEN as error:
        message = f'broken address of a mirror: {said(error)}, expected {{"url": …}}'
        raise IndexFault(message) from None
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is no URL, expected one such as https://…")
    return url


def write_address(url: str) -> bytes:
    """Return the bytes of the file that says where a mirror is."""
    return msgspec.json.format(msgspec.json.encode(_Address(url)), indent=2) + b"\n"


MANIFESTS = "v3/manifests/index"
"""Where a mirror of layout 3 has the manifests of its indexes."""

LAYOUT_2_INDEX = "build_cache/index.json"

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""How the media types begin of a blob that is an index, a spec file, a binary."""

VERSION = 3

MAX_MANIFEST = 2**20
"""Bytes of a manifest; the known ones have a few hundred."""


class Blob(
    Struct,
    frozen=True,
    rename={
        "length": "contentLength",
        "media_type": "mediaType",
        "checksum_algorithm": "checksumAlgorithm",
    },
):
    """One blob: its length in bytes, what it is, and the sum that names it."""

    length: int
    media_type: str
    compression: str
    checksum_algorithm: str
    checksum: str

    @property
    def path(self) -> PurePosixPath:
        """Where the blob lies below the mirror."""
        return PurePosixPath("blobs", self.checksum_algorithm, self.checksum[:2], self.checksum)

    def require(self, data: bytes) -> None:
        """Raise `IndexFault` unless these are the blob's bytes."""
        if len(data) != self.length:
            raise IndexFault(f"has {len(data):,} bytes, its manifest says {self.length:,}")
        found = hashlib.new(self.checksum_algorithm, data).hexdigest()
        if found != self.checksum:
            raise IndexFault(f"has the checksum {found}, its manifest says {self.checksum}")


class Manifest(Struct, frozen=True):
    """A manifest: the blobs that belong together."""

    version: int
    data: tuple[Blob, ...]

    def blob(self, media_type: str) -> Blob | None:
        """Return the first blob whose media type begins so."""
        return next((each for each in self.data if each.media_type.startswith(media_type)), None)


_MANIFEST = msgspec.json.Decoder(Manifest)


def read_manifest(data: bytes) -> Manifest:
    """Return a manifest; `IndexFault` if it is none, or of another layout."""
    text = without_signature(data)
    try:
        manifest = _MANIFEST.decode(text)
        require_once(text, manifest)
    except BROKEN as error:
        raise IndexFault(f"broken manifest: {said(error)}, expected Spack's layout 3") from None
    if manifest.version != VERSION:
        raise IndexFault(f"is of layout {manifest.version}, expected {VERSION}")
    for blob in manifest.data:
        if blob.checksum_algorithm != "sha256" or not is_sum(blob.checksum):
            raise IndexFault("names a checksum that is no sha256, expected 64 hexadecimal digits")
    return manifest


def unknown_keys(data: bytes) -> set[str]:
    """Return the keys that are not known, by their place, as `data[].annotations`.

    `data` are the bytes of a manifest that `read_manifest` has read.
    """
    manifest = msgspec.json.decode(without_signature(data))
    of_blobs = {key for blob in manifest["data"] for key in blob}
    return {*manifest} - _keys(Manifest) | {f"data[].{key}" for key in of_blobs - _keys(Blob)}


@cache
def _keys(record: type[Struct]) -> frozenset[str]:
    return frozenset(each.encode_name for each in structs.fields(record))


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 hexadecimal digits, in small letters."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STEP = 1024
"""A kilobyte of gzip is at most a megabyte, one of zstd at most 32 of them."""
_ZSTD_WINDOW = 2**27


def unpacked_limit(packed_size: int) -> int:
    """Return how many bytes may lie under a compression: hashes do not shrink to a hundredth."""
    return 2**26 + 100 * packed_size


def decompressed(data: bytes, max_size: int) -> bytes:
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


def _read(decompressor: Any, data: bytes, max_size: int) -> bytes:
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
