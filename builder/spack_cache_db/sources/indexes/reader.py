"""Records of an index → columns. Texts that repeat are decoded once, by their bytes."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources.columns import Document, Writer
from spack_cache_db.sources.graph import Node as NodeFacts
from spack_cache_db.sources.graph import RecordColumns, Use
from spack_cache_db.sources.indexes.database import Entry
from spack_cache_db.sources.indexes.faults import IndexFault, said
from spack_cache_db.sources.indexes.normal import (
    compiler_of,
    parse_arch,
    target_name,
    variants_of,
)
from spack_cache_db.sources.indexes.records import Dependency, Node, Record
from spack_cache_db.sources.tarballs import Tarball

INSTALLATION = (
    "path", "installed", "explicit", "installation_time", "deprecated_for", "origin",
)  # fmt: skip
"""The keys of a record that only the database of an installation has."""

_installation = attrgetter(*INSTALLATION)

RECORD_WIDTH = len(RecordColumns._fields) - 1

NODE_REST = ("compiler", "patches", "annotations")
"""The keys of a node that are kept as they are, beside those that have columns."""


class Listed(NamedTuple):
    """Where a binary lies: bytes of its tarball as text, and its address, where they are known."""

    size: str | None = None
    tarball: Tarball | None = None


class Records(Protocol):
    """The records of an index, by hash."""

    def __contains__(self, dag_hash: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def entry(self, dag_hash: str) -> Entry:
        """Return a record; `IndexFault`, with its hash, if it cannot be read."""

    def version(self, dag_hash: str) -> str:
        """Return the version of a spec; `KeyError` if it has no record."""

    def said(self, dag_hash: str) -> dict[str, Any]:
        """Return a record as its source says it, as plain values."""


@dataclass(slots=True)
class _Rows:
    """What one index gives: listings, specs that it does not list, records, edges."""

    listings: list[tuple[int, ...]] = field(default_factory=list)
    unlisted: list[tuple[int, ...]] = field(default_factory=list)
    records: list[tuple[int, ...]] = field(default_factory=list)
    edge_spec: array[int] = field(default_factory=lambda: array("I"))
    edge_dependency: array[int] = field(default_factory=lambda: array("I"))
    edge_use: array[int] = field(default_factory=lambda: array("I"))


class IndexReader:
    """Adds the records of indexes to the columns of a unit."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = writer.texts
        self._spellings: dict[object, int] = {}
        self._nodes: dict[object, int] = {}
        self._uses: dict[object, int] = {}

    def add(
        self,
        document: Document,
        known: Records,
        listed: Callable[[Entry], Listed | None],
    ) -> None:
        """Add all records of an index.

        Args:
            document: the index; problems of its records are added to it.
            known: its records; edges lead to nothing else.
            listed: where a record's binary lies; None for a record without one.

        Raises:
            InputError: with every fault of the index; nothing of it is kept.
        """
        facts = document.index_facts
        if facts is None:
            raise TypeError("the document is no index")
        rows = _Rows()
        faults: list[Fault] = []
        problems: list[Problem] = []
        for dag_hash in known:
            try:
                entry = known.entry(dag_hash)
                self._add_entry(rows, entry, known, listed(entry))
            except IndexFault as fault:
                faults.append(Fault(document.location, 0, str(fault)))
            else:
                problems += (_named(dag_hash, each) for each in entry.problems)
        if faults:
            raise InputError(faults)
        spec, configuration, size, tarball = _columns(rows.listings, 4)
        number = self._writer.add(
            document._replace(
                problems=(*document.problems, *sorted(problems)),
                index_facts=facts._replace(binaries=len(spec)),
            ),
            spec=spec,
            configuration=configuration,
            stacks=[self._texts.stack_sets[(facts.stack,)]] * len(spec),
            size=size,
            tarball=tarball,
        )
        spec, configuration = _columns(rows.unlisted, 2)
        self._writer.add_unlisted(number, spec=spec, configuration=configuration)
        edges = (rows.edge_spec, rows.edge_dependency, rows.edge_use)
        self._writer.add_graph(number, _columns(rows.records, RECORD_WIDTH), edges)

    def _add_entry(self, rows: _Rows, entry: Entry, known: Records, listed: Listed | None) -> None:
        node, texts = entry.node, self._texts
        spec = texts.hashes[node.hash]
        self._add_edges(rows, spec, node, known)
        try:
            configuration, facts = self._configuration(node, known), self._node(node)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
            raise IndexFault(f"{node.hash}: {said(error)}, expected a node of Spack's") from None
        if listed is None:
            rows.unlisted.append((spec, configuration))
        else:
            size = texts.sizes[listed.size] + 1 if listed.size else 0
            tarball = texts.tarballs[listed.tarball] + 1 if listed.tarball else 0
            rows.listings.append((spec, configuration, size, tarball))
        rows.records.append((spec, facts, *self._record(entry)))

    def _add_edges(self, rows: _Rows, spec: int, node: Node, known: Records) -> None:
        hashes, uses = self._texts.hashes, self._uses
        for edge in node.dependencies:
            dependency = edge.hash
            if dependency not in known:
                words = f"{node.hash}: depends on {edge.name}/{dependency}, which has no record"
                raise IndexFault(f"{words}, expected one for each dependency")
            key = (edge.type, edge.parameters)
            use = uses.get(key)
            if use is None:
                use = uses[key] = self._texts.uses[_use_of(edge)]
            rows.edge_spec.append(spec)
            rows.edge_dependency.append(hashes[dependency])
            rows.edge_use.append(use)

    def _configuration(self, node: Node, known: Records) -> int:
        arch, parameters = bytes(node.arch), bytes(node.parameters)
        compiler = compiler_of(node, known.version)
        key = (node.name, node.version, compiler, arch, parameters)
        at = self._spellings.get(key)
        if at is None:
            parsed = parse_arch(arch)
            at = self._spellings[key] = self._texts.configurations[
                Configuration(
                    node.name,
                    node.version,
                    compiler,
                    parsed.platform_os,
                    parsed.platform,
                    target_name(parsed),
                    variants_of(parameters),
                )
            ]
        return at

    def _node(self, node: Node) -> int:
        rest = tuple(getattr(node, key) for key in NODE_REST)
        key = (node.namespace, node.package_hash, bytes(node.arch), bytes(node.parameters), rest)
        external = None if node.external is UNSET else bytes(node.external)
        at = self._nodes.get((key, external))
        if at is None:
            target = parse_arch(bytes(node.arch)).target
            facts = NodeFacts(
                namespace=node.namespace,
                package_hash=None if node.package_hash is UNSET else node.package_hash,
                parameters=_json(json.loads(bytes(node.parameters))),
                target=None if isinstance(target, str) else _json(msgspec.to_builtins(target)),
                external=None if external is None else _json(json.loads(external)),
                rest=_json(_said_of(node, NODE_REST)),
            )
            at = self._nodes[key, external] = self._texts.nodes[facts]
        return at

    def _record(self, entry: Entry) -> tuple[int, ...]:
        """Return the numbers of a record behind that of its node (see `RecordColumns`)."""
        texts, record, node = self._texts, entry.record, entry.node
        rest = entry.rest
        if any(each is not UNSET for each in _installation(record)):
            rest = _said_of(record, INSTALLATION)
        return (
            0 if record.ref_count is UNSET else record.ref_count + 1,
            0 if record.in_buildcache is UNSET else 1 + record.in_buildcache,
            texts.rests[_json(rest)] + 1 if rest else 0,
            0 if node.full_hash is UNSET else texts.old_hashes[node.full_hash] + 1,
            0 if node.build_hash is UNSET else texts.old_hashes[node.build_hash] + 1,
            0 if node.build_spec is UNSET else texts.hashes[node.build_spec.hash] + 1,
        )


def _use_of(edge: Dependency) -> Use:
    if edge.parameters is not UNSET:
        said = edge.parameters
        direct = None if said.direct is UNSET else said.direct
        return Use(tuple(sorted(said.deptypes)), tuple(sorted(said.virtuals)), direct)
    types = () if edge.type is UNSET else edge.type
    return Use(tuple(sorted(types)), (), None)


def _said_of(record: Record | Node, keys: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a record says something of, as plain values."""
    values = {key: getattr(record, key) for key in keys}
    said = {key: value for key, value in values.items() if value is not UNSET}
    plain: dict[str, Any] = msgspec.to_builtins(said)
    return plain


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _named(dag_hash: str, problem: Problem) -> Problem:
    return problem._replace(message=f"the spec {dag_hash}: {problem.message}")


def _columns(rows: list[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """Return the columns of rows; there are so many even where there is no row."""
    return [*zip(*rows, strict=True)] if rows else [()] * count
