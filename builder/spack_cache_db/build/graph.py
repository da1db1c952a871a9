"""The graphs of all units as one, and its final numbers: records of indexes and their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spack_cache_db.build.arrays import Mask, Numbers, numbers, packed, places
from spack_cache_db.sources.columns import Texts
from spack_cache_db.sources.graph import EdgeColumns, Graph, Node, RecordColumns, Use

T = TypeVar("T")


class Records(NamedTuple):
    """`RecordColumns` of the whole input, as NumPy arrays."""

    document: Numbers
    spec: Numbers
    node: Numbers
    ref_count: Numbers
    in_buildcache: Numbers
    rest: Numbers
    full_hash: Numbers
    build_hash: Numbers
    build_spec: Numbers

    def where(self, chosen: Numbers | Mask) -> Records:
        """Return some of them: those where a mask is true, or those at these places."""
        return Records(*(column[chosen] for column in self))


class Edges(NamedTuple):
    """`EdgeColumns` of the whole input, as NumPy arrays."""

    document: Numbers
    spec: Numbers
    dependency: Numbers
    use: Numbers

    def where(self, chosen: Numbers | Mask) -> Edges:
        """Return some of them: those where a mask is true, or those at these places."""
        return Edges(*(column[chosen] for column in self))


class GraphMerge:
    """Takes the graphs of units; their numbers become those of the texts of all."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._records = [_translated(Records, Graph().records, {})]
        self._edges = [_translated(Edges, Graph().edges, {})]

    def add(self, graph: Graph, document: Sequence[int], spec: Sequence[int]) -> None:
        """Add the graph of one unit.

        Args:
            document: the number of each of the unit's documents.
            spec: the number of each of the unit's hashes.
        """
        texts = self._texts
        names = {
            "document": document,
            "spec": spec,
            "dependency": spec,
            "node": [texts.nodes[each] for each in graph.nodes],
            "use": [texts.uses[each] for each in graph.uses],
            "rest": [0, *(texts.rests[each] + 1 for each in graph.rests)],
            "build_spec": [0, *(number + 1 for number in spec)],
        }
        names["full_hash"] = [0, *(texts.old_hashes[each] + 1 for each in graph.old_hashes)]
        names["build_hash"] = names["full_hash"]
        self._records.append(_translated(Records, graph.records, names))
        self._edges.append(_translated(Edges, graph.edges, names))

    def merged(self) -> tuple[Records, Edges]:
        """Return what was added, in one piece."""
        records = Records(*map(np.concatenate, zip(*self._records, strict=True)))
        edges = Edges(*map(np.concatenate, zip(*self._edges, strict=True)))
        self._records.clear()
        self._edges.clear()
        return records, edges


def _translated(
    make: type[Records] | type[Edges],
    columns: RecordColumns | EdgeColumns,
    names: dict[str, Sequence[int]],
) -> Records | Edges:
    """Return arrays in which a number that has a name is replaced by it."""
    found = {}
    for key, column in zip(columns._fields, columns, strict=True):
        array = np.asarray(column, dtype=np.uint32)
        known = names.get(key)
        found[key] = array if known is None else np.array(known, dtype=np.uint32)[array]
    return make(**found)


@dataclass(frozen=True, slots=True)
class NumberedGraph:
    """The graph with final ids, which count from 1.

    `nodes`, `uses`, `rests` are in the order of their ids; `old_hashes` is what the numbers
    in `records` refer to. `records` is in the order of (spec, document) and has ids of specs;
    `edges` is in the order of (spec, dependency, use), each once.
    """

    nodes: list[Node]
    uses: list[Use]
    rests: list[str]
    old_hashes: list[str]
    records: Records
    edges: Edges


def number_graph(texts: Texts, records: Records, edges: Edges, spec_ids: Numbers) -> NumberedGraph:
    """Return what is in use of a graph, with final ids.

    Args:
        records: those of the documents that are kept.
        edges: the same; where documents disagree, those of the first are kept.
        spec_ids: the id of each provisional number of a spec.
    """
    nodes, node_ids = _in_order(texts.nodes.things, records.node)
    uses, use_ids = _in_order(texts.uses.things, edges.use)
    said = records.rest[records.rest > 0] - 1
    rests, rest_ids = _in_order(texts.rests.things, said)
    specs = np.append(0, spec_ids)
    records = records._replace(
        spec=spec_ids[records.spec],
        node=node_ids[records.node],
        rest=np.append(0, rest_ids)[records.rest],
        build_spec=specs[records.build_spec],
    )
    edges = edges._replace(
        spec=spec_ids[edges.spec], dependency=spec_ids[edges.dependency], use=use_ids[edges.use]
    )
    keys = packed(edges.spec, edges.dependency)
    order = np.lexsort((edges.use, keys))
    edges = edges.where(order)
    return NumberedGraph(
        nodes=nodes,
        uses=uses,
        rests=rests,
        old_hashes=texts.old_hashes.things,
        records=records.where(np.argsort(packed(records.spec, records.document))),
        edges=edges.where(_distinct(keys[order], edges.use)),
    )


def _in_order(things: list[T], used: Numbers) -> tuple[list[T], Numbers]:
    """Return the things in use, sorted, and the id of each by its provisional number."""
    in_use: list[int] = np.flatnonzero(np.bincount(used)).tolist()
    ordered = sorted(in_use, key=lambda at: _sortable(things[at]))
    return [things[at] for at in ordered], places(numbers(ordered), len(things))


def _sortable(thing: object) -> Any:
    """Return a key that sorts None before everything else."""
    return [(part is not None, part) for part in thing] if isinstance(thing, tuple) else thing


def _distinct(keys: Numbers, uses: Numbers) -> Mask:
    """Return a mask of the first of each run of equal pairs."""
    if not len(keys):
        return np.zeros(0, dtype=np.bool_)
    first: Mask = np.append(True, (np.diff(keys) != 0) | (np.diff(uses) != 0))
    return first


class Odd(NamedTuple):
    """What documents say otherwise of dependencies: the records of which they do, and the edges.

    A record whose dependencies are none has no edges there.
    """

    records: Records
    edges: Edges


def first_documents(records: Records, edges: Edges) -> tuple[Edges, Odd]:
    """Return the edges that are kept, and what documents say otherwise of a spec.

    A spec's edges are part of its hash, but for build dependencies, which old indexes leave out:
    the first document, in the order of documents, that tells of a spec is right.
    """
    keys = packed(records.spec, records.document)
    order = np.argsort(keys)
    keys = keys[order]
    of = np.searchsorted(keys, packed(edges.spec, edges.document))
    sums = np.zeros(len(keys), np.uint64)
    np.add.at(sums, of, _mixed(edges))
    begins = np.diff(keys >> 32, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
    odd = sums != sums[first]
    return edges.where(begins[of]), Odd(records.where(order[odd]), edges.where(odd[of]))


def _mixed(edges: Edges) -> npt.NDArray[np.uint64]:
    """Return a number for each edge, such that sums of different sets of edges differ."""
    key = (edges.dependency.astype(np.uint64) << np.uint64(32)) | edges.use.astype(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every other.
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = key ^ (key >> np.uint64(31))
    return mixed
