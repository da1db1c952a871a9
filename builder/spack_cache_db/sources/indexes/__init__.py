"""Spack's indexes, spec files and manifests of mirrors, as frozen records.

Keys are those of Spack's `database.py` and `spec.py` from 0.13 (database 5) to 1.1 (database 8),
all versions of a node as one. Texts that many records repeat (architecture, parameters) stay
undecoded. A key that is not declared here is refused by the decoder. Specfile 1 keys a node by its
name and its dependencies by theirs; later ones are lists (Spack 0.17 `spec.py`, `SpecfileV2`).
Manifests and blobs are those of layout 3 (Spack 1.0 `url_buildcache.py`). This module knows neither
a disk nor a network.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from functools import cache
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
import zstandard
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from spack_cache_db.sources.strictness import BROKEN, named, read_strictly, require_once, said
from spack_cache_db.spack.lexer import is_hash


class IndexFault(Exception):
    """Something that makes a file unreadable; its text says what, and what was expected."""


def read_members(text: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, undecoded.

    Raises:
        msgspec.DecodeError: it is none.
        ValueError: a key stands twice.
    """
    found = {key: bytes(value) for key, value in _MEMBERS.decode(text).items()}
    if text.count(b'"') != sum(2 + value.count(b'"') for value in found.values()):
        read_strictly(text)
    return found


class Database(Struct, frozen=True, forbid_unknown_fields=True):
    """The object under `database`; `installs` has a record for each hash."""

    version: str
    installs: Raw


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of an index."""

    database: Database


class EdgeParameters(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """How a dependency is used, since specfile 4."""

    deptypes: tuple[str, ...]
    virtuals: tuple[str, ...] = ()
    direct: bool | UnsetType = UNSET


class NodeDependency(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One edge of the graph: `type` up to specfile 3, since then `EdgeParameters`, undecoded."""

    name: str
    hash: str
    type: tuple[str, ...] | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET


