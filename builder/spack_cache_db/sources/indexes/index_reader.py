"""Records of an index → columns.

Configurations are in the normal form of pages, so that both kinds of source meet in one.
Parameters and externals are compared as JSON: few of them differ.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources import Share
from spack_cache_db.sources.columns import (
    TABLES,
    Document,
    IndexFacts,
    NodeFacts,
    Tarball,
    Texts,
    Writer,
)
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

_COLUMNS = {
    table: [name for name in columns if name != "document"] for table, columns in TABLES.items()
}
"""The columns of each table that are of a row and not of the whole index, in their order."""

_PLACE = ("path", "module")
"""The keys of an external that are kept: where the system has it."""


class BinaryPlace(NamedTuple):
    """Where a binary lies: bytes of its tarball as text, and its address, where they are known.

    `unknown_keys` are those of the manifest that says so.
    """

    size: str | None = None
    tarball: Tarball | None = None
    unknown_keys: frozenset[str] = frozenset()


class Spellings:
    """Numbers of configurations and of `NodeFacts` by what nodes of an index say."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._configurations: dict[object, int] = {}
        self._nodes: dict[object, int] = {}

    def numbers(self, node: Node, compiler: str) -> tuple[int, int]:
        """Return the number of a node's configuration, and that of the node.

        Raises:
            ValueError: a value of it is not one of Spack's, or too long.
        """
        parameters = as_json(node.parameters)
        key = (*node[:2], *node[3:6], compiler, parameters)
        configuration = self._configurations.get(key)
        if configuration is None:
            found = configuration_of(node, compiler)
            require_bounded(found)
            configuration = self._configurations[key] = self._texts.configurations[found]
        external = None
        if node.external is not None:
            external = as_json(
                {key: node.external[key] for key in _PLACE if node.external.get(key)}
            )
        facts = NodeFacts(
            node.namespace or "",
            node.package_hash,
            parameters,
            external,
            has_compiler=node.compiler is not None,
        )
        number = self._nodes.get(facts)
        if number is None:
            require_name("namespace", facts.namespace)
            number = self._nodes[facts] = self._texts.nodes[facts]
        return configuration, number


class _Rows:
    """The rows of one index for `TABLES`, each as its numbers one after the other.

    Attributes:
        tables: the rows.
        stacks: the number of the index's set of stacks.
        numbers: the number of each hash that the index has.
        compilers: the nodes that provide languages, by their hashes.
        unrecorded: the names of hashes of which the index has no record.
    """

    def __init__(self, stacks: int, numbers: dict[str, int]) -> None:
        self.tables = {table: array("I") for table in _COLUMNS}
        self.stacks = stacks
        self.numbers = numbers
        self.compilers: dict[str, Node | None] = {}
        self.unrecorded: dict[str, str] = {}


class IndexReader:
    """Adds the records of indexes to the columns of a unit."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = writer.texts
        self._spellings = Spellings(writer.texts)

    def add(
        self,
        document: Document,
        known: IndexRecords,
        listed: Callable[[Entry], BinaryPlace | None],
        share: Share | None = None,
    ) -> None:
        """Add all records of an index.

        Args:
            document: the index; problems of its records are added to it.
            known: its records; edges lead to nothing else.
            listed: where a record's binary lies; None for a record without one.
            share: told after some thousands of records, each time, how much has been read.

        Raises:
            InputError: with every fault of the index; nothing of it is kept.
        """
        facts, hashes = document.index_facts, self._texts.hashes
        assert facts is not None
        # Keys that are no hashes are refused below, and may not meet those of other documents.
        numbers = {dag_hash: hashes[dag_hash] for dag_hash in known if is_hash(dag_hash)}
        rows = _Rows(self._texts.stack_sets[(facts.stack,)], numbers)
        faults: list[str] = []
        unknown, in_manifests = Counter[str](), Counter[str]()
        for count, dag_hash in enumerate(known):
            if share and count and count % RECORDS_PER_CALL == 0:
                share(count / len(known))
            try:
                entry = known.entry(dag_hash)
                place = listed(entry)
                self._add_entry(rows, entry, known, place, facts)
            except IndexFault as fault:
                faults.append(str(fault))
            except BROKEN as error:
                faults.append(f"{dag_hash}: {said(error)}, expected a node of Spack's")
            else:
                unknown.update(entry.unknown)
                in_manifests.update(place.unknown_keys if place else ())
        if faults:
            raise InputError(Fault(document.location, 0, each) for each in faults)
        problems = [*unknown_keys("record", unknown), *unknown_keys("manifest", in_manifests)]
        problems += [_unrecorded(*each) for each in sorted(rows.unrecorded.items())]
        self._write(document, facts, rows, problems)

    def _write(
        self, document: Document, facts: IndexFacts, rows: _Rows, problems: list[Problem]
    ) -> None:
        nothing = Configuration("", "", NO_COMPILER, "", "", "", ())
        for dag_hash, package in rows.unrecorded.items():
            configuration = self._texts.configurations[nothing._replace(package=package)]
            rows.tables["unrecorded"].extend((rows.numbers[dag_hash], configuration))
        binaries = len(rows.tables["listings"]) // len(_COLUMNS["listings"])
        number = self._writer.add(
            document._replace(
                problems=(*document.problems, *problems),
                index_facts=facts._replace(binaries=binaries),
            )
        )
        for table, columns in _COLUMNS.items():
            values = rows.tables[table]
            each = {name: values[at :: len(columns)] for at, name in enumerate(columns)}
            self._writer.append(table, number, **each)

    def _add_entry(
        self,
        rows: _Rows,
        entry: Entry,
        known: IndexRecords,
        listed: BinaryPlace | None,
        document: IndexFacts,
    ) -> None:
        """Add a record whole, or nothing of it."""
        node, texts, tables = entry.node, self._texts, rows.tables

        def provider(dag_hash: str) -> Node | None:
            if dag_hash not in rows.compilers:
                found = known.entry(dag_hash).node if dag_hash in known else None
                rows.compilers[dag_hash] = found
            return rows.compilers[dag_hash]

        configuration, facts = self._spellings.numbers(node, compiler_of(node, provider))
        edges = {
            (self._end(rows, each.name, each.hash), texts.uses[each.use]) for each in node.edges
        }
        build_spec = self._end(rows, *node.build_spec) if node.build_spec else 0
        spec = rows.numbers[node.hash]
        for end, use in edges:
            tables["edges"].extend((spec, end, use))
        if listed is None:
            tables["unlisted"].extend((spec, configuration))
        else:
            size = texts.sizes[listed.size] if listed.size else 0
            tarball = texts.tarballs[listed.tarball] if listed.tarball else 0
            tables["listings"].extend((spec, configuration, rows.stacks, size, tarball))
        install = entry.install if document.is_installed else None
        number = texts.installs[install] if install else 0
        tables["records"].extend((spec, facts, number, build_spec))

    def _end(self, rows: _Rows, name: str, dag_hash: str) -> int:
        """Return the number of a dependency; of one without a record, the name is kept."""
        number = rows.numbers.get(dag_hash)
        if number is None:
            require_hash(dag_hash)
            require_short("package", name, MAX_NAME)
            rows.unrecorded[dag_hash] = name
            number = rows.numbers[dag_hash] = self._texts.hashes[dag_hash]
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
