"""Merges the columns of all units, and reports their contradictions.

If documents contradict each other, the first document with a value wins, in the order
of releases and documents; the other values become differences. A hash has one
configuration: that of the first listing, or of the first record if no document lists
it. The numbers of this module depend on how the input was divided; `ids` assigns the
final numbers, which do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.assembly.documents import consistent_documents, in_order
from spack_cache_db.assembly.frames import (
    Frame,
    Numbers,
    first_places,
    groups,
    joined,
    numbers,
    of_documents,
    packed,
    pairs,
    places,
    varying,
)
from spack_cache_db.assembly.known_packages import distinct_facts
from spack_cache_db.assembly.options import NO_SNAPSHOTS, Snapshots
from spack_cache_db.assembly.snapshots import Tables, dated
from spack_cache_db.errors import Fault
from spack_cache_db.sources.facts import (
    Document,
    ModuleFacts,
    Origin,
    PackageFacts,
    Refusal,
    Stacks,
)
from spack_cache_db.sources.tarballs import TarballParts, tarball_url
from spack_cache_db.sources.writer import (
    DOCUMENTS,
    OPTIONAL,
    TABLES,
    Columns,
    Interned,
    Texts,
)


class Difference(NamedTuple):
    """Values of one column that contradict the stored values, row by row.

    Both frames have the columns `document`, `spec`, and `column` itself.
    """

    column: str
    stated: Frame
    stored: Frame


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged input; numbers refer to `documents`, `releases` and `texts`.

    The frames have the columns of `TABLES`.

    Attributes:
        documents: pages by release and package, then other documents by release and
            path.
        releases: in the order of `sort_releases`.
        document_release: the release of each document, by its number.
        listings: one row for each (release, spec), in that order, without
            configurations.
        document_listings: see `_of_documents`.
        edges: the dependencies of each spec in the first document that has a record of
            it.
        specs: each spec once, with the `document` that gives its `configuration`, the
            `release` of that document, its `stacks` in all releases, and `is_listed` if
            a release lists it.
        other_dependencies: records and edges of documents that give a spec other
            dependencies.
        packages: package data, sorted by package, with at most one of each form.
        origins: the options of databases in the input.
        left_out: the documents that these databases left out.
        snapshots: the snapshots that are new and those that are thinned.
    """

    documents: list[Document]
    releases: list[str]
    document_release: Numbers
    texts: Texts
    listings: Frame
    document_listings: Frame
    records: Frame
    edges: Frame
    specs: Frame
    differences: list[Difference]
    other_dependencies: tuple[Frame, Frame]
    packages: list[PackageFacts]
    modules: list[ModuleFacts]
    origins: list[Origin]
    left_out: list[tuple[str, str]]
    snapshots: Snapshots
    faults: list[Fault]
    refusals: list[Refusal]
    bytes_read: int


