"""Reads the records of an index, or of spec files, into columns.

An index is Spack's database JSON of versions 5 to 8. Its records are decoded one by one, so that an
index of 200 MB takes little more memory than its bytes. A mirror without an index has a spec file
for each binary: JSON since Spack 0.17, YAML before; clear-signed or not, compressed by gzip in
layout 3 (Spack `binary_distribution.py` and `url_buildcache.py`). Its first node is the binary, the
others are its dependencies. Configurations are in the normal form of pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from spack_cache_db.bounded_yaml import YamlBounds, load
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources import (
    BROKEN,
    MAX_NAME,
    Share,
    as_json,
    message_of,
    printable_name,
    require_bounded,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.columns import Document, Install, NodeFacts, Tarball, Writer
from spack_cache_db.sources.indexes import IndexFault, decompressed, without_signature
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import (
    Edge,
    Node,
    compiler_of,
    configuration_of,
    read_node,
    require_hash,
    require_known,
)
from spack_cache_db.spack.normal_forms import NO_COMPILER

VERSIONS = ("5", "6", "7", "8")
"""The database versions of Spack 0.13 to 1.1 that are read."""

NODE_LIMIT = 10_000
"""Nodes of a spec file; the largest known have a few hundred."""

RECORDS_PER_CALL = 5000

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
    prefix, seconds = record.get("path"), record.get("installation_time")
    if not isinstance(prefix, str | None):
        raise ValueError(f"has path {prefix!r:.60}, expected a text")
    try:
        when = None if seconds is None else str(datetime.fromtimestamp(seconds, UTC))[:19]
    except (TypeError, ValueError, OverflowError, OSError):
        when = None
    # Old databases write "None" for an external without a path (Spack `database.py`).
    return Install(None if prefix == "None" else prefix, record.get("explicit"), when)


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
        self.version = database.version

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
        """Return a record; `IndexFault` if it cannot be read, `KeyError` if there is none."""
        try:
            entry = read_entry(msgspec.json.decode(self[dag_hash]))
            require_hash(dag_hash)
            if entry.node.hash != dag_hash:
                message = f"its spec has the hash {printable_name(entry.node.hash)}"
                raise ValueError(f"{message}, expected that of the record")
        except BROKEN as error:
            raise IndexFault(f"{printable_name(dag_hash)}: {message_of(error)}") from None
        return entry


class SpecFile(NamedTuple):
    """The version and the nodes of a spec file; the node of the binary comes first."""

    version: int
    entries: list[Entry]


def read_spec_file(data: bytes, max_size: int) -> SpecFile:
    """Return a spec file in any of its forms; `LineFault` if it cannot be read.

    Args:
        data: the bytes of the file.
        max_size: most bytes of a compressed file after decompression.
    """
    text = without_signature(decompressed(data, max_size))
    require_text(text)
    try:
        is_json = text.lstrip()[:1] == b"{"
        return _spec_file(msgspec.json.decode(text) if is_json else load(text.decode(), _YAML))
    except BROKEN as error:
        message = f"broken spec file: {message_of(error)}, expected one of Spack's"
        raise IndexFault(message) from None


def _spec_file(file: Any) -> SpecFile:
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
    return SpecFile(
        version, [entry._replace(node=_with_edges(entry.node, hashes)) for entry in entries]
    )


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


class BinaryPlace(NamedTuple):
    """Size (as text) and URL of a binary's tarball, if known, and unknown keys of its manifest."""

    size: str | None = None
    tarball: Tarball | None = None
    unknown_keys: frozenset[str] = frozenset()


class OpenIndex(NamedTuple):
    """An opened index: its document, its records, and a function that returns a record's binary.

    The function returns None for a record without a binary.
    """

    document: Document
    records: IndexRecords
    binary_of: Callable[[Entry], BinaryPlace | None]


class IndexReader:
    """Adds the records of indexes to the columns of a unit.

    Args:
        writer: writer of the unit's columns.
        share: called every few thousand records with the part that has been read.
    """

    def __init__(self, writer: Writer, share: Share | None = None) -> None:
        self._writer = writer
        self._share = share
        self._configurations: dict[object, int] = {}

    def add(self, index: OpenIndex) -> None:
        """Add all records of an index, or raise `InputError` with its first fault."""
        document, records, binary_of = index
        number = self._writer.add(document)
        rows = _Rows(self._writer, number, records, self._configurations)
        for count, dag_hash in enumerate(records):
            if self._share and count and count % RECORDS_PER_CALL == 0:
                self._share(count / len(records))
            try:
                entry = records.entry(dag_hash)
                rows.add(entry, binary_of(entry))
            except (IndexFault, *BROKEN) as error:
                self._writer.remove(number)
                message = f"{dag_hash}: {message_of(error)}, expected a node of Spack's"
                if isinstance(error, IndexFault):
                    message = str(error)
                raise InputError([Fault(document.location, 0, message)]) from None
        rows.finish()


