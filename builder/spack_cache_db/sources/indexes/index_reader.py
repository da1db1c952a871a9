"""Reads the records of an index into columns.

Configurations are in the normal form of pages, so that both kinds of source have equal ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

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
)
from spack_cache_db.sources.columns import Document, NodeFacts, Tarball, Writer
from spack_cache_db.sources.indexes import IndexFault
from spack_cache_db.sources.indexes.index_records import Entry, IndexRecords
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Node, compiler_of, configuration_of, require_hash
from spack_cache_db.spack.normal_forms import NO_COMPILER

RECORDS_PER_CALL = 5000

_PLACE = ("path", "module")
"""The keys of an external that are stored."""


class BinaryPlace(NamedTuple):
    """Size (as text) and URL of a binary's tarball, if known, and unknown keys of its manifest."""

    size: str | None = None
    tarball: Tarball | None = None
    unknown_keys: frozenset[str] = frozenset()


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

    def add(
        self,
        document: Document,
        records: IndexRecords,
        binary_of: Callable[[Entry], BinaryPlace | None],
    ) -> None:
        """Add all records of an index.

        Args:
            document: the index; problems of its records are added to it.
            records: the records of the index.
            binary_of: returns size and URL of a record's binary; None if it has no binary.

        Raises:
            InputError: the first fault of the index; nothing of the index is added.
        """
        number = self._writer.add(document)
        rows = _Rows(self._writer, number, records, self._configurations)
        unknown, in_manifests = Counter[str](), Counter[str]()
        for count, dag_hash in enumerate(records):
            if self._share and count and count % RECORDS_PER_CALL == 0:
                self._share(count / len(records))
            try:
                entry = records.entry(dag_hash)
                binary = binary_of(entry)
                rows.add(entry, binary)
            except (IndexFault, *BROKEN) as error:
                self._writer.remove(number)
                message = f"{dag_hash}: {message_of(error)}, expected a node of Spack's"
                if isinstance(error, IndexFault):
                    message = str(error)
                raise InputError([Fault(document.location, 0, message)]) from None
            unknown.update(entry.unknown)
            in_manifests.update(binary.unknown_keys if binary else ())
        problems = [*unknown_keys("record", unknown), *unknown_keys("manifest", in_manifests)]
        problems += [_unrecorded(*item) for item in sorted(rows.unrecorded.items())]
        rows.finish(problems)


class _Rows:
    """The rows of one index.

    Attributes:
        unrecorded: names of dependencies without a record, by hash.
    """

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
        self._known = records
        self._stacks = texts.stack_sets[(facts.stack,)]
        self._configurations = configurations
        # Keys that are not hashes are rejected later, and get no number.
        self._numbers = {
            dag_hash: texts.hashes[dag_hash] for dag_hash in records if is_hash(dag_hash)
        }
        self._compilers: dict[str, Node | None] = {}
        self._binaries = 0
        self.unrecorded: dict[str, str] = {}

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
        install = entry.install if self._facts.is_installed else None
        self._writer.append_row(
            "records",
            **row,
            node=self._node(node, parameters),
            install=texts.installs[install] if install else 0,
            build_spec=build_spec,
        )

    def finish(self, problems: list[Problem]) -> None:
        """Add the specs without a record, the problems and the number of binaries."""
        nothing = Configuration("", "", NO_COMPILER, "", "", "", ())
        for dag_hash, package in self.unrecorded.items():
            self._writer.append_row(
                "unrecorded",
                document=self._document,
                spec=self._numbers[dag_hash],
                configuration=self._texts.configurations[nothing._replace(package=package)],
            )
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
        external, node_external = None, node.external
        if node_external is not None:
            external = as_json(
                {key: node_external[key] for key in _PLACE if node_external.get(key)}
            )
        require_name("namespace", node.namespace or "")
        return self._texts.nodes[
            NodeFacts(
                node.namespace or "",
                node.package_hash,
                parameters,
                external,
                has_compiler=node.compiler is not None,
            )
        ]

    def _provider(self, dag_hash: str) -> Node | None:
        """Return the node of a compiler; cached, because many records share it."""
        if dag_hash not in self._compilers:
            compiler = self._known.entry(dag_hash).node if dag_hash in self._known else None
            self._compilers[dag_hash] = compiler
        return self._compilers[dag_hash]

    def _end(self, name: str, dag_hash: str) -> int:
        """Return the number of a dependency, and remember its name if it has no record."""
        number = self._numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            self.unrecorded[dag_hash] = name
            number = self._numbers[dag_hash] = self._texts.hashes[dag_hash]
        return number


def _unrecorded(dag_hash: str, name: str) -> Problem:
    message = f"the spec {dag_hash} is needed, and has no record: only its name is known, {name}"
    # Another index may use another name, and the database has one name for it.
    return Problem("no_record", message, dag_hash, as_json({"package": name}))


def unknown_keys(kind: str, counts: Mapping[str, int]) -> Iterator[Problem]:
    """Yield a problem for each unknown key.

    Args:
        kind: `record` or `manifest`.
        counts: number of records or manifests with each key.
    """
    for key, count in sorted(counts.items()):
        have = f"{kind} has" if count == 1 else f"{kind}s have"
        message = f"the key {printable_name(key)} is not known and left out: {count:,} {have} it"
        yield Problem("unknown_key", message)
