"""Reads an index or spec files into records by hash.

An index is Spack's database JSON of versions 5 to 8. Its records are decoded one by one, so that an
index of 200 MB takes little more memory than its bytes. A mirror without an index has a spec file
for each binary: JSON since Spack 0.17, YAML before; clear-signed or not, compressed by gzip in
layout 3 (Spack `binary_distribution.py` and `url_buildcache.py`). Its first node is the binary, the
others are its dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import LineFault
from spack_cache_db.sources import BROKEN, Place, message_of, printable_name, require_text
from spack_cache_db.sources.columns import IndexFacts, Install
from spack_cache_db.sources.indexes import IndexFault, decompressed, without_signature
from spack_cache_db.spack.nodes import Edge, Node, read_node, require_hash, require_known

VERSIONS = ("5", "6", "7", "8")
"""The database versions of Spack 0.13 to 1.1 that are read."""

NODE_LIMIT = 10_000
"""Nodes of a spec file; the largest known have a few hundred."""

_RECORD = {
    "spec", "ref_count", "in_buildcache", "path", "installed", "explicit", "installation_time",
    "deprecated_for", "origin",
}  # fmt: skip
_SPEC_FILE = {
    "spec", "binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash",
}  # fmt: skip

A_LOCKFILE = (
    "is a spack.lock, which lists the specs of an environment, expected an index; to see which of "
    "them have binaries, use 'spack-cache-db cover spack.lock FILE'"
)

_YAML = YamlBounds(size=2**24, parts=500_000)
"""Limits of YAML; it has no aliases, because Spack writes none and they can expand without end."""


class Database(Struct, frozen=True, forbid_unknown_fields=True):
    """The object under `database`; `installs` has a record for each hash."""

    version: str
    installs: dict[str, Raw]


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an index."""

    database: Database


_INDEX = msgspec.json.Decoder(Index)


class Entry(NamedTuple):
    """One record of an index.

    Attributes:
        node: the spec.
        is_binary: whether the mirror has a binary of it, or Spack installed it.
        install: its prefix and time, in the index of an installation.
        unknown: its unknown keys, such as `spec.dependencies[].odd`.
    """

    node: Node
    is_binary: bool
    install: Install | None = None
    unknown: frozenset[str] = frozenset()


def read_entry(record: Any) -> Entry:
    """Return a record from its decoded JSON; `ValueError` if it is not one of Spack's."""
    unknown: set[str] = set()
    require_known(record, _RECORD, "", unknown)
    node = read_node(record.get("spec"), unknown)
    for key in ("in_buildcache", "installed", "explicit"):
        if not isinstance(record.get(key), bool | None):
            raise ValueError(f"has {key} {record[key]!r:.60}, expected true or false")
    in_buildcache, installed = record.get("in_buildcache"), record.get("installed")
    # Only some versions of indexes have `in_buildcache`.
    is_binary = node.external is None and installed is not False
    if in_buildcache is not None:
        is_binary = in_buildcache
    return Entry(node, is_binary, _install(record) if installed else None, frozenset(unknown))


def _install(record: Mapping[str, Any]) -> Install:
    prefix = record.get("path")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    # Old databases write "None" for an external without a path (Spack `database.py`).
    prefix = None if prefix == "None" else prefix
    return Install(prefix, record.get("explicit"), _in_utc(record.get("installation_time")))


def _in_utc(seconds: float | None) -> str | None:
    """Return a time in SQLite's format; None if it is out of range."""
    try:
        when = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return None if when is None else str(when)[:19]


