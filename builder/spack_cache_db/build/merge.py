"""Columns of many units → one whole: each text once, each spec of a release listed once.

The numbers here are provisional: they depend on how the input was divided. `ids.py` gives the
final ones, which do not.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spack_cache_db.build.arrays import Numbers, numbers, packed, places
from spack_cache_db.build.fold import Difference, fold
from spack_cache_db.build.graph import Edges, GraphMerge, Odd, Records, first_documents
from spack_cache_db.build.index_rules import kept_indexes
from spack_cache_db.build.listings import Listings, Unlisted, group_starts
from spack_cache_db.build.page_rules import kept_pages
from spack_cache_db.errors import Fault
from spack_cache_db.releases import sort_releases
from spack_cache_db.sources.columns import Columns, Document, Interned, Texts

T = TypeVar("T", bound=Hashable)
C = TypeVar("C", Listings, Unlisted, Records, Edges)


@dataclass(frozen=True, slots=True)
class Merged:
    """What the whole input says.

    `documents` has pages first, in the order of release and package; then all others, in the order
    of release and path. `document_release` has the place of each one's release in `releases`,
    where the foremost stands first. `listings` has one for each (release, spec), in that order;
    `texts` is what its numbers refer to, and those of all that follows.
    `odd` is what documents say otherwise of the dependencies of a spec than the one whose `edges`
    are kept.
    """

    documents: list[Document]
    releases: list[str]
    document_release: Numbers
    texts: Texts
    listings: Listings
    unlisted: Unlisted
    records: Records
    edges: Edges
    odd: Odd
    differences: list[Difference]
    faults: list[Fault]
    bytes_read: int


class Merge:
    """Takes columns unit by unit; `merged` joins them when all are there."""

    def __init__(self) -> None:
        self._documents: list[Document] = []
        self._faults: list[Fault] = []
        self._bytes_read = 0
        self._texts = Texts()
        self._listings = [Listings(*(np.zeros(0, np.uint32) for _ in Listings._fields))]
        self._unlisted = [Unlisted(*(np.zeros(0, np.uint32) for _ in Unlisted._fields))]
        self._graph = GraphMerge(self._texts)

    def add(self, columns: Columns) -> None:
        """Add what one unit says."""
        before, texts = len(self._documents), self._texts
        self._documents += columns.documents
        self._faults += columns.faults
        self._bytes_read += columns.bytes_read
        document = [*range(before, len(self._documents))]
        spec = _numbers(texts.hashes, columns.hashes)
        configuration = _numbers(texts.configurations, columns.configurations)
        stacks = _numbers(texts.stack_sets, columns.stack_sets)
        size = _from_one(_numbers(texts.sizes, columns.sizes))
        tarball = _from_one(_numbers(texts.tarballs, columns.tarballs))
        listed = (document, spec, configuration, stacks, size, tarball)
        self._listings.append(Listings(*map(_translated, columns.listings, listed)))
        known = (document, spec, configuration)
        self._unlisted.append(Unlisted(*map(_translated, columns.unlisted, known)))
        self._graph.add(columns.graph, document, spec)

    def merged(self) -> Merged:
        """Join what was added; a page or an index that contradicts another becomes a fault."""
        listings = Listings(*map(np.concatenate, zip(*self._listings, strict=True)))
        unlisted = Unlisted(*map(np.concatenate, zip(*self._unlisted, strict=True)))
        self._listings.clear()
        pages, faults = kept_pages(self._documents, listings, self._texts.hashes.things)
        others, more_faults = kept_indexes(self._documents)
        kept, releases = _in_order(self._documents, pages, others)
        documents = [self._documents[at] for at in kept]
        place = {name: at for at, name in enumerate(releases)}
        document_release = numbers(place[each.release] for each in documents)
        rank = places(numbers(kept), len(self._documents)).astype(np.uint32)
        unlisted = _of_kept(unlisted, rank)
        listings, keys = _by_release_and_spec(_of_kept(listings, rank), document_release)
        records, edges = self._graph.merged()
        records = _of_kept(records, rank)
        edges, odd = first_documents(records, _of_kept(edges, rank))
        folded, differences = fold(listings, keys, self._texts.stack_sets)
        return Merged(
            documents=documents,
            releases=releases,
            document_release=document_release,
            texts=self._texts,
            listings=folded,
            unlisted=unlisted.where(np.argsort(unlisted.document, kind="stable")),
            records=records,
            edges=edges,
            odd=odd,
            differences=differences,
            faults=[*self._faults, *faults, *more_faults],
            bytes_read=self._bytes_read,
        )


def _numbers(known: Interned[T], things: Iterable[T]) -> list[int]:
    return [*map(known.__getitem__, things)]


def _from_one(numbers: list[int]) -> list[int]:
    """Return the numbers of what counts from 1, where 0 is 0."""
    return [0, *(number + 1 for number in numbers)]


def _translated(numbers: array[int], names: Sequence[int]) -> Numbers:
    """Return `names[number]` for each number."""
    translated: Numbers = np.array(names, dtype=np.uint32)[np.asarray(numbers)]
    return translated


def _in_order(
    documents: Sequence[Document], pages: list[int], others: list[int]
) -> tuple[list[int], list[str]]:
    """Return the documents that are kept, in their order (see `Merged`), and all releases."""
    releases = sort_releases({documents[at].release for at in (*pages, *others)})
    place = {name: at for at, name in enumerate(releases)}

    def order(at: int) -> tuple[object, ...]:
        each = documents[at]
        package = each.page.package if each.page else ""
        return place[each.release], package, each.path, each.sha256, each.location

    return [*sorted(pages, key=order), *sorted(others, key=order)], releases


def _of_kept(columns: C, rank: Numbers) -> C:
    """Return what the documents that are kept say; `rank` has their places from 1, and else 0."""
    columns = columns._replace(document=rank[columns.document])
    if not columns.document.all():
        columns = columns.where(np.flatnonzero(columns.document))
    return columns._replace(document=columns.document - np.uint32(1))


def _by_release_and_spec(listings: Listings, release: Numbers) -> tuple[Listings, Numbers]:
    """Return listings in the order of release, spec and document, and the keys of that order."""
    keys = packed(release[listings.document], listings.spec)
    order = np.argsort(keys)
    if len(group_starts(keys[order])) < len(keys):
        order = np.lexsort((listings.document, keys))
    return listings.where(order), keys[order]
