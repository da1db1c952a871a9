"""Reads spec files, which Spack writes for each binary of a mirror.

    {"spec": {"_meta": {"version": 5}, "nodes": [{"name": "hdf5", ...}, ...]}}

The first node is the binary, the others are its dependencies. Spack before 0.17 wrote
YAML. A file may be signed or compressed. A mirror without an index is read from its
spec files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.sources.bounds import require_text
from spack_cache_db.sources.indexes.entries import Entry, read_entry
from spack_cache_db.sources.indexes.faults import IndexFault, decoding
from spack_cache_db.sources.indexes.manifests import decompressed, without_signature
from spack_cache_db.spack.nodes import require_hash, require_known

MAX_SPEC_FILE = 2**26
"""Bytes of a spec file; the largest known have a few hundred thousand."""

NODE_LIMIT = 10_000
"""Nodes of a spec file; the largest known have a few hundred."""

_FILE_KEYS = {
    "spec", "binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash",
}  # fmt: skip
"""The known keys of a spec file."""

_YAML = YamlBounds(size=2**24, parts=500_000)


class SpecFile(NamedTuple):
    """A spec file: its version, and its nodes; that of the binary comes first."""

    version: int
    entries: list[Entry]


def read_spec_file(data: bytes) -> SpecFile:
    """Return the content of a spec file.

    Raises:
        IndexFault: the bytes are not a spec file of Spack's.
    """
    text = without_signature(decompressed(data, MAX_SPEC_FILE))
    require_text(text)
    with decoding("spec file", ", expected one of Spack's"):
        if text.lstrip().startswith(b"{"):
            content = msgspec.json.decode(text)
        else:
            content = load(text.decode(), _YAML)
        return _spec_file(content)


def _spec_file(content: Any) -> SpecFile:
    if isinstance(content, dict) and "concrete_specs" in content:
        kind = "is a spack.lock, which lists the specs of an environment, expected an index"
        advice = "to see which of them have binaries, use 'spack-cache-db cover spack.lock FILE'"
        raise IndexFault(f"{kind}; {advice}")
    unknown: set[str] = set()
    file = require_known(content, _FILE_KEYS, "", unknown)

    # The nodes: a list in version 1, an object with its version since version 2.
    spec = file.get("spec")
    version: Any
    if isinstance(spec, list):
        version = 1
        nodes: Any = spec
    else:
        graph = require_known(spec, {"_meta", "nodes"}, "spec", unknown)
        meta = require_known(graph.get("_meta"), {"version"}, "spec._meta", unknown)
        version = meta.get("version")
        nodes = graph.get("nodes")
    if not isinstance(nodes, list) or not isinstance(version, int):
        raise ValueError("has no list of nodes with a version")
    if not 0 < len(nodes) <= NODE_LIMIT:
        raise ValueError(f"has {len(nodes):,} nodes, expected 1 to {NODE_LIMIT:,}")

    # Their records. A spec file has one binary, that of the first node.
    entries: list[Entry] = []
    for node in nodes:
        entry = read_entry({"spec": node}, version)
        is_first = not entries
        entries.append(entry._replace(is_binary=is_first))
    # The unknown keys of the file count as those of its binary.
    binary = entries[0]
    entries[0] = binary._replace(unknown=binary.unknown | unknown)
    return SpecFile(version, _with_own_hashes(entries))


def _with_own_hashes(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries whose edges name the hashes of nodes.

    A node of version 1 has two hashes, and edges name the one that is called
    `build_hash` (Spack 0.16 `spec.py`, `node_dict_with_hashes`).
    """
    own_hash_of = {}
    for entry in entries:
        node = entry.node
        own_hash_of[node.build_hash or node.hash] = node.hash
    renamed = []
    for entry in entries:
        require_hash(entry.node.hash)
        edges = []
        for edge in entry.node.edges:
            # A dependency that has no node here keeps its hash.
            dag_hash = own_hash_of.get(edge.hash, edge.hash)
            edges.append(edge._replace(hash=dag_hash))
        node = entry.node._replace(edges=tuple(edges))
        renamed.append(entry._replace(node=node))
    return renamed


class SpecFileRecords(dict[str, Entry]):
    """The nodes of spec files as the records of an index, by hash.

    It has the attributes and the method `entry` of `Installs`. A spec may be the binary
    of one file and a dependency in others. The file of the binary has priority, then
    the first of the others.

    Args:
        files: the nodes of each file, that of the binary first.
        form: the format of the index that they stand for.
    """

    is_installed = False
    unknown: frozenset[str] = frozenset()

    def __init__(self, files: Sequence[list[Entry]], form: str) -> None:
        super().__init__()
        self.format = form
        # Later entries replace earlier ones, so those with priority come last.
        for entries in reversed(files):
            for dependency in entries[1:]:
                self[dependency.node.hash] = dependency
        for entries in files:
            binary = entries[0]
            self[binary.node.hash] = binary

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]
