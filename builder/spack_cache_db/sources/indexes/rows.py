"""Adds the records of indexes to columns.

A record of an index becomes a row of `listings` if there is a binary of it, a row of
`records`, and a row of `edges` for each dependency; see `sources.writer`. Records are
decoded one by one, so that an index of 200 MB takes little more memory than its bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from spack_cache_db.errors import Fault, InputError, counted
from spack_cache_db.model import Problem
from spack_cache_db.sources.bounds import (
    MAX_NAME,
    require_bounded,
    require_name,
    require_short,
)
from spack_cache_db.sources.facts import Document, NodeFacts, Tarball
from spack_cache_db.sources.files import Share
from spack_cache_db.sources.indexes.entries import FORMAT_OF_1_0, Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.index_json import Installs
from spack_cache_db.sources.indexes.spec_files import SpecFileRecords
from spack_cache_db.sources.texts import BROKEN, as_json, message_of, printable_name
from spack_cache_db.sources.writer import Writer
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Node, compiler_of, configuration_of, require_hash

IndexRecords = Installs | SpecFileRecords
"""The records of an index, by hash."""

_RECORDS_PER_SHARE = 5000
"""Records after which the progress is reported."""


class BinaryPlace(NamedTuple):
    """The size of a binary's tarball (as a text) and its URL, if they are known."""

    size: str | None = None
    tarball: Tarball | None = None


class OpenIndex(NamedTuple):
    """An index whose records can be added.

    Attributes:
        document: the index as a document.
        records: its records, by hash.
        binary_of: returns the binary of a record; None if it has none.
        unknown: the number of manifests with each unknown key. Manifests are read by
            `binary_of`, so it is complete after all records have been added.
    """

    document: Document
    records: IndexRecords
    binary_of: Callable[[Entry], BinaryPlace | None]
    unknown: Counter[str]


def add_indexes(
    writer: Writer, indexes: Iterable[OpenIndex | Fault], share: Share | None = None
) -> None:
    """Add indexes, each of them whole or not at all.

    Args:
        writer: the columns to add to.
        indexes: indexes, and faults of those that cannot be opened.
        share: called every few thousand records with the part of an index that has been
            read.

    Raises:
        InputError: some indexes were not added; it has their faults.
    """
    faults: list[Fault] = []
    for index in indexes:
        if isinstance(index, Fault):
            faults.append(index)
            continue
        number = writer.add(index.document)
        try:
            _IndexRows(writer, number, index).add(share)
        except IndexFault as fault:
            writer.remove(number)
            faults.append(Fault(index.document.location, 0, fault.message))
    if faults:
        raise InputError(faults)


