"""The snapshots of a history: which are added, kept and removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from spack_cache_db.assembly.frames import (
    Frame,
    Numbers,
    joined,
    numbers,
    of_documents,
    packed,
    places,
)
from spack_cache_db.assembly.options import Snapshots
from spack_cache_db.errors import ArgumentError
from spack_cache_db.releases import (
    release_kind,
    snapshot_branches,
    sort_releases,
    thinned_out,
)
from spack_cache_db.sources.facts import Document

Tables = Mapping[str, Frame]

MOST_NAMED = 5
"""Number of releases that an error lists."""


def copied_releases(documents: Iterable[Document]) -> set[str]:
    """Return the releases whose documents are all copies that `build --snapshot`
    made.
    """
    copied: set[str] = set()
    own: set[str] = set()
    for document in documents:
        side = copied if document.is_copy else own
        side.add(document.release)
    return copied - own


def dated(
    documents: Sequence[Document],
    tables: Tables,
    old: Collection[int],
    snapshots: Snapshots,
) -> tuple[list[Document], Tables, Snapshots, set[int]]:
    """Return documents with today's snapshots and without those that are thinned or
    dropped.

    The databases of an input are its past, and all other sources are its present. On a
    day, a release of the present replaces the same release of the past, and its mirrors
    are listed in a snapshot as well, unless the newest snapshot before has the same
    binaries. A snapshot that is the mirror of its own is never replaced by a copy.

    Documents count from 1; `old` has the numbers of those from databases. Returned are
    also the snapshots that were added and removed, and the former numbers of replaced
    documents.
    """
    require_droppable(documents, old, snapshots.drop)
    past: dict[str, list[int]] = {}
    present: dict[str, list[int]] = {}
    for number, document in enumerate(documents, start=1):
        if document.release in snapshots.drop:
            continue
        side = past if number in old or not snapshots.day else present
        side.setdefault(document.release, []).append(number)
    known = past.keys() | present.keys()
    replaced = {number for name in present for number in past.pop(name, ())}
    copies: dict[int, Document] = {}
    for name, found in present.items():
        snapshot, releases = f"{name}-{snapshots.day}", past | present
        mirrors = [
            number
            for number in found
            if (facts := documents[number - 1].index_facts) and facts.whole
            if not facts.is_installed
        ]
        if not mirrors or release_kind(name) == "snapshot" or snapshot in present:
            continue
        earlier = past.get(snapshot, [])
        if not all(documents[number - 1].is_copy for number in earlier):
            continue
        dates = snapshot_branches(releases).get(name, ())
        before = next((date for date in dates if date < snapshot), "")
        then = [] if snapshot in past else releases.get(before, [])
        if then and np.array_equal(_binaries(tables, mirrors), _binaries(tables, then)):
            continue
        replaced.update(past.pop(snapshot, ()))
        for number in mirrors:
            copy = documents[number - 1]._replace(release=snapshot, is_copy=True)
            copies[number] = copy
    names = {*past, *present, *(copy.release for copy in copies.values())}
    removed = thinned_out(names, snapshots.keep) if snapshots.keep else set[str]()
    copies = {
        number: copy for number, copy in copies.items() if copy.release not in removed
    }
    left_out = {*removed, *snapshots.drop}
    chosen = [
        number
        for number, document in enumerate(documents, start=1)
        if number not in replaced and document.release not in left_out
    ]
    first, second = (places(numbers(rows), len(documents)) for rows in (chosen, copies))
    second[second > 0] += np.uint32(len(chosen))
    added = {copy.release for copy in copies.values()}
    return (
        [*(documents[number - 1] for number in chosen), *copies.values()],
        {
            name: joined([of_documents(frame, first), of_documents(frame, second)])
            for name, frame in tables.items()
        },
        snapshots._replace(
            added=tuple(sorted(added)), removed=tuple(sorted(removed & known))
        ),
        replaced,
    )


def require_droppable(
    documents: Sequence[Document], old: Collection[int], dropped: Iterable[str]
) -> None:
    """Raise ArgumentError for a release that cannot be dropped.

    Only a database can have a release that is to be removed: any other source would
    bring it back
    with the next build.
    """
    of_databases = {documents[number - 1].release for number in old}
    of_others = {
        document.release
        for number, document in enumerate(documents, 1)
        if number not in old
    }
    for name in dropped:
        if name in of_others:
            raise ArgumentError(
                f"drop is {name!r}, which a source beside the databases has: leave out that source"
            )
        if name not in of_databases:
            examples = ", ".join(sort_releases(of_databases)[:MOST_NAMED]) or "none"
            raise ArgumentError(
                f"drop is {name!r}, expected a release of a database of the input: {examples}"
            )


def _binaries(tables: Tables, documents: Sequence[int]) -> Numbers:
    """Return the distinct binaries that these documents list, with their stacks."""
    listings = tables["listings"]
    rows = listings.where(np.isin(listings["document"], documents))
    return np.unique(packed(rows["spec"], rows["stacks"]))
