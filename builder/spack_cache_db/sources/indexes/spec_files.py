"""A spec file's bytes → its nodes: what lies beside each binary of a mirror that has no index.

JSON since Spack 0.17, YAML before; clear-signed or not, compressed by gzip in the blobs of layout
3 (Spack `binary_distribution.py` and `url_buildcache.py`). The first node is the binary's own, the
others are what it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import LineFault
from spack_cache_db.sources.indexes.installs import (
    Entry,
    UnknownKey,
    read_entry,
    read_tolerantly,
)
from spack_cache_db.sources.indexes.layouts import decompressed
from spack_cache_db.sources.indexes.spack_json import (
    IndexFault,
    NodeDependency,
    read_members,
    require_hash,
    without_signature,
)
from spack_cache_db.sources.strictness import BROKEN, read_strictly, require_text, said

NODE_LIMIT = 10_000
"""Nodes of the largest spec file that is read; the largest known have a few hundred."""

KNOWN = ("binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash")
"""The keys of a spec file beside `spec`."""

A_LOCKFILE = (
    "a spack.lock says which specs an environment has, and not which have binaries; to see which"
    " do, use 'spack-cache-db cover spack.lock FILE'"
)

_YAML = YamlBounds(size=2**24, parts=500_000)
"""YAML without aliases, which Spack writes none of and which can grow without end."""


class _Meta(Struct, frozen=True, forbid_unknown_fields=True):
    version: int


class _Graph(Struct, frozen=True, forbid_unknown_fields=True, rename={"meta": "_meta"}):
    nodes: tuple[Raw, ...]
    meta: _Meta


_GRAPH = msgspec.json.Decoder(_Graph)
_LIST = msgspec.json.Decoder(tuple[Raw, ...])


class SpecFile:
    """What a spec file holds.

    `version` is that of the specfile, `entries` are its nodes, the binary's own first, and `rest`
    the keys beside them as values: the checksum of the binary, and more.
    """

    def __init__(self, data: bytes, max_size: int) -> None:
        """Read a spec file in any of its forms; `IndexFault` if it cannot be read.

        Args:
            data: the bytes of the file.
            max_size: bytes that a compressed one may have when it is not.
        """
        text = without_signature(decompressed(data, max_size))
        try:
            require_text(text)
            self._read(text if text.lstrip()[:1] == b"{" else _json_of_yaml(text))
            self.entries = self._entries()
        except LineFault as fault:
            where = f"line {fault.line}: " if fault.line else ""
            words = f"broken spec file: {where}{fault.message}, expected JSON or YAML"
            raise IndexFault(words) from None
        except BROKEN as error:
            words = f"broken spec file: {said(error)}, expected one of Spack's"
            raise IndexFault(words) from None
        for entry in self.entries:
            require_hash(entry.node.hash)

    def tolerant_entry(self, at: int) -> Entry:
        """Return a node that has keys which are not known (see `read_tolerantly`)."""
        return self._complete(at, read_tolerantly(self._texts[at], is_named=self.version == 1))

    def said(self, at: int) -> dict[str, Any]:
        """Return a node as the record of an index, as plain values."""
        record: dict[str, Any] = read_strictly(self._texts[at])
        return record if at else record | self.rest

    def _read(self, text: bytes) -> None:
        file = read_members(text)
        if "concrete_specs" in file:
            raise IndexFault(A_LOCKFILE)
        spec = file.pop("spec", b"null")
        self.rest = {key: read_strictly(value) for key, value in file.items()}
        if spec[:1] == b"[":
            self.version, nodes = 1, _LIST.decode(spec)
        else:
            read_members(read_members(spec).get("_meta", b"{}"))
            graph = _GRAPH.decode(spec)
            self.version, nodes = graph.meta.version, graph.nodes
        if not 0 < len(nodes) <= NODE_LIMIT:
            raise IndexFault(f"has {len(nodes):,} nodes, expected 1 to {NODE_LIMIT:,}")
        own = [b'{"spec":%b,"in_buildcache":true}' % nodes[0]]
        self._texts = own + [b'{"spec":%b,"in_buildcache":false}' % each for each in nodes[1:]]

    def _entries(self) -> tuple[Entry, ...]:
        found = [read_entry(text, is_named=self.version == 1) for text in self._texts]
        # Specfile 1 names the ends of edges by `build_hash` where a node has one (Spack 0.16
        # `spec.py`, `node_dict_with_hashes`); the node itself keeps it, so that nothing is lost.
        nodes = [entry.node for entry in found]
        self._hashes = {
            node.build_hash: node.hash for node in nodes if node.build_hash is not UNSET
        }
        self._hashes |= {node.hash: node.hash for node in nodes}
        return tuple(self._complete(at, entry) for at, entry in enumerate(found))

    def _complete(self, at: int, entry: Entry) -> Entry:
        """Return an entry whose edges name their ends by `hash`, with what else the file says."""

        def edge(each: NodeDependency) -> NodeDependency:
            return msgspec.structs.replace(each, hash=self._hashes.get(each.hash, each.hash))

        edges = tuple(map(edge, entry.node.edges))
        entry = entry._replace(node=msgspec.structs.replace(entry.node, dependencies=edges))
        if at:
            return entry
        known = {key: value for key, value in self.rest.items() if key in KNOWN}
        unknown = (UnknownKey((key,), self.rest[key]) for key in self.rest if key not in KNOWN)
        return entry._replace(rest=known, unknown=(*entry.unknown, *unknown))


class SpecFileRecords:
    """The nodes of spec files as the records of an index; a binary's own file comes first."""

    def __init__(self, files: Iterable[SpecFile]) -> None:
        self._places: dict[str, tuple[SpecFile, int]] = {}
        for file in files:
            for at, entry in enumerate(file.entries):
                if at == 0 or entry.node.hash not in self._places:
                    self._places[entry.node.hash] = (file, at)

    def __contains__(self, dag_hash: object) -> bool:
        return dag_hash in self._places

    def __iter__(self) -> Iterator[str]:
        """Yield the hash of each node."""
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        file, at = self._places[dag_hash]
        return file.entries[at]

    def tolerant_entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec that has keys which are not known."""
        file, at = self._places[dag_hash]
        return file.tolerant_entry(at)

    def version(self, dag_hash: str) -> str:
        """Return the version of a spec; `KeyError` if it has no node."""
        return self.entry(dag_hash).node.version

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a node as its spec file says it, and that it is a binary, as plain values."""
        file, at = self._places[dag_hash]
        return file.said(at)


def _json_of_yaml(text: bytes) -> bytes:
    """Return the JSON of a YAML file.

    Raises:
        LineFault: it is no YAML, or too large.
        ValueError: it has what JSON has not.
    """
    try:
        return msgspec.json.encode(load(text.decode(), _YAML))
    except TypeError as error:
        raise ValueError(str(error)) from None
