"""The snapshots of a history: which are added, kept and removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spack_cache_db.assembly.options import Snapshots
from spack_cache_db.errors import ArgumentError
from spack_cache_db.releases import (
    release_kind,
    snapshot_branches,
    sort_releases,
    thinned_out,
)
from spack_cache_db.sources.facts import Document
from spack_cache_db.sources.frames import (
    Frame,
    Numbers,
    are_among,
    distinct,
    joined,
    number_array,
    of_documents,
    packed,
    renumbering,
)

Tables = Mapping[str, Frame]
"""The columns of the input, by the names of `TABLES`."""

MOST_NAMED = 5
"""Number of releases that an error lists."""


class Dated(NamedTuple):
    """The documents and tables of a history on a day, numbered anew.

    Attributes:
        documents: the documents that remain, then the copies in snapshots.
        tables: the rows of these documents.
        snapshots: the options, with the snapshots that were added and removed.
        replaced: the former numbers of documents that today's documents replace.
    """

    documents: list[Document]
    tables: Tables
    snapshots: Snapshots
    replaced: set[int]


class _History(NamedTuple):
    """The numbers of the documents of each release, of former days and of today.

    Documents count from 1.
    """

    past: dict[str, list[int]]
    present: dict[str, list[int]]


def is_mirror(document: Document) -> bool:
    """Return whether a document has all binaries of a mirror, and is no installation.

    A single spec file and a page are not mirrors.
    """
    facts = document.index_facts
    return facts is not None and facts.whole is not None and not facts.is_installed


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
) -> Dated:
    """Return documents with today's snapshots and without those that are thinned or
    dropped.

    The databases of an input are its past, and all other sources are its present. On a
    day, a release of the present replaces the same release of the past, and its mirrors
    are listed in a snapshot as well, unless the newest snapshot before has the same
    binaries. A snapshot that is the mirror of its own is never replaced by a copy.

    Args:
        documents: all documents of the input; their numbers count from 1.
        tables: the rows of these documents.
        old: the numbers of documents from databases.
        snapshots: the options; without a day, nothing is copied or replaced.
    """
    require_droppable(documents, old, snapshots.drop)
    history = _divided(documents, old, snapshots)
    known_releases = history.past.keys() | history.present.keys()

    # Releases of today replace those of former days, and mirrors of today are copied
    # into snapshots, under the numbers of the mirrors.
    replaced: set[int] = set()
    for release in history.present:
        replaced.update(history.past.pop(release, ()))
    copies = _copies_of_today(documents, tables, history, snapshots, replaced)

    # Older snapshots are thinned; even one of today, if its day is not a newer one.
    releases = {*history.past, *history.present}
    releases |= {copy.release for copy in copies.values()}
    removed: set[str] = set()
    if snapshots.keep:
        removed = thinned_out(releases, snapshots.keep)
    for number, copy in list(copies.items()):
        if copy.release in removed:
            del copies[number]

    # The documents that remain.
    left_out = {*removed, *snapshots.drop}
    remaining = []
    for number, document in enumerate(documents, start=1):
        if number not in replaced and document.release not in left_out:
            remaining.append(number)
    added = {copy.release for copy in copies.values()}
    return Dated(
        documents=[documents[number - 1] for number in remaining] + [*copies.values()],
        tables=_with_copies(tables, len(documents), remaining, list(copies)),
        snapshots=snapshots._replace(
            added=tuple(sorted(added)),
            removed=tuple(sorted(removed & known_releases)),
        ),
        replaced=replaced,
    )


def _copies_of_today(
    documents: Sequence[Document],
    tables: Tables,
    history: _History,
    snapshots: Snapshots,
    replaced: set[int],
) -> dict[int, Document]:
    """Return the copies of today's mirrors, by the numbers of the mirrors.

    Args:
        documents: all documents.
        tables: the rows of these documents.
        history: the documents by release; a snapshot that is replaced is taken out.
        snapshots: the options.
        replaced: the numbers of documents that are replaced, to which those of such
            snapshots are added.
    """
    copies: dict[int, Document] = {}
    for release in history.present:
        snapshot = f"{release}-{snapshots.day}"
        mirrors = _mirrors_to_copy(release, snapshot, history, documents, tables)
        if mirrors:
            replaced.update(history.past.pop(snapshot, ()))
        for number in mirrors:
            mirror = documents[number - 1]
            copies[number] = mirror._replace(release=snapshot, is_copy=True)
    return copies


def _divided(
    documents: Sequence[Document], old: Collection[int], snapshots: Snapshots
) -> _History:
    """Return the documents of former days and of today; those that are dropped are in
    neither.

    Without a day there is no today: all documents are of the past.
    """
    history = _History({}, {})
    for number, document in enumerate(documents, start=1):
        if document.release in snapshots.drop:
            continue
        is_past = number in old or not snapshots.day
        side = history.past if is_past else history.present
        side.setdefault(document.release, []).append(number)
    return history


def _mirrors_to_copy(
    release: str,
    snapshot: str,
    history: _History,
    documents: Sequence[Document],
    tables: Tables,
) -> list[int]:
    """Return the numbers of the mirrors of a release that a snapshot of today lists;
    none if it has no news.
    """
    past, present = history
    if release_kind(release) == "snapshot" or snapshot in present:
        return []
    mirrors = [
        number for number in present[release] if is_mirror(documents[number - 1])
    ]
    if not mirrors:
        return []
    # A second build on one day replaces the copies of the first one, but no mirror.
    if snapshot in past:
        is_replaceable = all(documents[number - 1].is_copy for number in past[snapshot])
        return mirrors if is_replaceable else []
    # Snapshots are sorted, the newest one first.
    releases = past | present
    for earlier in snapshot_branches(releases).get(release, ()):
        if earlier < snapshot:
            today = _binaries(tables, mirrors)
            before = _binaries(tables, releases[earlier])
            return [] if np.array_equal(today, before) else mirrors
    return mirrors


def _with_copies(
    tables: Tables, count: int, remaining: Sequence[int], copied: Sequence[int]
) -> Tables:
    """Return the rows of the remaining documents, then those of copies, numbered anew.

    Args:
        tables: the rows of all documents.
        count: the number of all documents.
        remaining: the numbers of those that remain; they count from 1 again.
        copied: the numbers of those that are copied; copies count from there on.
    """
    number = renumbering(number_array(remaining), count)
    number_of_copy = renumbering(number_array(copied), count)
    number_of_copy[number_of_copy > 0] += np.uint32(len(remaining))
    joined_tables = {}
    for name, frame in tables.items():
        of_remaining = of_documents(frame, number)
        of_copies = of_documents(frame, number_of_copy)
        joined_tables[name] = joined([of_remaining, of_copies])
    return joined_tables


def require_droppable(
    documents: Sequence[Document], old: Collection[int], dropped: Iterable[str]
) -> None:
    """Raise ArgumentError for a release that cannot be dropped.

    Only a database can have a release that is to be removed: any other source would
    bring it back with the next build.
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
    chosen = number_array(sorted(documents))
    rows = listings.where(are_among(listings["document"], chosen))
    return distinct(packed(rows["spec"], rows["stacks"]))
