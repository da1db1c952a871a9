"""Reads the files of Spack's mirrors: addresses, manifests, signatures, compressed data.

Manifests and blobs are those of layout 3 (Spack 1.0 `url_buildcache.py`). This module works on
bytes, without a disk or a network.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple

import msgspec
import zstandard
from msgspec import Meta, Struct, structs

from spack_cache_db.errors import LineFault
from spack_cache_db.sources import BROKEN, SIZES_FILE, message_of
from spack_cache_db.spack.nodes import require_known


class IndexFault(LineFault):
    """The reason why a file cannot be read; the message has what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


_CLEAR_SIGNED = re.compile(
    rb"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n(.*?)"
    rb"\r?\n-----BEGIN PGP SIGNATURE-----",
    re.DOTALL,
)
"""RFC 9580 section 7, "Cleartext Signature Framework": armor headers, an empty line, the text."""


def without_signature(data: bytes) -> bytes:
    """Return the text of a clear-signed message; other data as it is."""
    signed = _CLEAR_SIGNED.match(data.lstrip())
    # A line of the text that begins with a dash has "- " before it (RFC 9580 section 7.1).
    return data if signed is None else re.sub(rb"^- ", b"", signed[1], flags=re.MULTILINE)


class Address(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The URL of a mirror, and its filters of binaries as in Spack's `mirrors.yaml`."""

    url: str
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


_ADDRESS = msgspec.json.Decoder(Address)

MAX_ADDRESS = 2**16
"""Bytes of the file with the address of a mirror."""


def read_address(data: bytes) -> Address:
    """Return the address of a mirror from the bytes of its file; `IndexFault` if it has none."""
    try:
        address = _ADDRESS.decode(data)
    except BROKEN as error:
        message = f'broken address of a mirror: {message_of(error)}, expected {{"url": …}}'
        raise IndexFault(message) from None
    url = address.url
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is not a URL, expected one such as https://…")
    return address


def write_address(address: Address) -> bytes:
    """Return the content of the file with the address of a mirror."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size that SQLite can store."""

_SIZES = msgspec.json.Decoder(dict[str, Bytes])


def read_sizes(data: bytes) -> dict[str, int]:
    """Return the size of each binary by its hash; `IndexFault` if it is another file."""
    try:
        return _SIZES.decode(data)
    except BROKEN as error:
        raise IndexFault(f"broken {SIZES_FILE}: {message_of(error)}; remove it") from None


MANIFESTS = "v3/manifests/index"
"""The folder of a mirror of layout 3 with the manifests of its indexes."""

LAYOUT_2_INDEX = "build_cache/index.json"

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""Start of the media type of an index, a spec file and a binary."""

MAX_MANIFEST = 2**20
"""Bytes of a manifest; known manifests have a few hundred."""


class Blob(
    Struct,
    frozen=True,
    rename={
        "length": "contentLength",
        "media_type": "mediaType",
        "checksum_algorithm": "checksumAlgorithm",
    },
):
    """One blob: its length in bytes, its kind, and the checksum that is its name."""

    length: Bytes
    media_type: str
    compression: str
    checksum_algorithm: str
    checksum: str

    @property
    def path(self) -> PurePosixPath:
        """The path of the blob below the mirror."""
        return PurePosixPath("blobs", self.checksum_algorithm, self.checksum[:2], self.checksum)

    def require(self, data: bytes) -> None:
        """Raise `IndexFault` unless these are the blob's bytes."""
        if len(data) != self.length:
            raise IndexFault(
                f"has {len(data):,} bytes, expected {self.length:,} as in its manifest"
            )
        checksum = hashlib.new(self.checksum_algorithm, data).hexdigest()
        if checksum != self.checksum:
            raise IndexFault(
                f"has the checksum {checksum}, expected {self.checksum} as in its manifest"
            )


class Manifest(NamedTuple):
    """A manifest: its blobs, and its unknown keys."""

    blobs: tuple[Blob, ...]
    unknown: frozenset[str]

    def blob(self, media_type: str) -> Blob | None:
        """Return the first blob whose media type starts with a text."""
        return next((blob for blob in self.blobs if blob.media_type.startswith(media_type)), None)


_BLOB = {each.encode_name for each in structs.fields(Blob)}


def read_manifest(data: bytes) -> Manifest:
    """Return a manifest; `IndexFault` if it is not a manifest of layout 3."""
    unknown: set[str] = set()
    try:
        content = msgspec.json.decode(without_signature(data))
        require_known(content, {"version", "data"}, "", unknown)
        if (version := content.get("version")) != 3:
            raise IndexFault(f"is of layout {version!r:.20}, expected 3")
        blobs = msgspec.convert(content.get("data"), tuple[Blob, ...])
        for blob in content["data"]:
            require_known(blob, _BLOB, "data[]", unknown)
    except BROKEN as error:
        raise IndexFault(
            f"broken manifest: {message_of(error)}, expected Spack's layout 3"
        ) from None
    for blob in blobs:
        if blob.checksum_algorithm != "sha256" or not is_sum(blob.checksum):
            raise IndexFault(
                "names a checksum that is not a sha256, expected 64 hexadecimal digits"
            )
    return Manifest(blobs, frozenset(unknown))


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 lowercase hexadecimal digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STEP = 1024
"""Bytes that are decompressed at once: at most 1 MB with gzip, 32 MB with zstd."""
_ZSTD_WINDOW = 2**27


def decompressed(data: bytes, max_size: int) -> bytes:
    """Return decompressed bytes, at most `max_size`; data that is not compressed is unchanged.

    Raises:
        IndexFault: the data is broken, cut, or too large.
    """
    decompressor: Any
    if data[:2] == _GZIP:
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    elif data[:4] == _ZSTD:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    else:
        return data
    # Indexes consist mostly of hashes, which never compress to a hundredth.
    max_size = min(max_size, 2**26 + 100 * len(data))
    content = bytearray()
    try:
        for start in range(0, len(data), _STEP):
            content += decompressor.decompress(data[start : start + _STEP])
            if len(content) > max_size:
                message = f"has more than {max_size:,} bytes when it is not compressed"
                raise IndexFault(f"{message}, expected less")
    except (zlib.error, zstandard.ZstdError) as error:
        raise IndexFault(
            f"broken compression: {message_of(error)}, expected a whole file"
        ) from None
    if not decompressor.eof:
        raise IndexFault("broken compression: it is cut, expected a whole file")
    return bytes(content)
