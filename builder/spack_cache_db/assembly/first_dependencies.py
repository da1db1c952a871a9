"""Gives each spec the dependencies of its first record, and finds the records whose
dependencies differ.

A spec's dependencies are part of its hash, except build dependencies, which old indexes
leave out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.sources.frames import Frame, Numbers, groups, packed, rows_by


class OtherDependencies(NamedTuple):
    """The records that give a spec other dependencies than its first record, and their
    edges.

    The edges have the columns `document` and `spec` as well.
    """

    records: Frame
    edges: Frame


def first_dependencies(records: Frame, edges: Frame) -> tuple[Frame, OtherDependencies]:
    """Return the edges of each spec's first record, and the records and edges that
    differ.

    Args:
        records: the records of indexes; each names its list of dependencies, or 0.
        edges: the dependencies of each list. A list belongs to one spec.
    """
    # Pair each record with the first one of its spec, which is that of the first
    # document.
    by_spec = np.argsort(packed(records["spec"], records["document"]))
    records = records.where(by_spec)
    starts, group = groups(records["spec"])
    first = records.where(starts)
    list_of_first = first["edge_list"][group]

    # Records differ if the edges of their lists do.
    checksums = _checksums(edges)
    is_different = checksums[records["edge_list"]] != checksums[list_of_first]
    others = records.where(is_different)

    first_edges = _edges_of_first(first, edges, len(checksums))
    other_edges = _edges_of_others(others, edges, len(checksums))
    return first_edges, OtherDependencies(records=others, edges=other_edges)


def _checksums(edges: Frame) -> npt.NDArray[np.uint64]:
    """Return the checksum of each list of dependencies, in any order of its edges.

    It is the sum of the hashes of the edges. Lists that differ practically never have
    the same one: it has 64 bits. List 0 is empty.
    """
    list_count = 1 + int(edges["edge_list"].max(initial=0))
    checksums = np.zeros(list_count, np.uint64)
    np.add.at(checksums, edges["edge_list"], _hashes(edges))
    return checksums


def _hashes(edges: Frame) -> npt.NDArray[np.uint64]:
    """Return a hash of the dependency and the use of each edge.

    The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every
    other.
    """
    hashes = packed(edges["dependency"], edges["use"]).astype(np.uint64)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def _edges_of_first(first: Frame, edges: Frame, list_count: int) -> Frame:
    """Return the edges of first records, with their specs."""
    spec_of_list: Numbers = np.zeros(list_count, np.uint32)
    spec_of_list[first["edge_list"]] = first["spec"]
    spec = spec_of_list[edges["edge_list"]]
    edges = edges.having(spec=spec)
    # Usually all records of a spec have one list, and no edge is left out.
    return edges if spec.all() else edges.where(spec > 0)


def _edges_of_others(others: Frame, edges: Frame, list_count: int) -> Frame:
    """Return the edges of records that differ, with the document and spec of each
    record, even if records share a list.
    """
    is_of_others = np.zeros(list_count, bool)
    is_of_others[others["edge_list"]] = True
    edges = edges.where(is_of_others[edges["edge_list"]])
    edges_of_list = rows_by(edges["edge_list"], list_count)
    record, edge = edges_of_list.members_of(others["edge_list"])
    return edges.where(edge).having(
        document=others["document"][record], spec=others["spec"][record]
    )
