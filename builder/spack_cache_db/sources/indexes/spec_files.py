"""A spec file's bytes → its nodes: what lies beside each binary of a mirror that has no index.

JSON since Spack 0.17, YAML before; clear-signed or not, compressed by gzip in the blobs of layout
3 (Spack `binary_distribution.py` and `url_buildcache.py`). The first node is the binary's own, the
others are what it depends on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import LineFault
from spack_cache_db.sources.indexes.layouts import decompressed
from spack_cache_db.sources.indexes.spack_json import (
    IndexFault,
    NodeDependency,
    SpecNode,
    read_node,
    require_hash,
    said,
    without_signature,
)

NODE_LIMIT = 10_000
"""Nodes of the largest spec file that is read; the largest known have a few hundred."""

_YAML = YamlBounds(size=2**24, parts=500_000)
"""YAML without aliases, which Spack writes none of and which can grow without end."""


class SpecFile(NamedTuple):
    """What a spec file holds: `nodes[0]` is the binary's own; the specfile's version; the rest.

    `texts` is the JSON of each node. `rest` is the file's keys beside its nodes, as values: the
    checksum of the binary, and more.
    """

    version: int
    nodes: tuple[SpecNode, ...]
    texts: tuple[Raw, ...]
    rest: dict[str, Any]


class _Meta(Struct, frozen=True, forbid_unknown_fields=True):
    version: int


class _Graph(Struct, frozen=True, forbid_unknown_fields=True, rename={"meta": "_meta"}):
    nodes: tuple[Raw, ...]
    meta: _Meta


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    spec: Raw
    binary_cache_checksum: dict[str, str] | UnsetType = UNSET
    buildcache_layout_version: int | UnsetType = UNSET
    buildinfo: dict[str, Any] | UnsetType = UNSET
    full_hash: str | UnsetType = UNSET


_FILE = msgspec.json.Decoder(_File)
_GRAPH = msgspec.json.Decoder(_Graph)
_LIST = msgspec.json.Decoder(tuple[Raw, ...])


def read_spec_file(data: bytes, max_size: int) -> SpecFile:
    """Return what a spec file holds.

    Args:
        data: the bytes of the file, in any of its forms.
        max_size: bytes that a compressed one may have when it is not.

    Raises:
        IndexFault: it is no spec file that can be read.
    """
    text = without_signature(bytes(decompressed(data, max_size)))
    try:
        file = _FILE.decode(text if text.lstrip()[:1] == b"{" else _json_of_yaml(text))
        is_named = bytes(file.spec).lstrip()[:1] == b"["
        if is_named:
            version, texts = 1, _LIST.decode(file.spec)
        else:
            graph = _GRAPH.decode(file.spec)
            version, texts = graph.meta.version, graph.nodes
        if not 0 < len(texts) <= NODE_LIMIT:
            raise IndexFault(f"has {len(texts):,} nodes, expected 1 to {NODE_LIMIT:,}")
        nodes = _by_hash(tuple(read_node(each, is_named=is_named) for each in texts))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise IndexFault(f"broken spec file: {said(error)}, expected one of Spack's") from None
    for node in nodes:
        require_hash(node.hash)
    rest = {
        key: value
        for key in _File.__struct_fields__
        if key != "spec" and (value := getattr(file, key)) is not UNSET
    }
    return SpecFile(version, nodes, texts, rest)


def _by_hash(nodes: tuple[SpecNode, ...]) -> tuple[SpecNode, ...]:
    """Return nodes whose edges name their ends by `hash`.

    Specfile 1 names them by `build_hash` where a node has one (Spack 0.16 `spec.py`,
    `node_dict_with_hashes`); the node itself keeps it, so that nothing is lost.
    """
    known = {node.hash for node in nodes}
    named = {node.build_hash: node.hash for node in nodes if node.build_hash is not UNSET}

    def edge(each: NodeDependency) -> NodeDependency:
        is_hash = each.hash in known or each.hash not in named
        return each if is_hash else msgspec.structs.replace(each, hash=named[each.hash])

    return tuple(
        msgspec.structs.replace(node, dependencies=tuple(map(edge, node.dependencies)))
        for node in nodes
    )


def _json_of_yaml(text: bytes) -> bytes:
    """Return the JSON of a YAML file."""
    try:
        return msgspec.json.encode(load(text.decode(), _YAML))
    except LineFault as fault:
        where = f"line {fault.line}: " if fault.line else ""
        raise IndexFault(
            f"broken spec file: {where}{fault.message}, expected JSON or YAML"
        ) from None
    except (TypeError, ValueError) as error:
        raise IndexFault(f"broken spec file: {said(error)}, expected JSON or YAML") from None