class Installs(dict[str, Raw]):
    """The records of one index by hash; `entry` decodes one record."""

    def __init__(self, data: bytes) -> None:
        """Decode an index without its records; `IndexFault` if it cannot be read."""
        try:
            database = _INDEX.decode(data).database
        except BROKEN as error:
            raise IndexFault(f"broken index: {message_of(error)}, expected Spack's index") from None
        if database.version not in VERSIONS:
            versions = ", ".join(VERSIONS)
            raise IndexFault(f"database version {database.version}, expected one of {versions}")
        super().__init__(database.installs)
        self._version = database.version

    def facts(self, stack: str, url: str | None, whole: str, place: Place) -> IndexFacts:
        """Return the facts of the index as a document."""
        is_named = self.is_installed and place.release is not None
        return IndexFacts(stack, self._version, url, whole, 0, self.is_installed, is_named)

    @cached_property
    def is_installed(self) -> bool:
        """Whether this is the index of an installation.

        Its records have `path` instead of `in_buildcache` (Spack `database.py`, `InstallRecord`).
        """
        for text in self.values():
            try:
                record = msgspec.json.decode(text)
            except BROKEN:
                continue  # Reading the record reports it.
            if isinstance(record, dict):
                if "in_buildcache" in record:
                    return False
                if "installed" in record and isinstance(record.get("path"), str):
                    return True
        return False

    def entry(self, dag_hash: str) -> Entry:
        """Return a record.

        Raises:
            IndexFault: it cannot be read; the message starts with the hash.
            KeyError: there is no such record.
        """
        try:
            entry = read_entry(msgspec.json.decode(self[dag_hash]))
            require_hash(dag_hash)
            if entry.node.hash != dag_hash:
                message = f"its spec has the hash {printable_name(entry.node.hash)}"
                raise ValueError(f"{message}, expected that of the record")
        except BROKEN as error:
            raise IndexFault(f"{printable_name(dag_hash)}: {message_of(error)}") from None
        return entry


class SpecFile:
    """The version and the nodes of a spec file; the node of the binary comes first."""

    def __init__(self, data: bytes, max_size: int) -> None:
        """Read a spec file in any of its forms; `IndexFault` if it cannot be read.

        Args:
            data: the bytes of the file.
            max_size: most bytes of a compressed file after decompression.
        """
        text = without_signature(decompressed(data, max_size))
        try:
            require_text(text)
            is_json = text.lstrip()[:1] == b"{"
            file = msgspec.json.decode(text) if is_json else load(text.decode(), _YAML)
            self.entries = self._entries(file)
        except LineFault as fault:
            where = f"line {fault.line}: " if fault.line else ""
            message = f"broken spec file: {where}{fault.message}, expected JSON or YAML"
            raise IndexFault(message) from None
        except BROKEN as error:
            message = f"broken spec file: {message_of(error)}, expected one of Spack's"
            raise IndexFault(message) from None

    def _entries(self, file: Any) -> list[Entry]:
        if isinstance(file, dict) and "concrete_specs" in file:
            raise IndexFault(A_LOCKFILE)
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
        self.version = version
        if not 0 < len(nodes) <= NODE_LIMIT:
            raise ValueError(f"has {len(nodes):,} nodes, expected 1 to {NODE_LIMIT:,}")
        first, *dependencies = (read_entry({"spec": node}) for node in nodes)
        first = first._replace(is_binary=True, unknown=first.unknown | unknown)
        entries = [first, *(entry._replace(is_binary=False) for entry in dependencies)]
        # Specfile 1 names the ends of edges by `build_hash` if a node has it (Spack 0.16 `spec.py`,
        # `node_dict_with_hashes`).
        hashes = {entry.node.build_hash or entry.node.hash: entry.node.hash for entry in entries}
        for entry in entries:
            require_hash(entry.node.hash)
        return [entry._replace(node=_with_edges(entry.node, hashes)) for entry in entries]


def _with_edges(node: Node, hashes: Mapping[str, str]) -> Node:
    """Return a node with the `hash` of each dependency in its edges."""
    edges = (Edge(edge.name, hashes.get(edge.hash, edge.hash), edge.use) for edge in node.edges)
    return node._replace(edges=tuple(edges))


class SpecFileRecords(dict[str, Entry]):
    """The nodes of spec files as records; the file of a binary has priority over other files."""

    def __init__(self, files: Iterable[SpecFile]) -> None:
        super().__init__()
        for file in files:
            for at, entry in enumerate(file.entries):
                if at == 0 or entry.node.hash not in self:
                    self[entry.node.hash] = entry

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        return self[dag_hash]


IndexRecords = Installs | SpecFileRecords
"""The records of an index, by hash."""
