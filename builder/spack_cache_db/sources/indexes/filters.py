"""Applies the filters of a mirror to the binaries of an index.

A mirror in Spack's configuration may have lists of specs that limit its binaries:

    include_binary: [hdf5]          only hdf5 and
    exclude_binary: [hdf5@:1.10]    none of these

They are applied as in Spack 1.2 (`mirrors/mirror.py`: `_spec_matches_filters`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.rows import IndexRecords
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.nodes import Node
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery
from spack_cache_db.spack.satisfying import SpecGraph, VirtualVersionError


def parse_filter(texts: Iterable[str]) -> tuple[SpecQuery, ...]:
    """Return the parsed specs of a filter.

    Raises:
        IndexFault: a text is not a spec; the message names it.
    """
    specs = []
    for text in texts:
        try:
            specs.append(parse_query(text))
        except QuerySyntaxError as error:
            raise IndexFault(f"{text!r} is not a spec: {error}") from None
    return tuple(specs)


class BinaryFilter(NamedTuple):
    """The specs of `include_binary` (empty for all) and of `exclude_binary`."""

    include: tuple[SpecQuery, ...] = ()
    exclude: tuple[SpecQuery, ...] = ()

    def left_out(self, records: IndexRecords) -> frozenset[str]:
        """Return the hashes of the binaries of an index that are left out.

        Raises:
            IndexFault: a spec has a version of a virtual package, which no index has.
        """
        # Most mirrors have no filters. Then their records need not be decoded here.
        if not self.include and not self.exclude:
            return frozenset()
        readable = ReadableRecords(records)
        graph = SpecGraph(records, readable.node)
        left_out = set()
        try:
            for dag_hash in records:
                entry = readable.entry(dag_hash)
                if entry is None or not entry.is_binary:
                    continue
                if not self._keeps(graph, entry.node):
                    left_out.add(entry.node.hash)
        except VirtualVersionError as error:
            raise IndexFault(str(error)) from None
        return frozenset(left_out)

    def _keeps(self, graph: SpecGraph, node: Node) -> bool:
        """Return whether a binary satisfies a spec of `include`, and none of
        `exclude`.
        """
        if self.include:
            is_included = any(graph.satisfies(node, query) for query in self.include)
            if not is_included:
                return False
        return not any(graph.satisfies(node, query) for query in self.exclude)


class ReadableRecords:
    """The records of one index, each decoded once.

    A spec is compared with each query, and is a dependency of many others, so its
    record is needed again and again.
    """

    def __init__(self, records: IndexRecords) -> None:
        self._records = records
        self._entries: dict[str, Entry | None] = {}

    def entry(self, dag_hash: str) -> Entry | None:
        """Return a record; None if it is missing or unreadable.

        The reader of the index reports an unreadable one.
        """
        if dag_hash not in self._entries:
            try:
                entry = self._records.entry(dag_hash)
            except (KeyError, IndexFault):
                entry = None
            self._entries[dag_hash] = entry
        return self._entries[dag_hash]

    def node(self, dag_hash: str) -> Node | None:
        """Return the node of a record, as `entry` does."""
        entry = self.entry(dag_hash)
        return None if entry is None else entry.node
