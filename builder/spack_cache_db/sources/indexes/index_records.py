"""The bytes of an index or of spec files → records by hash.

An index is Spack's database JSON of versions 5 to 8. The first pass leaves each record undecoded,
the second decodes them one by one, so that an index of two hundred megabytes takes little more
memory than its bytes. A spec file lies beside each binary of a mirror that has no index: JSON since
Spack 0.17, YAML before; clear-signed or not, compressed by gzip in the blobs of layout 3 (Spack
`binary_distribution.py` and `url_buildcache.py`). Its first node is the binary's own, the others
are what it depends on.
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
from spack_cache_db.sources import Place
from spack_cache_db.sources.columns import IndexFacts, Install
from spack_cache_db.sources.indexes import IndexFault, decompressed, without_signature
from spack_cache_db.sources.strictness import BROKEN, named, require_text, said
from spack_cache_db.spack.nodes import Edge, Node, read_node, require_hash, require_known

VERSIONS = ("5", "6", "7", "8")
"""The database versions of Spack 0.13 to 1.1 that are read."""

NODE_LIMIT = 10_000
"""Nodes of the largest spec file that is read; the largest known have a few hundred."""

_RECORD = {
    "spec", "ref_count", "in_buildcache", "path", "installed", "explicit", "installation_time",
    "deprecated_for", "origin",
}  # fmt: skip
_SPEC_FILE = {
    "spec", "binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash",
}  # fmt: skip

A_LOCKFILE = (
    "a spack.lock says which specs an environment has, and not which have binaries; to see which"
    " do, use 'spack-cache-db cover spack.lock FILE'"
)

_YAML = YamlBounds(size=2**24, parts=500_000)
"""YAML without aliases, which Spack writes none of and which can grow without end."""


class Database(Struct, frozen=True, forbid_unknown_fields=True):
    """The object under `database`; `installs` has a record for each hash."""

    version: str
    installs: dict[str, Raw]


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of an index."""

    database: Database


_INDEX = msgspec.json.Decoder(Index)


class Entry(NamedTuple):
    """One record of an index.

    Attributes:
        node: the spec.
        is_binary: whether the mirror has a binary of it, or Spack installed it.
        install: how it is installed, in the index of an installation.
        unknown: its keys that are not known, such as `spec.dependencies[].odd`.
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
    # Not all versions of indexes say whether there is a binary.
    is_binary = node.external is None and installed is not False
    if in_buildcache is not None:
        is_binary = in_buildcache
    return Entry(node, is_binary, _install(record) if installed else None, frozenset(unknown))


def _install(record: Mapping[str, Any]) -> Install:
    prefix = record.get("path")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    # Old databases say so of an external without a path (Spack `database.py`, `InstallRecord`).
    prefix = None if prefix == "None" else prefix
    return Install(prefix, record.get("explicit"), _in_utc(record.get("installation_time")))


def _in_utc(seconds: float | None) -> str | None:
    """Return a time as SQLite writes it; None for one that is not of our days."""
    try:
        when = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return None if when is None else str(when)[:19]


class Installs(dict[str, Raw]):
    """The records of one index by hash, each decoded when it is asked for, and not kept."""

    def __init__(self, data: bytes) -> None:
        """Read what an index says of itself; `IndexFault` if it is none that can be read."""
        try:
            database = _INDEX.decode(data).database
        except BROKEN as error:
            raise IndexFault(f"broken index: {said(error)}, expected Spack's index") from None
        if database.version not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise IndexFault(f"database version {database.version}, expected one of {known}")
        super().__init__(database.installs)
        self._version = database.version

    def facts(self, stack: str, url: str | None, whole: str, place: Place) -> IndexFacts:
        """Return what the index says as a document (see `IndexFacts`)."""
        is_named = self.is_installed and place.release is not None
        return IndexFacts(stack, self._version, url, whole, 0, self.is_installed, is_named)

    @cached_property
    def is_installed(self) -> bool:
        """Whether this is the index of an installed tree.

        Its records have a path, and do not say whether they are in a build cache (Spack
        `database.py`, `InstallRecord`).
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
            IndexFault: it cannot be read; the text begins with the hash.
            KeyError: there is none.
        """
        try:
            entry = read_entry(msgspec.json.decode(self[dag_hash]))
            require_hash(dag_hash)
            if entry.node.hash != dag_hash:
                words = f"its spec has the hash {named(entry.node.hash)}"
                raise ValueError(f"{words}, expected that of the record")
        except BROKEN as error:
            raise IndexFault(f"{named(dag_hash)}: {said(error)}") from None
        return entry


class SpecFile:
    """The nodes of a spec file: `version` is that of the specfile.

    `entries` has the node of the binary first, then those that it depends on.
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
            is_json = text.lstrip()[:1] == b"{"
            file = msgspec.json.decode(text) if is_json else load(text.decode(), _YAML)
            self.entries = self._entries(file)
        except LineFault as fault:
            where = f"line {fault.line}: " if fault.line else ""
            words = f"broken spec file: {where}{fault.message}, expected JSON or YAML"
            raise IndexFault(words) from None
        except BROKEN as error:
            words = f"broken spec file: {said(error)}, expected one of Spack's"
            raise IndexFault(words) from None

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
        first, *others = (read_entry({"spec": node}) for node in nodes)
        first = first._replace(is_binary=True, unknown=first.unknown | unknown)
        entries = [first, *(each._replace(is_binary=False) for each in others)]
        # Specfile 1 names the ends of edges by `build_hash` where a node has one (Spack 0.16
        # `spec.py`, `node_dict_with_hashes`).
        hashes = {each.node.build_hash or each.node.hash: each.node.hash for each in entries}
        for each in entries:
            require_hash(each.node.hash)
        return [each._replace(node=_with_edges(each.node, hashes)) for each in entries]


def _with_edges(node: Node, hashes: Mapping[str, str]) -> Node:
    """Return a node whose edges name their ends by `hash`."""
    edges = (Edge(each.name, hashes.get(each.hash, each.hash), each.use) for each in node.edges)
    return node._replace(edges=tuple(edges))


class SpecFileRecords(dict[str, Entry]):
    """The nodes of spec files as the records of an index; a binary's own file comes first."""

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
