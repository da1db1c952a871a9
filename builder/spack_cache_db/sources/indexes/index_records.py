"""The bytes of an index or of spec files → records by hash.

An index is Spack's database JSON of versions 5 to 8. The first pass leaves each record undecoded,
the second decodes them one by one, so that an index of two hundred megabytes takes little more
memory than its bytes. A spec file lies beside each binary of a mirror that has no index: JSON since
Spack 0.17, YAML before; clear-signed or not, compressed by gzip in the blobs of layout 3 (Spack
`binary_distribution.py` and `url_buildcache.py`). Its first node is the binary's own, the others
are what it depends on. Keys that are not declared in this room are taken out of a record and
kept as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import LineFault
from spack_cache_db.sources.indexes import (
    Arch,
    EdgeParameters,
    Index,
    IndexFault,
    NamedSpecNode,
    NodeDependency,
    Record,
    SpecNode,
    decompressed,
    read_members,
    read_node,
    require_hash,
    without_signature,
)
from spack_cache_db.sources.strictness import (
    BROKEN,
    named,
    read_strictly,
    require_once,
    require_text,
    said,
)

NAMED_NODES = "5"
"""The database version whose nodes are of specfile 1 (Spack 0.13 to 0.16 `database.py`)."""

VERSIONS = (NAMED_NODES, "6", "7", "8")
"""The database versions of Spack 0.13 to 1.1 that are read."""


class _Whereabouts(Struct, frozen=True):
    """What tells the record of an installed tree from that of a mirror."""

    in_buildcache: Any = UNSET
    installed: Any = UNSET
    path: Any = UNSET


_INDEX = msgspec.json.Decoder(Index)
_WHEREABOUTS = msgspec.json.Decoder(_Whereabouts)
_INSTALLS = msgspec.json.Decoder(dict[str, Raw])
_RECORD = msgspec.json.Decoder(Record)
_RECORD_KEY = re.compile(rb'"([a-z2-7]{32})"\s*:\s*\{')

_AROUND = 50
"""Bytes around all records that cannot have a key twice: 46 without, at least 14 for each."""

_UNDECODED: dict[tuple[type[Struct], str], Any] = {
    (SpecNode, "arch"): Arch,
    (NamedSpecNode, "arch"): Arch,
    (NodeDependency, "parameters"): EdgeParameters,
}
"""What stands in the fields that a record leaves undecoded, where its keys are known."""

NODE_LIMIT = 10_000
"""Nodes of the largest spec file that is read; the largest known have a few hundred."""

_KNOWN = ("binary_cache_checksum", "buildcache_layout_version", "buildinfo", "full_hash")
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
_NODES = msgspec.json.Decoder(tuple[Raw, ...])


class UnknownKey(NamedTuple):
    """A key that is not known, by its place in a record, and its value."""

    path: tuple[str | int, ...]
    value: Any

    def place(self) -> str:
        """Return the place without numbers, such as `spec.dependencies[].odd`."""
        steps = ("[]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).lstrip(".")


class Entry(NamedTuple):
    """One record of an index, its node decoded; `unknown` has its keys that are not known.

    `rest` is what else is said of the binary, as values, where the record is a spec file.
    """

    record: Record
    node: SpecNode
    unknown: tuple[UnknownKey, ...] = ()
    rest: Mapping[str, Any] | None = None


def read_entry(text: bytes, *, is_named: bool) -> Entry:
    """Return a record from its JSON; `is_named` in specfile 1.

    Raises:
        BROKEN: it is none, or a key stands twice.
    """
    try:
        return _read_known(text, is_named=is_named)
    except BROKEN as error:
        try:
            return read_tolerantly(text, is_named=is_named)
        except BROKEN:
            raise error from None


def _read_known(text: bytes, *, is_named: bool) -> Entry:
    record = _RECORD.decode(text)
    require_once(text, record)
    return Entry(record, read_node(bytes(record.spec), is_named=is_named))


def read_tolerantly(text: bytes, *, is_named: bool) -> Entry:
    """Return a record that has keys which are not known (as `read_entry`).

    Raises:
        BROKEN: it cannot be read without them either, or has none.
    """
    value = read_strictly(text)
    unknown = tuple(take_out_unknown_keys(value, is_named=is_named))
    if not unknown:
        raise ValueError("has no key that is not known")
    return _read_known(msgspec.json.encode(value), is_named=is_named)._replace(unknown=unknown)


def take_out_unknown_keys(record: Any, *, is_named: bool) -> Iterator[UnknownKey]:
    """Take the keys out of a record, as values, that are not known, and yield each.

    Args:
        record: the values; their keys are those of this room, at every depth.
        is_named: whether its node is one of specfile 1.
    """
    yield from _taken(record, Record, ())
    if isinstance(record, dict):
        shape = dict[str, NamedSpecNode] if is_named else SpecNode
        yield from _taken(record.get("spec"), shape, ("spec",))


def _taken(value: Any, shape: Any, path: tuple[str | int, ...]) -> Iterator[UnknownKey]:
    for member in get_args(shape) if get_origin(shape) in (Union, UnionType) else (shape,):
        if isinstance(value, dict) and isinstance(member, type) and issubclass(member, Struct):
            known = _fields(member)
            for key in [*value]:
                if key in known:
                    below = _UNDECODED.get((member, key), known[key])
                    yield from _taken(value[key], below, (*path, key))
                else:
                    yield UnknownKey((*path, key), value.pop(key))
        elif isinstance(value, dict) and get_origin(member) is dict:
            for key, each in value.items():
                yield from _taken(each, get_args(member)[1], (*path, key))
        elif isinstance(value, list) and get_origin(member) is tuple:
            for at, each in enumerate(value):
                yield from _taken(each, get_args(member)[0], (*path, at))


@cache
def _fields(record: type[Struct]) -> dict[str, Any]:
    return get_type_hints(record)


class Installs(dict[str, Raw]):
    """The records of one index by hash, each decoded when it is asked for, and not kept."""

    def __init__(self, data: bytes) -> None:
        """Read what an index says of itself; `IndexFault` if it is none that can be read."""
        try:
            database = _INDEX.decode(data).database
            if database.version not in VERSIONS:
                known = ", ".join(VERSIONS)
                raise IndexFault(f"database version {database.version}, expected one of {known}")
            super().__init__(_INSTALLS.decode(database.installs))
        except BROKEN as error:
            raise IndexFault(f"broken index: {said(error)}, expected Spack's index") from None
        self.database_version = database.version
        self._is_named = database.version == NAMED_NODES
        self._require_distinct(data, database.installs)

    @property
    def is_installed(self) -> bool:
        """Whether this is the index of an installed tree.

        Its records have a path, and do not say whether they are in a build cache (Spack
        `database.py`, `InstallRecord`).
        """
        for text in self.values():
            try:
                said = _WHEREABOUTS.decode(text)
            except BROKEN:
                continue  # Whoever reads the record says what is wrong.
            if said.in_buildcache is not UNSET:
                return False
            if said.installed is not UNSET and isinstance(said.path, str):
                return True
        return False

    def entry(self, dag_hash: str) -> Entry:
        """Return a record.

        Raises:
            IndexFault: it cannot be read; the text begins with the hash.
            KeyError: there is none.
        """
        try:
            entry = read_entry(bytes(self[dag_hash]), is_named=self._is_named)
        except BROKEN as error:
            raise IndexFault(f"{named(dag_hash)}: {said(error)}") from None
        require_hash(dag_hash)
        if entry.node.hash != dag_hash:
            words = f"its spec has the hash {named(entry.node.hash)}"
            raise IndexFault(f"{dag_hash}: {words}, expected that of the record")
        return entry

    def tolerant_entry(self, dag_hash: str) -> Entry:
        """Return a record that has keys which are not known (see `read_tolerantly`)."""
        return read_tolerantly(bytes(self[dag_hash]), is_named=self._is_named)

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a record as the index says it, as plain values."""
        said: dict[str, Any] = read_strictly(bytes(self[dag_hash]))
        return said

    def _require_distinct(self, data: bytes, installs: Raw) -> None:
        """Refuse an index with two records for a hash, or any key of its own twice."""
        # Without blanks, two quotes, a colon and a comma stand between records.
        count = len(self)
        held = sum(len(key) + memoryview(text).nbytes for key, text in self.items())
        size = memoryview(installs).nbytes
        if len(data) - size <= _AROUND and size - held == 4 * count + 1:
            return
        # The quotes of `database`, `version` and its text, and `installs`; and those of records.
        quotes = 8 + sum(2 + bytes(text).count(b'"') for text in self.values())
        if data.count(b'"') == quotes:
            return
        for key, times in Counter(_RECORD_KEY.findall(data)).items():
            if times > 1:
                raise IndexFault(f"{key.decode()}: has {times} records, expected one")
        raise IndexFault("database, version or installs stands twice, expected each once")


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
            self.version, nodes = 1, _NODES.decode(spec)
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
        known = {key: value for key, value in self.rest.items() if key in _KNOWN}
        unknown = (UnknownKey((key,), self.rest[key]) for key in self.rest if key not in _KNOWN)
        return entry._replace(rest=known, unknown=(*entry.unknown, *unknown))


class SpecFileRecords(dict[str, tuple[SpecFile, int]]):
    """The nodes of spec files as the records of an index; a binary's own file comes first."""

    def __init__(self, files: Iterable[SpecFile]) -> None:
        super().__init__()
        for file in files:
            for at, entry in enumerate(file.entries):
                if at == 0 or entry.node.hash not in self:
                    self[entry.node.hash] = (file, at)

    def entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec."""
        file, at = self[dag_hash]
        return file.entries[at]

    def tolerant_entry(self, dag_hash: str) -> Entry:
        """Return the record of a spec that has keys which are not known."""
        file, at = self[dag_hash]
        return file.tolerant_entry(at)

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a node as its spec file says it, and that it is a binary, as plain values."""
        file, at = self[dag_hash]
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


IndexRecords = Installs | SpecFileRecords
"""The records of an index, by hash."""