class Merge:
    """Collects the columns of units; `merged` joins them at the end."""

    def __init__(self) -> None:
        # The units without their tables and texts.
        self._units: list[Columns] = []
        self._documents: list[Document] = []
        self._texts = Texts()
        self._parts: dict[str, list[Frame]] = {
            table: [Frame(**dict.fromkeys(columns, np.zeros(0, np.uint32)))]
            for table, columns in TABLES.items()
        }

    def add(self, columns: Columns) -> None:
        """Add the columns of one unit."""
        before = len(self._documents)
        self._documents += columns.documents
        new = {DOCUMENTS: np.arange(before, len(self._documents) + 1, dtype=np.uint32)}
        for name, values in columns.things.items():
            number = getattr(self._texts, name).__getitem__
            new[name] = np.array([0, *map(number, values)], np.uint32)
        for table, arrays in columns.tables.items():
            if arrays["document"]:
                frame = {
                    name: np.asarray(array, np.uint32) for name, array in arrays.items()
                }
                self._parts[table].append(Frame(**frame).renumbered(new))
        self._units.append(replace(columns, things={}, tables={}))

    def merged(
        self, first: str | None = None, snapshots: Snapshots = NO_SNAPSHOTS
    ) -> Merged:
        """Return all units as one; a document that contradicts another one is refused.

        Args:
            first: the release that comes before all others.
            snapshots: the options about snapshots.
        """
        documents, replaced, texts = self._documents, set[int](), self._texts
        frames: Tables = {table: joined(self._parts.pop(table)) for table in TABLES}
        # A unit with an origin is a database of an earlier build.
        is_old = [bool(unit.origins) for unit in self._units for _ in unit.documents]
        if snapshots != NO_SNAPSHOTS:
            old = {*np.flatnonzero(is_old) + 1}
            documents, frames, snapshots, replaced = dated(
                documents, frames, old, snapshots
            )
        chosen, refusals = consistent_documents(
            documents, frames["listings"], texts.hashes.things
        )
        chosen, releases = in_order(documents, chosen, first)
        document_number = places(numbers(chosen), len(documents))
        documents = [documents[number - 1] for number in chosen]
        packages, refused = distinct_facts(self._newest("packages", "form", snapshots))
        release_number = {name: at for at, name in enumerate(releases, start=1)}
        document_release = numbers(
            [0, *(release_number[document.release] for document in documents)]
        )
        frames = {
            table: of_documents(frame, document_number)
            for table, frame in frames.items()
        }
        edges, other_dependencies = first_dependencies(
            frames["records"], frames["edges"]
        )
        stated = frames["listings"]
        stated = stated.having(release=document_release[stated["document"]])
        stated = stated.where(
            np.lexsort((stated["document"], packed(stated["release"], stated["spec"])))
        )
        unlisted = frames["unlisted"]
        unlisted = unlisted.where(np.argsort(unlisted["document"], kind="stable"))
        specs = _specs(
            stated, [unlisted, frames["unrecorded"]], document_release, texts
        )
        deviating = [_deviating(frame, specs) for frame in (stated, unlisted)]
        stated = _of_own_configurations(stated, specs, texts)
        listings, differences = fold(stated, texts.stack_sets)
        records = frames["records"]
        listed_keys = packed(stated["document"], stated["spec"])
        is_listed = np.isin(packed(records["document"], records["spec"]), listed_keys)
        return Merged(
            documents=documents,
            releases=releases,
            document_release=document_release,
            texts=texts,
            listings=listings,
            document_listings=_of_documents(stated, listings, documents),
            records=records.having(is_listed=is_listed.astype(np.uint8)),
            edges=edges,
            specs=specs,
            differences=[*deviating, *differences],
            other_dependencies=other_dependencies,
            packages=packages,
            modules=self._newest("modules", "release", snapshots),
            origins=self.origins,
            left_out=self._left_out(replaced),
            snapshots=snapshots,
            faults=[fault for unit in self._units for fault in unit.faults],
            refusals=[*refusals, *refused],
            bytes_read=sum(unit.bytes_read for unit in self._units),
        )

    @property
    def origins(self) -> list[Origin]:
        """The options of databases in the input."""
        return [origin for unit in self._units for origin in unit.origins]

    def _newest(self, name: str, key: str, snapshots: Snapshots) -> list[Any]:
        """Return all package data or modules; on a day, today's replace those of
        databases.

        Data with the same `key` is replaced; a key that is None today replaces all.
        """
        old: list[Any] = []
        new: list[Any] = []
        for unit in self._units:
            (old if unit.origins else new).extend(getattr(unit, name))
        today = {getattr(facts, key) for facts in new if snapshots.day}
        return [
            *new,
            *(facts for facts in old if not today & {getattr(facts, key), None}),
        ]

    def _left_out(self, replaced: set[int]) -> list[tuple[str, str]]:
        """Return the documents that databases left out, unless a document of them is
        replaced.
        """
        rows, before = list[tuple[str, str]](), 0
        for unit in self._units:
            after = before + len(unit.documents)
            if replaced.isdisjoint(range(before + 1, after + 1)):
                rows += unit.left_out
            before = after
        return rows


def _of_documents(
    stated: Frame, listings: Frame, documents: Sequence[Document]
) -> Frame:
    """Return the listings of single documents, for specs that several documents list.

    The listings of pages are kept. A listing of an index is kept if its size or tarball
    differs from the folded listing; its stack is known anyway. `stated` is in the order
    of `listings`.
    """
    _, group = groups(packed(stated["release"], stated["spec"]))
    is_shared = (np.bincount(group) > 1)[group]
    shared, folded = stated.where(is_shared), listings.where(group[is_shared])
    is_page = np.array([False, *(document.page is not None for document in documents)])
    is_stated = is_page[shared["document"]]
    for name in OPTIONAL:
        is_stated |= shared[name] != folded[name]
    shared = shared.where(is_stated)
    return shared.where(np.lexsort((shared["spec"], shared["document"])))


def fold(
    listings: Frame, stack_sets: Interned[Stacks]
) -> tuple[Frame, list[Difference]]:
    """Return one listing for each spec of a release, and the differing values of
    documents.

    A listing has the stacks of all documents; its size and its tarball are from the
    first document that has them. The listings are in the order of release, spec and
    document.
    """
    starts, group = groups(packed(listings["release"], listings["spec"]))
    rows = np.arange(len(listings))
    if len(starts) == len(rows):
        return listings, []
    folded = listings.where(starts)
    folded = folded.having(stacks=_unions(stack_sets, listings["stacks"], starts))
    differences = []
    for name in OPTIONAL:
        column = listings[name]
        has_value = column > 0
        first = np.minimum.reduceat(np.where(has_value, rows, len(rows)), starts)
        first = np.where(first < len(rows), first, starts)
        folded = folded.having(**{name: column[first]})
        # 0 means that a document lacks the value, which contradicts nothing. A binary
        # may be in two mirrors, so two tarballs do not contradict each other either.
        if name != "tarball":
            odd = has_value & (column != column[first][group])
            stored = listings.where(first[group][odd])
            differences.append(Difference(name, listings.where(odd), stored))
    return folded, differences