class NamedNodeDependency(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One edge in specfile 1, where dependencies are keyed by name."""

    hash: str
    type: tuple[str, ...]


class Compiler(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The one compiler that a node names, up to specfile 4."""

    name: str
    version: str


class BuildSpec(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The spec from which a spliced one was built."""

    name: str
    hash: str


class Annotations(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What specfile 5 keeps of an older node: its version, and its compiler (`gcc@=12.2.0`)."""

    original_specfile_version: int
    compiler: str | UnsetType = UNSET


class SpecNode(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """One node of the graph, in any specfile version but the first (see `NamedSpecNode`).

    The fields stand in the order of Spack's own: what is encoded again has mostly the same bytes.
    """

    name: str
    version: str
    arch: Raw
    compiler: Compiler | UnsetType = UNSET
    namespace: str
    parameters: Raw
    external: Raw | UnsetType = UNSET
    patches: tuple[str, ...] | UnsetType = UNSET
    package_hash: str | UnsetType = UNSET
    full_hash: str | UnsetType = UNSET
    build_hash: str | UnsetType = UNSET
    dependencies: tuple[NodeDependency, ...] | UnsetType = UNSET
    build_spec: BuildSpec | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    hash: str

    @property
    def edges(self) -> tuple[NodeDependency, ...]:
        """What the node depends on."""
        return () if self.dependencies is UNSET else self.dependencies


class NamedSpecNode(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One node in specfile 1, where a node is keyed by its name."""

    version: str
    arch: Raw
    namespace: str
    parameters: Raw
    hash: str
    compiler: Compiler | UnsetType = UNSET
    patches: tuple[str, ...] | UnsetType = UNSET
    package_hash: str | UnsetType = UNSET
    full_hash: str | UnsetType = UNSET
    build_hash: str | UnsetType = UNSET
    dependencies: dict[str, NamedNodeDependency] | UnsetType = UNSET
    external: Raw | UnsetType = UNSET


class Record(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What an index says of one spec: `in_buildcache` in caches, the rest in installations."""

    spec: Raw
    ref_count: Annotated[int, Meta(ge=0, lt=2**20)] | UnsetType = UNSET
    in_buildcache: bool | UnsetType = UNSET
    path: str | UnsetType | None = UNSET
    installed: bool | UnsetType = UNSET
    explicit: bool | UnsetType = UNSET
    installation_time: int | float | UnsetType | None = UNSET
    deprecated_for: str | UnsetType | None = UNSET
    origin: str | UnsetType | None = UNSET


class TargetDescription(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A CPU target that is no family: its name, and what archspec knew of it."""

    name: str
    vendor: str
    features: tuple[str, ...]
    generation: int
    parents: tuple[str, ...]
    cpupart: str | UnsetType = UNSET


class Arch(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Platform, operating system and CPU target of a node."""

    platform: str
    platform_os: str
    target: str | TargetDescription


_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_NODE = msgspec.json.Decoder(SpecNode)
_NAMED_NODE = msgspec.json.Decoder(dict[str, NamedSpecNode])

_CLEAR_SIGNED = re.compile(
    rb"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n(.*?)"
    rb"\r?\n-----BEGIN PGP SIGNATURE-----",
    re.DOTALL,
)
"""RFC 9580 section 7, "Cleartext Signature Framework": armor headers, an empty line, the text."""


def require_hash(text: str) -> None:
    """Raise `IndexFault` unless a text is a hash of Spack's: 20 bytes in base32."""
    if not is_hash(text):
        raise IndexFault(f"{named(text)}: is no hash, expected 32 characters of a-z and 2-7")


def without_signature(data: bytes) -> bytes:
    """Return the text of a clear-signed message; other data as it is."""
    signed = _CLEAR_SIGNED.match(data.lstrip())
    # A line of the text that begins with a dash has "- " before it (RFC 9580 section 7.1).
    return data if signed is None else re.sub(rb"^- ", b"", signed[1], flags=re.MULTILINE)


def read_node(text: bytes, *, is_named: bool) -> SpecNode:
    """Return a node; `is_named` in specfile 1.

    Raises:
        msgspec.DecodeError: it is no node, or has a key that is not known.
        ValueError: a key stands twice.
    """
    if not is_named:
        node = _NODE.decode(text)
        require_once(text, node)
        return node
    nodes = _NAMED_NODE.decode(text)
    require_once(text, nodes)
    if len(nodes) != 1:
        raise msgspec.ValidationError(f"Expected one name, got {len(nodes)}")
    ((own_name, only),) = nodes.items()
    values = structs.asdict(only)
    edges = {} if only.dependencies is UNSET else only.dependencies
    values["dependencies"] = tuple(
        NodeDependency(name=to, hash=edge.hash, type=edge.type) for to, edge in edges.items()
    )
    return SpecNode(name=own_name, **values)


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
        read_strictly(data)
    except BROKEN as error:
        message = f'broken address of a mirror: {said(error)}, expected {{"url": …}}'
        raise IndexFault(message) from None
    url = address.url
    if "://" not in url or not url.isprintable() or " " in url:
        raise IndexFault("the address of a mirror is no URL, expected one such as https://…")
    return address


def write_address(address: Address) -> bytes:
    """Return the bytes of the file that says where a mirror is."""
    return msgspec.json.format(msgspec.json.encode(address), indent=2) + b"\n"


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
    if manifest.version != 3:
        raise IndexFault(f"is of layout {manifest.version}, expected 3")
    for blob in manifest.data:
        if blob.checksum_algorithm != "sha256" or not is_sum(blob.checksum):
            raise IndexFault("names a checksum that is no sha256, expected 64 hexadecimal digits")
    return manifest


def unknown_manifest_keys(data: bytes) -> set[str]:
    """Return the keys that are not known, by their place, as `data[].annotations`.

    Args:
        data: the bytes of a manifest that `read_manifest` has read.
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
