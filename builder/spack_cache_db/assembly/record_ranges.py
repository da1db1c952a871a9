"""Joins the equal records of successive snapshots of a mirror into ranges.

A snapshot repeats nearly all records of the one before, so a record is stored once,
with the first and the last mirror that have it:

    spec  first_mirror     last_mirror         node
    7     develop, e4s     develop-2026-11-25  3

is the record of spec 7 in the stack e4s of `develop` and of all its snapshots back to
that day. Ranges are as long as they can be, so they depend only on the records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spack_cache_db.releases import snapshot_branches
from spack_cache_db.sources.facts import Document
from spack_cache_db.sources.frames import Frame, Numbers, packed


class MirrorOrder(NamedTuple):
    """The order of mirrors in which the snapshots of one follow each other.

    Both arrays have a value at the number of each document, which counts from 1. The
    value is 0 for pages.

    Attributes:
        position: the place of each mirror.
        series: the number of the mirror itself, or of the one that a snapshot copies.
    """

    position: Numbers
    series: Numbers


def mirror_order(documents: Sequence[Document], releases: Iterable[str]) -> MirrorOrder:
    """Return the order of the mirrors among documents that are sorted by release.

    A series is the mirror of a branch with its snapshots, from new to old. If a stack
    of a release has several mirrors, the first ones of all releases are a series, and
    so on.
    """
    branch_of: dict[str, str] = {}
    for branch, snapshots in snapshot_branches(releases).items():
        for snapshot in snapshots:
            branch_of[snapshot] = branch

    # The mirrors of each series, in the order of documents.
    series: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    mirrors_of_stack: Counter[tuple[str, str]] = Counter()
    for number, document in enumerate(documents, start=1):
        if document.index_facts:
            release = document.release
            stack = document.index_facts.stack
            branch = branch_of.get(release, release)
            # The mirrors of this stack and release that came before this one.
            mirrors_before = mirrors_of_stack[release, stack]
            series[branch, stack, mirrors_before].append(number)
            mirrors_of_stack[release, stack] += 1

    # One series follows the other, that with the first document first.
    order = MirrorOrder(
        position=np.zeros(len(documents) + 1, np.uint32),
        series=np.zeros(len(documents) + 1, np.uint32),
    )
    count = 0
    for series_number, members in enumerate(series.values(), start=1):
        order.position[members] = np.arange(count + 1, count + len(members) + 1)
        order.series[members] = series_number
        count += len(members)
    return order


def record_ranges(records: Frame, order: MirrorOrder) -> Frame:
    """Return the ranges of equal records, sorted by spec and first mirror.

    Args:
        records: the records, with the ids of their mirrors in the column `mirror`.
        order: the order of mirrors.
    """
    position = order.position[records["document"]]
    series = order.series[records["document"]]
    by_position = np.argsort(packed(records["spec"], position))

    # A record is joined with the one before it if only their mirrors differ, and these
    # are successive snapshots.
    starts = np.ones(len(records), bool)
    starts[1:] = np.diff(position[by_position].astype(np.int64)) != 1
    for column in (series, records["spec"], records["node"], records["is_listed"]):
        in_order = column[by_position]
        starts[1:] |= in_order[1:] != in_order[:-1]

    # Each range ends before the next one starts, and the last one with the last record.
    ends = np.roll(starts, -1)
    first_rows = by_position[starts]
    last_rows = by_position[ends]
    ranges = Frame(
        spec=records["spec"][first_rows],
        first_mirror=records["mirror"][first_rows],
        last_mirror=records["mirror"][last_rows],
        node=records["node"][first_rows],
        is_listed=records["is_listed"][first_rows],
    )
    return ranges.sorted_by("spec", "first_mirror")
