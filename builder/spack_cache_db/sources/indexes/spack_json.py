"""The JSON of Spack's indexes and spec files as frozen records, all versions of a node as one.

Keys are those of Spack's `database.py` and `spec.py` from 0.13 (database 5) to 1.1 (database 8).
Texts that many records repeat (architecture, parameters) stay undecoded. A key that is not declared
here is refused by the decoder. Specfile 1 keys a node by its name and its dependencies by theirs;
later ones are lists (Spack 0.17 `spec.py`, `SpecfileV2`).
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from spack_cache_db.sources.strictness import name, read_strictly, require_once


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


_HASH = re.compile(r"[a-z2-7]{32}")


def is_hash(text: str) -> bool:
    """Whether a text is a hash of Spack's."""
    return _HASH.fullmatch(text) is not None


def require_hash(text: str) -> None:
    """Raise `IndexFault` unless a text is a hash of Spack's: 20 bytes in base32."""
    if not is_hash(text):
        raise IndexFault(f"{name(text)}: is no hash, expected 32 characters of a-z and 2-7")


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
    named = _NAMED_NODE.decode(text)
    require_once(text, named)
    if len(named) != 1:
        raise msgspec.ValidationError(f"Expected one name, got {len(named)}")
    ((own_name, said),) = named.items()
    edges = said.dependencies
    same = {
        field: getattr(said, field)
        for field in NamedSpecNode.__struct_fields__
        if field != "dependencies"
    }
    dependencies = () if edges is UNSET else edges.items()
    return SpecNode(
        name=own_name,
        dependencies=tuple(
            NodeDependency(name=to, hash=edge.hash, type=edge.type) for to, edge in dependencies
        ),
        **same,
    )
