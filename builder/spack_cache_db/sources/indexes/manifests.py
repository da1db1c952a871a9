"""Reads the manifests of a mirror of layout 3, and the blobs that they name.

In layout 3, that of Spack 1.0 and later, each file of a mirror is a blob whose name is
its checksum. A manifest has a readable name, and lists blobs:

    v3/manifests/index/index.manifest.json
        {"version": 3, "data": [{"mediaType": "application/vnd.spack.db.v8+json",
         "contentLength": 1234, "checksumAlgorithm": "sha256", "checksum": "ab12…"}]}
    blobs/sha256/ab/ab12…

Manifests may be signed, and blobs compressed.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import zstandard
from msgspec import Meta, Struct

from spack_cache_db.sources.indexes.faults import IndexFault, decoding
from spack_cache_db.spack.nodes import require_known

MANIFESTS = "v3/manifests/index"
"""The folder of a mirror of layout 3 with the manifests of its indexes."""

LAYOUT_2_INDEX = "build_cache/index.json"
"""The index of a mirror of layout 2, which is that of Spack before 1.0."""

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""Start of the media type of an index, a spec file and a binary."""

MAX_MANIFEST = 2**20
"""Bytes of a manifest; known manifests have a few hundred."""

Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size that SQLite can store."""


class Blob(Struct, frozen=True, rename="camel"):
    """An entry of a manifest: the length of a blob in bytes, its kind, its checksum."""

    content_length: Bytes
    media_type: str
    checksum_algorithm: Literal["sha256"]
    checksum: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

    @property
    def path(self) -> PurePosixPath:
        """The path of the blob below the mirror."""
        return PurePosixPath(
            "blobs", self.checksum_algorithm, self.checksum[:2], self.checksum
        )

    def require(self, data: bytes) -> None:
        """Raise `IndexFault` unless these are the blob's bytes."""
        size = len(data)
        if size != self.content_length:
            expected = f"expected {self.content_length:,} as in its manifest"
            raise IndexFault(f"has {size:,} bytes, {expected}")
        checksum = hashlib.sha256(data).hexdigest()
        if checksum != self.checksum:
            expected = f"expected {self.checksum} as in its manifest"
            raise IndexFault(f"has the checksum {checksum}, {expected}")


class Manifest(NamedTuple):
    """A manifest: its blobs, and its unknown keys."""

    blobs: tuple[Blob, ...]
    unknown: frozenset[str]

    def blob(self, media_type: str) -> Blob | None:
        """Return the first blob whose media type starts so; None if there is none."""
        for blob in self.blobs:
            if blob.media_type.startswith(media_type):
                return blob
        return None


def read_manifest(data: bytes) -> Manifest:
    """Return a manifest, which may be signed.

    Raises:
        IndexFault: the bytes are not a manifest of layout 3.
    """
    unknown: set[str] = set()
    with decoding("manifest", ", expected Spack's layout 3"):
        content = msgspec.json.decode(without_signature(data))
        require_known(content, {"version", "data"}, "", unknown)
        version = content.get("version")
        if version != 3:
            raise IndexFault(f"is of layout {version!r:.20}, expected 3")
        blobs = msgspec.convert(content.get("data"), tuple[Blob, ...])
        # `compression` is known, but not read: the first bytes of a blob show it.
        known_keys = {*Blob.__struct_encode_fields__, "compression"}
        for blob in content["data"]:
            require_known(blob, known_keys, "data[]", unknown)
    return Manifest(blobs, frozenset(unknown))


_SIGNED_START = b"-----BEGIN PGP SIGNED MESSAGE-----"
_SIGNED_MESSAGE = re.compile(
    _SIGNED_START + rb"\r?\n(?:[^\r\n]+\r?\n)*\r?\n(?P<text>.*?)"
    rb"\r?\n-----BEGIN PGP SIGNATURE-----",
    re.DOTALL,
)
"""A text with its signature below it: headers, an empty line, the text (RFC 9580
section 7, "Cleartext Signature Framework").
"""


def is_clear_signed(data: bytes) -> bool:
    """Return whether data is a text with its signature below it."""
    return data.lstrip().startswith(_SIGNED_START)


def without_signature(data: bytes) -> bytes:
    """Return the text of a signed message; other data as it is.

    The signature is not verified: only Spack knows which keys its user trusts.
    """
    signed = _SIGNED_MESSAGE.match(data.lstrip())
    if signed is None:
        return data
    # A line of the text that begins with a dash has "- " before it (RFC 9580 section
    # 7.1).
    return re.sub(rb"^- ", b"", signed["text"], flags=re.MULTILINE)


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 lowercase hexadecimal digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of compressed data."""

_STEP = 1024
"""Compressed bytes that are decompressed at once: at most 1 MB with gzip, 32 MB with
zstd.
"""


def decompressed(data: bytes, max_size: int) -> bytes:
    """Return decompressed bytes; data that is not compressed is unchanged.

    Args:
        data: bytes that may be compressed by gzip or zstd.
        max_size: the maximum number of bytes that are returned.

    Raises:
        IndexFault: the data is damaged, or there are more bytes.
    """
    decompressor: Any
    if data.startswith(GZIP):
        # 16 stands for the headers of gzip.
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    elif data.startswith(ZSTD):
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    else:
        return data
    # Indexes consist mostly of hashes, which never compress to a hundredth. So a file
    # that does is an attack on the memory.
    max_size = min(max_size, 2**26 + 100 * len(data))
    content = bytearray()
    with decoding("compression", ", expected a whole file"):
        for start in range(0, len(data), _STEP):
            content += decompressor.decompress(data[start : start + _STEP])
            if len(content) > max_size:
                message = f"has more than {max_size:,} bytes when it is not compressed"
                raise IndexFault(f"{message}, expected less")
    if not decompressor.eof:
        raise IndexFault("broken compression: it is cut, expected a whole file")
    return bytes(content)
