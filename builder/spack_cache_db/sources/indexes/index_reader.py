"""Records of an index → columns.

Configurations are in the normal form of pages, so that both kinds of source meet in one.
Parameters and externals are compared as JSON: few of them differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources import Share
from spack_cache_db.sources.columns import Document, NodeFacts, Tarball, Writer
from spack_cache_db.sources.indexes import IndexFault
from spack_cache_db.sources.indexes.index_records import Entry, IndexRecords
from spack_cache_db.sources.strictness import (
    BROKEN,
    MAX_NAME,
    as_json,
    require_bounded,
    require_name,
    require_short,
    said,
    short,
)
from spack_cache_db.spack.lexer import is_hash
from spack_cache_db.spack.nodes import Node, compiler_of, configuration_of, require_hash
from spack_cache_db.spack.normal_forms import NO_COMPILER

RECORDS_PER_CALL = 5000

_PLACE = ("path", "module")
"""The keys of an external that are kept: where the system has it."""


class BinaryPlace(NamedTuple):
    """Where a binary lies: bytes of its tarball as text, and its address, where they are known.

    `unknown_keys` are those of the manifest that says so.
    """

    size: str | None = None
    tarball: Tarball | None = None
    unknown_keys: frozenset[str] = frozenset()


class IndexReader:
    """Adds the records of indexes to the columns of a unit.

    Args:
        writer: it fills the columns.
        share: called after some thousands of records, each time, with how much has been read.
    """

    def __init__(self, writer: Writer, share: Share | None = None) -> None:
        self._writer = writer
        self._share = share
        self._configurations: dict[object, int] = {}

    def add(
        self,
        document: Document,
        known: IndexRecords,
        listed: Callable[[Entry], BinaryPlace | None],
    ) -> None:
        """Add all records of an index.

        Args:
            document: the index; problems of its records are added to it.
            known: its records; edges lead to nothing else.
            listed: where a record's binary lies; None for a record without one.

        Raises:
            InputError: with the first fault of the index; nothing of it is kept.
        """
        number = self._writer.add(document)
        rows = _Rows(self._writer, number, known, self._configurations)
        unknown, in_manifests = Counter[str](), Counter[str]()
        for count, dag_hash in enumerate(known):
            if self._share and count and count % RECORDS_PER_CALL == 0:
                self._share(count / len(known))
            try:
                entry = known.entry(dag_hash)
                place = listed(entry)
                rows.add(entry, place)
            except (IndexFault, *BROKEN) as error:
                self._writer.remove(number)
                message = f"{dag_hash}: {said(error)}, expected a node of Spack's"
                if isinstance(error, IndexFault):
                    message = str(error)
                raise InputError([Fault(document.location, 0, message)]) from None
            unknown.update(entry.unknown)
            in_manifests.update(place.unknown_keys if place else ())
        problems = [*unknown_keys("record", unknown), *unknown_keys("manifest", in_manifests)]
        problems += [_unrecorded(*each) for each in sorted(rows.unrecorded.items())]
        rows.finish(problems)


class _Rows:
    """The rows of one index.

    Attributes:
        unrecorded: the names of hashes of which the index has no record.
    """

    def __init__(
        self,
        writer: Writer,
        document: int,
        known: IndexRecords,
        configurations: dict[object, int],
    ) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._document = document
        facts = writer.columns.documents[document - 1].index_facts
        assert facts is not None
        self._facts = facts
        self._known = known
        self._stacks = texts.stack_sets[(facts.stack,)]
        self._configurations = configurations
        # Keys that are no hashes are refused, and may not meet those of other documents.
        self._numbers = {each: texts.hashes[each] for each in known if is_hash(each)}
        self._compilers: dict[str, Node | None] = {}
        self._binaries = 0
        self.unrecorded: dict[str, str] = {}

    def add(self, entry: Entry, listed: BinaryPlace | None) -> None:
        """Add a record, and where its binary lies if it has one."""
        node, texts = entry.node, self._texts
        parameters = as_json(node.parameters)
        configuration = self._configuration(node, parameters)
        edges = {(self._end(each.name, each.hash), texts.uses[each.use]) for each in node.edges}
        build_spec = self._end(*node.build_spec) if node.build_spec else 0
        row = {"document": self._document, "spec": self._numbers[node.hash]}
        rows = self._writer.columns.tables["edges"]
        rows["document"].extend([self._document] * len(edges))
        rows["spec"].extend([row["spec"]] * len(edges))
        rows["dependency"].extend([end for end, _ in edges])
        rows["use"].extend([use for _, use in edges])
        if listed is None:
            self._writer.append_row("unlisted", **row, configuration=configuration)
        else:
            self._binaries += 1
            self._writer.append_row(
                "listings",
                **row,
                configuration=configuration,
                stacks=self._stacks,
                size=texts.sizes[listed.size] if listed.size else 0,
                tarball=texts.tarballs[listed.tarball] if listed.tarball else 0,
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
        """Add the specs without a record, and what is known of the whole index."""
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
            found = configuration_of(node, compiler)
            require_bounded(found)
            number = self._configurations[key] = self._texts.configurations[found]
        return number

    def _node(self, node: Node, parameters: str) -> int:
        external, found = None, node.external
        if found is not None:
            external = as_json({key: found[key] for key in _PLACE if found.get(key)})
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
        """Return the node of a compiler, which many records share."""
        if dag_hash not in self._compilers:
            found = self._known.entry(dag_hash).node if dag_hash in self._known else None
            self._compilers[dag_hash] = found
        return self._compilers[dag_hash]

    def _end(self, name: str, dag_hash: str) -> int:
        """Return the number of a dependency; of one without a record, the name is kept."""
        number = self._numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            self.unrecorded[dag_hash] = name
            number = self._numbers[dag_hash] = self._texts.hashes[dag_hash]
        return number


def _unrecorded(dag_hash: str, name: str) -> Problem:
    message = f"the spec {dag_hash} is needed, and has no record: only its name is known, {name}"
    # Another index may call it otherwise, and the file has one name for it.
    return Problem("no_record", message, dag_hash, as_json({"package": name}))


def unknown_keys(what: str, counts: Mapping[str, int]) -> Iterator[Problem]:
    """Yield a problem for each key that is not known.

    Args:
        what: `record` or `manifest`.
        counts: how many of them have each key.
    """
    for place, count in sorted(counts.items()):
        have = f"{what} has" if count == 1 else f"{what}s have"
        message = f"the key {short(place)} is not known and left out: {count:,} {have} it"
        yield Problem("unknown_key", message)
