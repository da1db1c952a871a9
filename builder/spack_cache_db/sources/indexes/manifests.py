"""The manifests of layout 3: which blobs belong to a spec or an index, how large, with what sum.

Spack 1.0 `url_buildcache.py`; a manifest may be clear-signed, blobs are not.
"""

from __future__ import annotations

import hashlib
from mmap import mmap
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from spack_cache_db.sources.indexes.faults import IndexFault, said
from spack_cache_db.sources.indexes.nodes import without_signature

INDEX = "application/vnd.spack.db."
SPEC = "application/vnd.spack.spec."
TARBALL = "application/vnd.spack.install."
"""How the media types begin of a blob that is an index, a spec file, a binary."""

VERSION = 3


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

    def require(self, data: bytes | mmap) -> None:
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
    try:
        manifest = _MANIFEST.decode(without_signature(data))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise IndexFault(f"broken manifest: {said(error)}, expected Spack's layout 3") from None
    if manifest.version != VERSION:
        raise IndexFault(f"is of layout {manifest.version}, expected {VERSION}")
    for blob in manifest.data:
        if blob.checksum_algorithm != "sha256" or not is_sum(blob.checksum):
            raise IndexFault("names a checksum that is no sha256, expected 64 hexadecimal digits")
    return manifest


def is_sum(text: str) -> bool:
    """Return whether a text is a sha256: 64 hexadecimal digits, in small letters."""
    return len(text) == 64 and not text.strip("0123456789abcdef")