def _unions(stack_sets: Interned[Stacks], sets: Numbers, starts: Numbers) -> Numbers:
    """Return the union of the sets of stacks of each group, which begins at `starts`.

    Unions that are new are added to `stack_sets`.
    """

    @cache
    def union(numbers: frozenset[int]) -> int:
        return stack_sets[
            tuple(
                sorted({name for at in numbers for name in stack_sets.things[at - 1]})
            )
        ]

    rows, ends = sets.tolist(), np.append(starts, len(sets)).tolist()
    groups = (frozenset(rows[start:end]) for start, end in pairwise(ends))
    return np.fromiter(map(union, groups), sets.dtype, len(starts))


def _specs(
    listings: Frame,
    unlisted_frames: Sequence[Frame],
    document_release: Numbers,
    texts: Texts,
) -> Frame:
    """Return `Merged.specs`; the first row of a spec counts.

    The unlisted frame with the most data comes first.
    """
    unlisted = joined(unlisted_frames)
    no_stacks = np.full_like(unlisted["spec"], texts.stack_sets[()])
    names = ("document", "spec", "configuration", "stacks")
    frame = Frame(**{name: listings[name] for name in names})
    rows = joined([frame, unlisted.having(stacks=no_stacks)])
    spec = np.flatnonzero(np.bincount(rows["spec"], minlength=1))
    first = first_places(rows["spec"], len(texts.hashes))[spec]
    stacks, document = rows["stacks"][first], rows["document"][first]
    varies = varying(rows["spec"], rows["stacks"], len(texts.hashes))
    different = rows.where(varies[rows["spec"]])
    spec_of_set, sets, _ = pairs(different["spec"], different["stacks"])
    stacks[varies[spec]] = _unions(texts.stack_sets, sets, groups(spec_of_set)[0])
    return Frame(
        spec=spec,
        document=document,
        release=document_release[document],
        configuration=rows["configuration"][first],
        stacks=stacks,
        is_listed=(first < len(listings)).astype(np.uint8),
    )


def _deviating(stated: Frame, specs: Frame) -> Difference:
    """Return the rows whose configuration differs from that of `specs`."""
    at = np.searchsorted(specs["spec"], stated["spec"])
    odd = stated["configuration"] != specs["configuration"][at]
    return Difference("configuration", stated.where(odd), specs.where(at[odd]))


def _of_own_configurations(listings: Frame, specs: Frame, texts: Texts) -> Frame:
    """Return listings whose tarballs are relative to the configurations of their
    specs.
    """
    now = specs["configuration"][np.searchsorted(specs["spec"], listings["spec"])]
    odd = np.flatnonzero((listings["configuration"] != now) & (listings["tarball"] > 0))
    tarball = listings["tarball"].copy()
    configurations = texts.configurations.things
    parts = TarballParts(configurations)
    rows = (
        listings.where(odd)
        .having(now=now[odd])
        .rows("spec", "configuration", "tarball", "now")
    )
    for row, (spec, stated, number, configuration) in zip(odd, rows, strict=True):
        dag_hash = texts.hashes.things[spec - 1]
        url = tarball_url(
            texts.tarballs.things[number - 1], configurations[stated - 1], dag_hash
        )
        tarball[row] = texts.tarballs[parts.split(url, configuration, dag_hash)]
    columns = listings.columns | {"tarball": tarball}
    del columns["configuration"]
    return Frame(**columns)


def first_dependencies(
    records: Frame, edges: Frame
) -> tuple[Frame, tuple[Frame, Frame]]:
    """Return the edges of each spec's first record, and the records and edges that
    differ.

    A spec's edges are part of its hash, except build dependencies, which old indexes
    leave out.
    """
    keys = packed(records["spec"], records["document"])
    order = np.argsort(keys)
    keys = keys[order]
    of = np.searchsorted(keys, packed(edges["spec"], edges["document"]))
    # A set of edges is identified by the sum of their hashes.
    hashes = packed(edges["dependency"], edges["use"]).astype(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every
    # other.
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    sums = np.zeros(len(keys), np.uint64)
    np.add.at(sums, of, hashes ^ (hashes >> np.uint64(31)))
    begins = np.diff(keys >> 32, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
    odd = sums != sums[first]
    return edges.where(begins[of]), (records.where(order[odd]), edges.where(odd[of]))
