"""Files of Spack's mirrors: addresses, manifests and blobs, signatures, compression.

Manifests and blobs are those of layout 3 (Spack 1.0 `url_buildcache.py`). This module knows neither
a disk nor a network.
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

from spack_cache_db.sources import SIZES_FILE
from spack_cache_db.sources.strictness import BROKEN, said
from spack_cache_db.spack.nodes import require_known


class IndexFault(Exception):
    """Something that makes a file unreadable; its text says what, and what was expected."""


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
    """The file that says where a mirror is, and of which specs it takes binaries.

    Both lists mean what they mean in Spack's `mirrors.yaml`.
    """

    url: str
    include_binary: tuple[str, ...] = ()
    exclude_binary: tuple[str, ...] = ()


_ADDRESS = msgspec.json.Decoder(Address)

MAX_ADDRESS = 2**16
"""Bytes of the file that says where a mirror is."""


def read_address(data: bytes) -> Address:
    """Return the address of a mirror from the bytes of its file; `IndexFault` if it has none."""
    try:
        address = _ADDRESS.decode(data)
    except BROKEN as error:
        message = f'broken address of a mirror: {said(error)}, expected {{"url": …}}'
        raise IndexFault(message) from None
    url = address.url
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is not a URL, expected one such as https://…")
    return address


def write_address(address: Address) -> bytes:
    """Return the bytes of the file that says where a mirror is."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size that SQLite can store."""

_SIZES = msgspec.json.Decoder(dict[str, Bytes])


def read_sizes(data: bytes) -> dict[str, int]:
    """Return the bytes of each binary by its hash; `IndexFault` if it is another file."""
    try:
        return _SIZES.decode(data)
    except BROKEN as error:
        raise IndexFault(f"broken {SIZES_FILE}: {said(error)}; remove it") from None


MANIFESTS = "v3/manifests/index"
"""Where a mirror of layout 3 has the manifests of its indexes."""

LAYOUT_2_INDEX = "build_cache/index.json"

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""How the media types begin of a blob that is an index, a spec file, a binary."""

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

    length: Bytes
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


class Manifest(NamedTuple):
    """A manifest: the blobs that belong together, and its keys that are not known."""

    blobs: tuple[Blob, ...]
    unknown: frozenset[str]

    def blob(self, media_type: str) -> Blob | None:
        """Return the first blob whose media type begins so."""
        return next((each for each in self.blobs if each.media_type.startswith(media_type)), None)


_BLOB = {each.encode_name for each in structs.fields(Blob)}


def read_manifest(data: bytes) -> Manifest:
    """Return a manifest; `IndexFault` if it is none, or of another layout."""
    unknown: set[str] = set()
    try:
        said_of_it = msgspec.json.decode(without_signature(data))
        require_known(said_of_it, {"version", "data"}, "", unknown)
        if (version := said_of_it.get("version")) != 3:
            raise IndexFault(f"is of layout {version!r:.20}, expected 3")
        blobs = msgspec.convert(said_of_it.get("data"), tuple[Blob, ...])
        for blob in said_of_it["data"]:
            require_known(blob, _BLOB, "data[]", unknown)
    except BROKEN as error:
        raise IndexFault(f"broken manifest: {said(error)}, expected Spack's layout 3") from None
    for blob in blobs:
        if blob.checksum_algorithm != "sha256" or not is_sum(blob.checksum):
            raise IndexFault(
                "names a checksum that is not a sha256, expected 64 hexadecimal digits"
            )
    return Manifest(blobs, frozenset(unknown))


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 hexadecimal digits, in small letters."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STEP = 1024
"""A kilobyte of gzip is at most a megabyte, one of zstd at most 32 of them."""
_ZSTD_WINDOW = 2**27


def decompressed(data: bytes, max_size: int) -> bytes:
    """Return the bytes under a compression, at most `max_size` of them; others as they are.

    Raises:
        IndexFault: they are broken, cut or too many.
    """
    decompressor: Any
    if data[:2] == _GZIP:
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    elif data[:4] == _ZSTD:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    else:
        return data
    # Hashes do not shrink to a hundredth.
    max_size = min(max_size, 2**26 + 100 * len(data))
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
