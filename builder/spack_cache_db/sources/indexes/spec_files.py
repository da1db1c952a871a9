"""Reads spec files, of JSON or YAML, signed or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.sources.bounds import require_text
from spack_cache_db.sources.indexes.entries import Entry, read_entry
from spack_cache_db.sources.indexes.faults import IndexFault, whole
from spack_cache_db.sources.indexes.manifests import decompressed, without_signature
from spack_cache_db.spack.nodes import require_hash, require_known

MAX_SPEC_FILE = 2**26
"""Bytes of a spec file; the largest known have a few hundred thousand."""

NODE_LIMIT = 10_000
"""Nodes of a spec file; the largest known have a few hundred."""
_SPEC_FILE = {
    "spec", "binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash",
}  # fmt: skip

_YAML = YamlBounds(size=2**24, parts=500_000)


def read_spec_file(data: bytes) -> tuple[int, list[Entry]]:
    """Return the version and the nodes of a spec file; the node of the binary comes
    first.
    """
    text = without_signature(decompressed(data, MAX_SPEC_FILE))
    require_text(text)
    with whole("spec file", ", expected one of Spack's"):
        is_json = text.lstrip().startswith(b"{")
        return _spec_file(
            msgspec.json.decode(text) if is_json else load(text.decode(), _YAML)
        )


def _spec_file(file: Any) -> tuple[int, list[Entry]]:
    if isinstance(file, dict) and "concrete_specs" in file:
        kind = "is a spack.lock, which lists the specs of an environment, expected an index"
        advice = "to see which of them have binaries, use 'spack-cache-db cover spack.lock FILE'"
        raise IndexFault(f"{kind}; {advice}")
    unknown: set[str] = set()
    spec = require_known(file, _SPEC_FILE, "", unknown).get("spec")
    version: Any = 1
    nodes = spec
    if not isinstance(spec, list):
        graph = require_known(spec, {"_meta", "nodes"}, "spec", unknown)
        meta = require_known(graph.get("_meta"), {"version"}, "spec._meta", unknown)
        version, nodes = meta.get("version"), graph.get("nodes")
    if not isinstance(nodes, list) or not isinstance(version, int):
        raise ValueError("has no list of nodes with a version")
    if not 0 < len(nodes) <= NODE_LIMIT:
        raise ValueError(f"has {len(nodes):,} nodes, expected 1 to {NODE_LIMIT:,}")
    first, *dependencies = (read_entry({"spec": node}, version) for node in nodes)
    first = first._replace(is_binary=True, unknown=first.unknown | unknown)
    entries = [first, *(entry._replace(is_binary=False) for entry in dependencies)]
    # Specfile 1 names the ends of edges by `build_hash` if a node has it (Spack 0.16
    # `spec.py`, `node_dict_with_hashes`).
    hashes = {
        entry.node.build_hash or entry.node.hash: entry.node.hash for entry in entries
    }
    for at, entry in enumerate(entries):
        require_hash(entry.node.hash)
        ends = (
            edge._replace(hash=hashes.get(edge.hash, edge.hash))
            for edge in entry.node.edges
        )
        entries[at] = entry._replace(node=entry.node._replace(edges=tuple(ends)))
    return version, entries


class SpecFileRecords(dict[str, Entry]):
    """The nodes of spec files as records; the file of a binary has priority over other
    files.
    """

    is_installed = False
    unknown: frozenset[str] = frozenset()

    def __init__(self, files: Sequence[list[Entry]], form: str) -> None:
        self.format = form
        dependencies = (entry for entries in reversed(files) for entry in entries[1:])
        entries = [*dependencies, *(entries[0] for entries in files)]
        super().__init__({entry.node.hash: entry for entry in entries})

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]
