"""The nodes of every specfile version as one record, and the texts around them taken off.

Specfile 1 keys a node by its name and its dependencies by theirs; later ones are lists (Spack
0.17 `spec.py`, `SpecfileV2`). A clear-signed file is read without its signature, which is not
verified: that takes the keys of a mirror, and Spack itself asks for them when it installs.
"""

from __future__ import annotations

import re

import msgspec

from spack_cache_db.sources.indexes.faults import IndexFault, name
from spack_cache_db.sources.indexes.records import Dependency, NamedNode, Node

_NODE = msgspec.json.Decoder(Node)
_NAMED_NODE = msgspec.json.Decoder(dict[str, NamedNode])

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


def read_node(text: bytes | msgspec.Raw, *, is_named: bool) -> Node:
    """Return a node; `is_named` in specfile 1.

    Raises:
        msgspec.ValidationError: it is no node, or has a key that is not known.
        msgspec.DecodeError: it is no JSON.
    """
    if not is_named:
        return _NODE.decode(text)
    named = _NAMED_NODE.decode(text)
    if len(named) != 1:
        raise msgspec.ValidationError(f"Expected one name, got {len(named)}")
    ((own_name, node),) = named.items()
    return Node(
        name=own_name,
        version=node.version,
        arch=node.arch,
        namespace=node.namespace,
        parameters=node.parameters,
        hash=node.hash,
        compiler=node.compiler,
        patches=node.patches,
        full_hash=node.full_hash,
        build_hash=node.build_hash,
        dependencies=tuple(
            Dependency(name=to, hash=edge.hash, type=edge.type)
            for to, edge in node.dependencies.items()
        ),
        external=node.external,
    )
