"""Snapshots: today's mirrors become part of a history, and older snapshots are thinned.

The databases of an input are its past, and all other sources are its present.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
from spack_cache_db.releases import release_kind, snapshot_branches, thinned_out
from spack_cache_db.sources.columns import Document

Tables = Mapping[str, Frame]


def dated(
    documents: Sequence[Document], tables: Tables, old: Collection[int], snapshots: Snapshots
) -> tuple[list[Document], Tables, Snapshots, set[int]]:
    """Return documents with today's snapshots and without those that are thinned.

    On a day, a release of the present replaces the same release of the past, and its mirrors are
    listed in a snapshot as well, unless the newest snapshot before has the same binaries.

    Documents count from 1; `old` has the numbers of those from databases. Returned are also the
    snapshots that were added and removed, and the former numbers of replaced documents.
    """
    past: dict[str, list[int]] = {}
    present: dict[str, list[int]] = {}
    for number, document in enumerate(documents, start=1):
        releases = past if number in old or not snapshots.day else present
        releases.setdefault(document.release, []).append(number)
    replaced = {number for name in present for number in past.pop(name, ())}
    copies: dict[int, Document] = {}
    for name, found in present.items():
        snapshot, known = f"{name}-{snapshots.day}", past | present
        mirrors = [number for number in found if _is_mirror(documents[number - 1])]
        if not mirrors or release_kind(name) == "snapshot" or snapshot in present:
            continue
        before = (each for each in snapshot_branches(known).get(name, ()) if each < snapshot)
        then = [] if snapshot in past else known.get(next(before, ""), [])
        if then and np.array_equal(_binaries(tables, mirrors), _binaries(tables, then)):
            continue
        replaced.update(past.pop(snapshot, ()))
        copies |= {at: documents[at - 1]._replace(release=snapshot) for at in mirrors}
    names = {*past, *present, *(each.release for each in copies.values())}
    removed = thinned_out(names, snapshots.keep) if snapshots.keep else set[str]()
    copies = {number: each for number, each in copies.items() if each.release not in removed}
    kept = [
        number
        for number, each in enumerate(documents, start=1)
        if number not in replaced and each.release not in removed
    ]
    first, second = (places(numbers(each), len(documents)) for each in (kept, copies))
    second[second > 0] += np.uint32(len(kept))
    return (
        [*(documents[number - 1] for number in kept), *copies.values()],
        {
            name: joined([of_documents(frame, first), of_documents(frame, second)])
            for name, frame in tables.items()
        },
        snapshots._replace(
            added=tuple(sorted({each.release for each in copies.values()})),
            removed=tuple(sorted(removed & (past.keys() | present.keys()))),
        ),
        replaced,
    )


def _is_mirror(document: Document) -> bool:
    """Return whether a document is the index of a mirror, or a view of it."""
    facts = document.index_facts
    return facts is not None and facts.whole is not None and not facts.is_installed


def _binaries(tables: Tables, documents: Sequence[int]) -> Numbers:
    """Return what these documents list: distinct binaries with their stacks."""
    listings = tables["listings"]
    rows = listings.where(np.isin(listings["document"], documents))
    return np.unique(packed(rows["spec"], rows["stacks"]))
