"""Snapshots: today's mirrors become part of a history, and older snapshots are thinned.

The databases of an input are its history, and all other sources are its present.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from spack_cache_db.build import Snapshots
from spack_cache_db.build.frames import (
    Frame,
    Numbers,
    joined,
    numbers,
    of_documents,
    packed,
    places,
)
from spack_cache_db.releases import release_date, release_kind, snapshot_branches, thinned
from spack_cache_db.sources.columns import Document

Tables = Mapping[str, Frame]


class Dated(NamedTuple):
    """Documents and their tables after all snapshots are added and removed.

    `replaced` has the former numbers of the documents of databases that others replace.
    """

    documents: list[Document]
    tables: Tables
    snapshots: Snapshots
    replaced: frozenset[int]


def dated(
    documents: Sequence[Document], tables: Tables, old: Collection[int], snapshots: Snapshots
) -> Dated:
    """Return documents with today's snapshots and without those that are thinned.

    With a date, a release of today replaces the same release of a database, and each mirror is
    listed in a snapshot as well, unless its binaries are those of its newest snapshot before.

    Args:
        documents: all documents; their numbers count from 1.
        tables: the rows of all documents.
        old: the numbers of the documents that are from databases.
        snapshots: the options.
    """
    releases: dict[str, list[int]] = defaultdict(list)
    present: dict[str, list[int]] = defaultdict(list)
    for number, document in enumerate(documents, start=1):
        of = releases if number in old or snapshots.day is None else present
        of[document.release].append(number)
    replaced = frozenset(at for name in present for at in releases.pop(name, ()))
    copied: dict[str, list[int]] = {}
    unchanged = []
    for name, found in present.items() if snapshots.day else ():
        mirrors = [at for at in found if _is_mirror(documents[at - 1])]
        snapshot = f"{name}-{snapshots.day}"
        if not mirrors or release_kind(name) == "snapshot" or snapshot in present:
            continue
        known = {**releases, **present}
        before = [each for each in snapshot_branches(known).get(name, ()) if each < snapshot]
        if before and snapshot not in releases:
            now, then = (_binaries(tables, some) for some in (mirrors, known[before[0]]))
            if np.array_equal(now, then):
                unchanged.append(name)
                continue
        copied[snapshot] = mirrors
        replaced |= {*releases.pop(snapshot, ())}
    names = {*releases, *present, *copied}
    removed = _thinned_out(names, snapshots.keep) if snapshots.keep else set[str]()
    kept = [
        at
        for at, document in enumerate(documents, start=1)
        if at not in replaced and document.release not in removed
    ]
    every, parts = [documents[at - 1] for at in kept], [_rows_of(tables, kept, len(documents))]
    for snapshot in sorted(copied.keys() - removed):
        parts.append(_rows_of(tables, copied[snapshot], len(documents), len(every)))
        every += [documents[at - 1]._replace(release=snapshot) for at in copied[snapshot]]
    result = snapshots._replace(
        added=tuple(sorted(copied.keys() - removed)),
        unchanged=tuple(sorted(unchanged)),
        removed=tuple(sorted(removed - copied.keys())),
    )
    whole = {name: joined([part[name] for part in parts]) for name in tables}
    return Dated(every, whole, result, replaced)


def _is_mirror(document: Document) -> bool:
    """Return whether a document is the index of a mirror, or a view of it."""
    facts = document.index_facts
    return facts is not None and facts.whole is not None and not facts.is_installed


def _binaries(tables: Tables, documents: Sequence[int]) -> Numbers:
    """Return what these documents list: distinct binaries with their stacks."""
    listings = tables["listings"]
    rows = listings.where(np.isin(listings["document"], documents))
    return np.unique(packed(rows["spec"], rows["stacks"]))


def _thinned_out(names: Collection[str], keep: int) -> set[str]:
    """Return the snapshots among these releases that are not kept."""
    removed = set[str]()
    for snapshots in snapshot_branches(names).values():
        days = {name: date.fromisoformat(str(release_date(name))) for name in snapshots}
        kept = thinned(days.values(), keep)
        removed |= {name for name, day in days.items() if day not in kept}
    return removed


def _rows_of(tables: Tables, chosen: Sequence[int], largest: int, offset: int = 0) -> Tables:
    """Return the rows of some documents, which are numbered from `offset` + 1.

    Args:
        tables: the rows of all documents.
        chosen: the documents, in their new order.
        largest: the largest number of a document.
        offset: how many documents are before them.
    """
    new = places(numbers(chosen), largest)
    new[new > 0] += np.uint32(offset)
    return {name: of_documents(frame, new) for name, frame in tables.items()}