class _Rows:
    """The rows of one index."""

    def __init__(
        self,
        writer: Writer,
        document: int,
        records: IndexRecords,
        configurations: dict[object, int],
    ) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._document = document
        facts = writer.columns.documents[document - 1].index_facts
        assert facts is not None
        self._facts = facts
        self._records = records
        self._stacks = texts.stack_sets[(facts.stack,)]
        self._configurations = configurations
        # Keys that are not hashes are rejected later, and get no number.
        self._numbers = {
            dag_hash: texts.hashes[dag_hash] for dag_hash in records if is_hash(dag_hash)
        }
        self._compilers: dict[str, Node | None] = {}
        self._binaries = 0
        self._unrecorded: dict[str, str] = {}
        self._unknown, self._unknown_in_manifests = Counter[str](), Counter[str]()

    def add(self, entry: Entry, binary: BinaryPlace | None) -> None:
        """Add a record, and its binary if it has one."""
        node, texts = entry.node, self._texts
        parameters = as_json(node.parameters)
        configuration = self._configuration(node, parameters)
        edges = {(self._end(edge.name, edge.hash), texts.uses[edge.use]) for edge in node.edges}
        build_spec = self._end(*node.build_spec) if node.build_spec else 0
        row = {"document": self._document, "spec": self._numbers[node.hash]}
        rows = self._writer.columns.tables["edges"]
        rows["document"].extend([self._document] * len(edges))
        rows["spec"].extend([row["spec"]] * len(edges))
        rows["dependency"].extend([end for end, _ in edges])
        rows["use"].extend([use for _, use in edges])
        if binary is None:
            self._writer.append_row("unlisted", **row, configuration=configuration)
        else:
            self._binaries += 1
            self._writer.append_row(
                "listings",
                **row,
                configuration=configuration,
                stacks=self._stacks,
                size=texts.sizes[binary.size] if binary.size else 0,
                tarball=texts.tarballs[binary.tarball] if binary.tarball else 0,
            )
            self._unknown_in_manifests.update(binary.unknown_keys)
        install = entry.install if self._facts.is_installed else None
        self._writer.append_row(
            "records",
            **row,
            node=self._node(node, parameters),
            install=texts.installs[install] if install else 0,
            build_spec=build_spec,
        )
        self._unknown.update(entry.unknown)

    def finish(self) -> None:
        """Add the specs without a record, the problems and the number of binaries."""
        nothing = Configuration("", "", NO_COMPILER, "", "", "", ())
        problems = [
            *unknown_keys("record", self._unknown),
            *unknown_keys("manifest", self._unknown_in_manifests),
        ]
        for dag_hash, package in sorted(self._unrecorded.items()):
            self._writer.append_row(
                "unrecorded",
                document=self._document,
                spec=self._numbers[dag_hash],
                configuration=self._texts.configurations[nothing._replace(package=package)],
            )
            message = f"the spec {dag_hash} is needed, and has no record: only its name is known"
            # Another index may use another name, and the database has one name for it.
            value = as_json({"package": package})
            problems.append(Problem("no_record", f"{message}, {package}", dag_hash, value))
        documents = self._writer.columns.documents
        document = documents[self._document - 1]
        documents[self._document - 1] = document._replace(
            problems=(*document.problems, *problems),
            index_facts=self._facts._replace(binaries=self._binaries),
        )

    def _configuration(self, node: Node, parameters: str) -> int:
        compiler = compiler_of(node, self._provider)
        key = (*node[:2], *node[3:6], compiler, parameters)
        number = self._configurations.get(key)
        if number is None:
            configuration = configuration_of(node, compiler)
            require_bounded(configuration)
            number = self._configurations[key] = self._texts.configurations[configuration]
        return number

    def _node(self, node: Node, parameters: str) -> int:
        external = node.external
        if external is not None:
            external = {key: external[key] for key in ("path", "module") if external.get(key)}
        require_name("namespace", node.namespace or "")
        return self._texts.nodes[
            NodeFacts(
                node.namespace or "",
                node.package_hash,
                parameters,
                None if external is None else as_json(external),
                has_compiler=node.compiler is not None,
            )
        ]

    def _provider(self, dag_hash: str) -> Node | None:
        """Return the node of a compiler; cached, because many records share it."""
        if dag_hash not in self._compilers:
            compiler = self._records.entry(dag_hash).node if dag_hash in self._records else None
            self._compilers[dag_hash] = compiler
        return self._compilers[dag_hash]

    def _end(self, name: str, dag_hash: str) -> int:
        """Return the number of a dependency, and remember its name if it has no record."""
        number = self._numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            self._unrecorded[dag_hash] = name
            number = self._numbers[dag_hash] = self._texts.hashes[dag_hash]
        return number


def unknown_keys(kind: str, counts: Mapping[str, int]) -> Iterator[Problem]:
    """Yield a problem for each unknown key, with the number of records or manifests that have it.

    `kind` is `record` or `manifest`.
    """
    for key, count in sorted(counts.items()):
        have = f"{kind} has" if count == 1 else f"{kind}s have"
        message = f"the key {printable_name(key)} is not known and left out: {count:,} {have} it"
        yield Problem("unknown_key", message)