class _IndexRows:
    """Adds the rows of one index.

    Args:
        writer: the columns to add to.
        document: the number of the index as a document.
        index: the index.
    """

    def __init__(self, writer: Writer, document: int, index: OpenIndex) -> None:
        self._writer = writer
        self._texts = writer.texts
        self._document = document
        self._index = index
        facts = index.document.index_facts
        self._is_installed = facts is not None and facts.is_installed
        # An index lists the binaries of one stack.
        stacks = (facts.stack,) if facts else ()
        self._stacks = self._texts.stack_sets[stacks]
        # The numbers of configurations, by what makes a configuration of a node.
        self._configurations: dict[object, int] = {}
        # Compilers by hash; None for those without a record.
        self._compilers: dict[str, Node | None] = {}
        # The packages of dependencies without a record, by hash.
        self._unrecorded: dict[str, str] = {}
        # The numbers of hashes, those of records first. A key that is not a hash is a
        # fault, which reading its record raises.
        self._numbers: dict[str, int] = {}
        for dag_hash in index.records:
            if is_hash(dag_hash):
                self._numbers[dag_hash] = self._texts.hashes[dag_hash]

    def add(self, share: Share | None) -> None:
        """Add all records; `IndexFault` for the first that cannot be stored."""
        records = self._index.records
        # The number of records that have each key.
        unknown = Counter[str]()
        numbers = Counter[str]()
        for count, dag_hash in enumerate(records):
            if share and count and count % _RECORDS_PER_SHARE == 0:
                share(count / len(records))
            try:
                entry = records.entry(dag_hash)
                self._add_entry(entry, self._index.binary_of(entry))
            except BROKEN as error:
                message = f"{dag_hash}: {message_of(error)}, expected a node of Spack's"
                raise IndexFault(message) from None
            # Few records have such keys, and an update with none takes its time too.
            if entry.unknown or entry.numbers:
                unknown.update(entry.unknown)
                numbers.update(entry.numbers)

        # Problems come in this order: of the document, of records, of the index, of
        # manifests, and dependencies without a record.
        problems = list(self._index.document.problems)
        problems += _unknown_keys("record", unknown)
        problems += _number_keys(numbers)
        for key in sorted(records.unknown):
            name = printable_name(key)
            message = f"the key {name} of the index is not known and left out"
            problems.append(Problem("unknown_key", message))
        problems += _unknown_keys("manifest", self._index.unknown)
        for dag_hash, package in sorted(self._unrecorded.items()):
            problems.append(self._add_unrecorded(dag_hash, package))
        document = self._index.document._replace(problems=tuple(problems))
        self._writer.columns.documents[self._document - 1] = document

    def _add_entry(self, entry: Entry, binary: BinaryPlace | None) -> None:
        """Add a record; it is listed if it has a binary."""
        node = entry.node
        texts = self._texts
        # A new value gets its number when it is looked up: the order of these steps is
        # that of the numbers.
        parameters = entry.parameters
        if parameters is None:
            parameters = as_json(node.parameters)
        listing = None
        if binary is not None:
            size = texts.sizes[binary.size] if binary.size else 0
            tarball = texts.tarballs[binary.tarball] if binary.tarball else 0
            listing = (self._stacks, size, tarball)
        configuration = self._configuration(node, parameters)
        edges = set()
        for name, dag_hash, use in node.edges:
            # Nearly all are known, and a call takes longer than a look.
            dependency = self._numbers.get(dag_hash)
            if dependency is None:
                dependency = self._number_of_dependency(name, dag_hash)
            edges.add((dependency, texts.uses[use]))
        node_facts = self._node_facts(entry, parameters)
        node_number = texts.nodes[node_facts]
        install = 0
        if self._is_installed and entry.install is not None:
            install = texts.installs[entry.install]
        build_spec = 0
        if node.build_spec is not None:
            build_spec = self._number_of_dependency(*node.build_spec)

        self._writer.add_record(
            configuration,
            listing,
            edges,
            document=self._document,
            spec=self._numbers[node.hash],
            node=node_number,
            install=install,
            build_spec=build_spec,
        )

    def _configuration(self, node: Node, parameters: str) -> int:
        """Return the number of a node's configuration.

        Many nodes have the same. It is made and checked only for the first of them.
        """
        compiler = compiler_of(node, self._compiler_node)
        key = (
            node.name,
            node.version,
            node.platform,
            node.os,
            node.target,
            compiler,
            parameters,
        )
        number = self._configurations.get(key)
        if number is None:
            configuration = configuration_of(node, compiler)
            require_bounded(configuration)
            number = self._texts.configurations[configuration]
            self._configurations[key] = number
        return number

    def _compiler_node(self, dag_hash: str) -> Node | None:
        """Return the node of a compiler; cached, because many records share it."""
        if dag_hash not in self._compilers:
            records = self._index.records
            compiler = records.entry(dag_hash).node if dag_hash in records else None
            self._compilers[dag_hash] = compiler
        return self._compilers[dag_hash]

    def _number_of_dependency(self, name: str, dag_hash: str) -> int:
        """Return the number of the hash of a spec that another one names.

        If it has no record, its name is remembered.
        """
        number = self._numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            self._unrecorded[dag_hash] = name
            number = self._texts.hashes[dag_hash]
            self._numbers[dag_hash] = number
        return number

    def _node_facts(self, entry: Entry, parameters: str) -> NodeFacts:
        """Return the facts of a node beyond its configuration.

        Of an external, only its path and its modules are stored.
        """
        node = entry.node
        external = None
        if node.external is not None:
            stored = {}
            for key in ("path", "module"):
                if node.external.get(key):
                    stored[key] = node.external[key]
            external = as_json(stored)
        # Every record of a cache has a namespace, so an empty one is refused as well.
        namespace = node.namespace or ""
        require_name("namespace", namespace)
        return NodeFacts(
            namespace,
            node.package_hash,
            parameters,
            external,
            has_compiler=node.compiler is not None,
            is_before_1_0=entry.spec_format < FORMAT_OF_1_0,
        )

    def _add_unrecorded(self, dag_hash: str, package: str) -> Problem:
        """Add a dependency without a record, and return the problem."""
        self._writer.add_unrecorded(self._document, self._numbers[dag_hash], package)
        message = (
            f"the spec {dag_hash} is needed, and has no record: only its name is known"
        )
        # Another index may call it otherwise, and the database has one name for it. So
        # the problem has the name that this index uses.
        value = as_json({"package": package})
        return Problem("no_record", f"{message}, {package}", dag_hash, value)


def _number_keys(counts: Counter[str]) -> Iterator[Problem]:
    """Yield a problem for each key that is a number where Spack writes a text."""
    for key, count in sorted(counts.items()):
        have = counted(count, "record has", "records have")
        name = printable_name(key)
        message = f"the key {name} is a number and read as a text: {have} it"
        yield Problem("number_for_text", message)


def _unknown_keys(kind: str, counts: Counter[str]) -> Iterator[Problem]:
    """Yield a problem for each unknown key.

    Args:
        kind: "record" or "manifest".
        counts: the number of records or manifests with each key.
    """
    for key, count in sorted(counts.items()):
        have = counted(count, f"{kind} has", f"{kind}s have")
        name = printable_name(key)
        message = f"the key {name} is not known and left out: {have} it"
        yield Problem("unknown_key", message)
