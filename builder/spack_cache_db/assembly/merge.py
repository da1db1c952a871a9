"""Merges the columns of all units, and reports their contradictions.

A document that cannot stand beside another one is refused as a whole (see
`consistent_documents`). Of the others, the first with a value wins, in the order of
releases and documents; the other values become differences. A hash has one
configuration: that of the first listing, or of the first record if no document lists
it. The numbers of this module depend on how the input was divided; `ids` assigns the
final numbers, which do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.assembly.documents import consistent_documents, in_order
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
from spack_cache_db.sources.frames import (
    Frame,
    Numbers,
    are_among,
    distinct_pairs,
    first_rows,
    groups,
    has_different_values,
    joined,
    number_array,
    numbers_in,
    of_documents,
    packed,
    renumbering,
    rows_by,
)
from spack_cache_db.sources.tarballs import TarballParts, tarball_url
from spack_cache_db.sources.writer import (
    DOCUMENTS,
    EDGE_LISTS,
    EDGES,
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


class OtherDependencies(NamedTuple):
    """The records that give a spec other dependencies than its first record, and their
    edges.

    The edges have the columns `document` and `spec` as well.
    """

    records: Frame
    edges: Frame


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged input; numbers refer to `documents`, `releases` and `texts`.

    The frames have the columns of `TABLES`.

    Attributes:
        documents: pages by release and package, then other documents by release and
            path.
        releases: in the order of `sort_releases`.
        document_release: the release of each document, by its number.
        texts: the values of all numbers; new ones may have been added.
        listings: one row for each (release, spec), in that order, without
            configurations.
        document_listings: see `_document_listings`.
        records: the records of indexes, and whether their document lists the spec.
        edges: the dependencies of each spec in the first document that has a record of
            it.
        specs: each spec once, with the `document` that gives its `configuration`, the
            `release` of that document, its `stacks` in all releases, and `is_listed` if
            a release lists it.
        differences: values that contradict those of the first document.
        other_dependencies: records and edges that contradict `edges`.
        packages: package data, sorted by package, with at most one of each form.
        modules: environment modules.
        origins: the options of databases in the input.
        left_out: the documents that these databases left out.
        snapshots: the snapshots that are new and those that are thinned.
        faults: the faults of files that cannot be read.
        refusals: documents that contradict others and are left out.
        bytes_read: size of the input, in bytes.
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
    other_dependencies: OtherDependencies
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
        self._edge_list_count = 0
        # The rows of each table, one frame for each unit. The first frame is empty: it
        # gives a table its columns even if no unit has rows of it.
        self._parts: dict[str, list[Frame]] = {}
        for table, columns in TABLES.items():
            no_rows = np.zeros(0, np.uint32)
            empty = Frame(**dict.fromkeys(columns, no_rows))
            self._parts[table] = [empty]

    def add(self, columns: Columns) -> None:
        """Add the columns of one unit."""
        # For each number in the unit: the number in the whole input. 0 (no value) stays
        # 0, except for documents: all rows have one, so index 0 is not used.
        before = len(self._documents)
        self._documents += columns.documents
        after = len(self._documents)
        new_numbers = {}
        new_numbers[DOCUMENTS] = np.arange(before, after + 1, dtype=np.uint32)
        # A unit numbers its lists of dependencies in order, without gaps.
        edge_lists = columns.tables[EDGES]["edge_list"]
        list_count = edge_lists[-1] if edge_lists else 0
        list_numbers = np.arange(1 + list_count)
        list_numbers[1:] += self._edge_list_count
        new_numbers[EDGE_LISTS] = list_numbers.astype(np.uint32)
        self._edge_list_count += list_count
        # The values of each dictionary of `Texts`; an unknown value gets the next
        # number.
        for name, values in columns.things.items():
            interned = getattr(self._texts, name)
            value_numbers = [0]
            for value in values:
                value_numbers.append(interned[value])
            new_numbers[name] = np.array(value_numbers, np.uint32)

        # The rows of the unit, with these numbers.
        for table, arrays in columns.tables.items():
            frame = {}
            for name, array in arrays.items():
                frame[name] = np.asarray(array, np.uint32)
            rows = Frame(**frame)
            if len(rows):
                self._parts[table].append(rows.renumbered(new_numbers))
        self._units.append(replace(columns, things={}, tables={}))

    def merged(
        self, first: str | None = None, snapshots: Snapshots = NO_SNAPSHOTS
    ) -> Merged:
        """Return all units as one; a document that contradicts another one is refused.

        Args:
            first: the release that comes before all others.
            snapshots: the options about snapshots.
        """
        texts = self._texts
        documents = self._documents
        # The parts of a table are freed when it is joined. The rows of all tables but
        # edges belong to documents.
        edges = joined(self._parts.pop(EDGES))
        tables: Tables = {
            table: joined(self._parts.pop(table)) for table in list(self._parts)
        }

        # Add the snapshots of today, and leave out those that options remove. From here
        # on, `snapshots` has the names of both. `replaced` are the documents of
        # databases that today's documents replace.
        replaced: set[int] = set()
        if snapshots != NO_SNAPSHOTS:
            documents, tables, snapshots, replaced = dated(
                documents, tables, self._numbers_of_databases(), snapshots
            )

        # Choose the documents, sort them, and number them anew.
        chosen, refusals = consistent_documents(
            documents, tables["listings"], texts.hashes.things
        )
        chosen, releases = in_order(documents, chosen, first)
        new_number = renumbering(number_array(chosen), len(documents))
        documents = [documents[number - 1] for number in chosen]
        document_release = _document_releases(documents, releases)
        tables = {
            table: of_documents(frame, new_number) for table, frame in tables.items()
        }

        # Merge their rows. Today's package data replaces that of the same form.
        listed = _merged_listings(tables, documents, document_release, texts)
        first_edges, other_dependencies = first_dependencies(tables["records"], edges)
        packages, refused_packages = distinct_facts(
            self._newest("packages", "form", snapshots)
        )
        return Merged(
            documents=documents,
            releases=releases,
            document_release=document_release,
            texts=texts,
            listings=listed.listings,
            document_listings=listed.document_listings,
            records=listed.records,
            edges=first_edges,
            specs=listed.specs,
            differences=listed.differences,
            other_dependencies=other_dependencies,
            packages=packages,
            modules=self._newest("modules", "release", snapshots),
            origins=self.origins,
            left_out=self._left_out(replaced),
            snapshots=snapshots,
            faults=[fault for unit in self._units for fault in unit.faults],
            refusals=refusals + refused_packages,
            bytes_read=sum(unit.bytes_read for unit in self._units),
        )

    @property
    def origins(self) -> list[Origin]:
        """The options of databases in the input."""
        return [origin for unit in self._units for origin in unit.origins]

    def _numbers_of_databases(self) -> set[int]:
        """Return the numbers of the documents that come from databases."""
        found: set[int] = set()
        before = 0
        for unit in self._units:
            after = before + len(unit.documents)
            # A unit with an origin is a database of an earlier build.
            if unit.origins:
                found.update(range(before + 1, after + 1))
            before = after
        return found

    def _newest(self, name: str, key: str, snapshots: Snapshots) -> list[Any]:
        """Return all package data or modules; on a day, today's replace those of
        databases.

        Args:
            name: `packages` or `modules`.
            key: old data is replaced if today's has the same value of this attribute; a
                value that is None today replaces all, such as the release of modules
                of the only installation.
            snapshots: the options about snapshots; without a day, nothing is replaced.
        """
        old: list[Any] = []
        new: list[Any] = []
        for unit in self._units:
            side = old if unit.origins else new
            side.extend(getattr(unit, name))
        if not snapshots.day:
            return new + old
        today = {getattr(facts, key) for facts in new}
        if None in today:
            return new
        return new + [facts for facts in old if getattr(facts, key) not in today]

    def _left_out(self, replaced: set[int]) -> list[tuple[str, str]]:
        """Return the documents that databases left out, unless a document of them is
        replaced.
        """
        left_out: list[tuple[str, str]] = []
        before = 0
        for unit in self._units:
            after = before + len(unit.documents)
            if replaced.isdisjoint(range(before + 1, after + 1)):
                left_out += unit.left_out
            before = after
        return left_out


class _Listed(NamedTuple):
    """The listings and records of all documents; the fields are those of `Merged`."""

    listings: Frame
    document_listings: Frame
    records: Frame
    specs: Frame
    differences: list[Difference]


def _merged_listings(
    tables: Tables,
    documents: Sequence[Document],
    document_release: Numbers,
    texts: Texts,
) -> _Listed:
    """Return the listings of all documents as one, and what contradicts it.

    Each document states a configuration, stacks, a size and a tarball of a spec; the
    first statement counts. Specs without a listing have a record without a binary
    (`unlisted`), or only a name (`unrecorded`).
    """
    stated = _stated_listings(tables["listings"], document_release)
    # The first row of a spec counts, so rows are in the order of documents.
    unlisted = _by_document(tables["unlisted"])
    unrecorded = _by_document(tables["unrecorded"])
    specs = _specs(stated, [unlisted, unrecorded], document_release, texts)
    differences = [
        _other_configurations(stated, specs),
        _other_configurations(unlisted, specs),
    ]
    stated = _with_tarballs_of_specs(stated, specs, texts)
    listings, other_values = fold(stated, texts.stack_sets)
    return _Listed(
        listings=listings,
        document_listings=_document_listings(stated, listings, documents),
        records=_with_is_listed(tables["records"], stated),
        specs=specs,
        differences=differences + other_values,
    )


def _by_document(rows: Frame) -> Frame:
    """Return rows in the order of documents; rows of one document keep their order."""
    return rows.where(np.argsort(rows["document"], kind="stable"))


def _document_releases(
    documents: Iterable[Document], releases: Iterable[str]
) -> Numbers:
    """Return the number of the release of each document; 0 for number 0."""
    number_of_release = {name: number for number, name in enumerate(releases, start=1)}
    release_numbers = [0]
    for document in documents:
        release_numbers.append(number_of_release[document.release])
    return number_array(release_numbers).astype(np.uint32)


def _stated_listings(listings: Frame, document_release: Numbers) -> Frame:
    """Return the listings of documents with their releases, sorted by release, spec and
    document.
    """
    stated = listings.having(release=document_release[listings["document"]])
    # `lexsort` takes the most important key last.
    keys = packed(stated["release"], stated["spec"])
    return stated.where(np.lexsort((stated["document"], keys)))


def _with_is_listed(records: Frame, stated: Frame) -> Frame:
    """Return records with `is_listed`: whether their document lists the spec."""
    listed = np.sort(packed(stated["document"], stated["spec"]))
    is_listed = are_among(packed(records["document"], records["spec"]), listed)
    return records.having(is_listed=is_listed.astype(np.uint8))


def _document_listings(
    stated: Frame, listings: Frame, documents: Sequence[Document]
) -> Frame:
    """Return the listings of single documents, for specs that several documents list.

    The listings of pages are kept. A listing of an index is kept if its size or tarball
    differs from the folded listing; its stack is known anyway.

    Args:
        stated: the listings of documents, in the order of `listings`.
        listings: the folded listings.
        documents: all documents; their numbers count from 1.
    """
    # Listings of one release and spec are a group. Group `n` has the folded listing in
    # row `n`. A group of several listings is shared by their documents.
    _, group = groups(packed(stated["release"], stated["spec"]))
    has_several = np.bincount(group) > 1
    is_shared = has_several[group]
    shared = stated.where(is_shared)
    folded = listings.where(group[is_shared])

    # Pages, and other documents with another size or tarball.
    is_page = [False]
    for document in documents:
        is_page.append(document.page is not None)
    is_kept = np.array(is_page)[shared["document"]]
    for name in OPTIONAL:
        is_kept |= shared[name] != folded[name]
    return shared.where(is_kept).sorted_by("document", "spec")


def fold(
    listings: Frame, stack_sets: Interned[Stacks]
) -> tuple[Frame, list[Difference]]:
    """Return one listing for each spec of a release, and the differing values of
    documents.

    A listing has the stacks of all documents; its size and its tarball are from the
    first document that has them. The listings are in the order of release, spec and
    document.
    """
    # Listings of one release and spec are a group.
    starts, group = groups(packed(listings["release"], listings["spec"]))
    count = len(listings)
    if len(starts) == count:
        return listings, []
    folded = listings.where(starts)
    folded = folded.having(stacks=_unions(stack_sets, listings["stacks"], starts))

    differences = []
    for name in OPTIONAL:
        # The first row of each group with a value; the first row, if none has one.
        column = listings[name]
        has_value = column > 0
        # `count`, larger than every row, stands for a row without a value.
        row_with_value = np.where(has_value, np.arange(count), count)
        first_with_value = np.minimum.reduceat(row_with_value, starts)
        first = np.where(first_with_value < count, first_with_value, starts)
        folded = folded.having(**{name: column[first]})

        # 0 means that a document lacks the value, which contradicts nothing. A binary
        # may be in two mirrors, so two tarballs do not contradict each other either.
        if name != "tarball":
            first_row = first[group]
            is_different = has_value & (column != column[first_row])
            stored = listings.where(first_row[is_different])
            differences.append(Difference(name, listings.where(is_different), stored))
    return folded, differences


def _unions(stack_sets: Interned[Stacks], sets: Numbers, starts: Numbers) -> Numbers:
    """Return the union of the sets of stacks of each group, which begins at `starts`.

    Unions that are new are added to `stack_sets`.
    """

    @cache
    def union(set_numbers: frozenset[int]) -> int:
        stacks: set[str] = set()
        for number in set_numbers:
            stacks.update(stack_sets.things[number - 1])
        return stack_sets[tuple(sorted(stacks))]

    rows = sets.tolist()
    ends = np.append(starts, len(sets)).tolist()
    unions = (union(frozenset(rows[start:end])) for start, end in pairwise(ends))
    return np.fromiter(unions, sets.dtype, len(starts))


def _specs(
    listings: Frame,
    unlisted_frames: Sequence[Frame],
    document_release: Numbers,
    texts: Texts,
) -> Frame:
    """Return `Merged.specs`; the first row of a spec counts.

    Args:
        listings: the listings of documents, sorted.
        unlisted_frames: specs without a listing; the frame with the most data comes
            first.
        document_release: the release of each document.
        texts: the values of all numbers.
    """
    # All rows, those of listings first. Specs without a listing have no stacks.
    unlisted = joined(unlisted_frames)
    no_stacks = np.full_like(unlisted["spec"], texts.stack_sets[()])
    names = ("document", "spec", "configuration", "stacks")
    listed = Frame(**{name: listings[name] for name in names})
    rows = joined([listed, unlisted.having(stacks=no_stacks)])

    # The first row of each spec.
    spec = numbers_in(rows["spec"])
    first_row_of_number = first_rows(rows["spec"], len(texts.hashes))
    first = first_row_of_number[spec]
    document = rows["document"][first]

    # The stacks of all its rows. Few specs have different ones: only for these are the
    # rows read, and the stacks of the first row replaced by the union.
    stacks = rows["stacks"][first]
    varies = has_different_values(rows["spec"], rows["stacks"], len(texts.hashes))
    varies_in_row = varies[rows["spec"]]
    different = rows.where(varies_in_row)
    spec_sets = distinct_pairs(spec=different["spec"], stacks=different["stacks"])
    starts, _ = groups(spec_sets["spec"])
    # Both sides are sorted by spec, so their rows correspond.
    is_varying = varies[spec]
    stacks[is_varying] = _unions(texts.stack_sets, spec_sets["stacks"], starts)

    # Rows of listings come before those of specs without a listing.
    is_listed = first < len(listings)
    return Frame(
        spec=spec,
        document=document,
        release=document_release[document],
        configuration=rows["configuration"][first],
        stacks=stacks,
        is_listed=is_listed.astype(np.uint8),
    )


def _other_configurations(stated: Frame, specs: Frame) -> Difference:
    """Return the rows whose configuration differs from that of `specs`."""
    row_in_specs = np.searchsorted(specs["spec"], stated["spec"])
    configuration = specs["configuration"][row_in_specs]
    is_different = stated["configuration"] != configuration
    stored = specs.where(row_in_specs[is_different])
    return Difference("configuration", stated.where(is_different), stored)


def _with_tarballs_of_specs(listings: Frame, specs: Frame, texts: Texts) -> Frame:
    """Return listings without configurations; their tarballs are relative to the
    configurations of their specs.

    A tarball was relative to the configuration in its document, which may differ.
    """
    row_in_specs = np.searchsorted(specs["spec"], listings["spec"])
    new = specs["configuration"][row_in_specs]
    has_other = listings["configuration"] != new
    changed = np.flatnonzero(has_other & (listings["tarball"] > 0))

    # Only where a listing with a tarball has another configuration: from the old one to
    # the URL, and from the URL to the new one. Numbers of values count from 1.
    tarball = listings["tarball"].copy()
    configurations = texts.configurations.things
    parts = TarballParts(configurations)
    changed_listings = listings.having(new=new).where(changed)
    cells = changed_listings.rows("spec", "configuration", "tarball", "new")
    for row, values in zip(changed, cells, strict=True):
        spec, old_configuration, number, new_configuration = values
        dag_hash = texts.hashes.things[spec - 1]
        url = tarball_url(
            texts.tarballs.things[number - 1],
            configurations[old_configuration - 1],
            dag_hash,
        )
        new_tarball = parts.split(url, new_configuration, dag_hash)
        tarball[row] = texts.tarballs[new_tarball]
    columns = {**listings.columns, "tarball": tarball}
    del columns["configuration"]
    return Frame(**columns)


def first_dependencies(records: Frame, edges: Frame) -> tuple[Frame, OtherDependencies]:
    """Return the edges of each spec's first record, and the records and edges that
    differ.

    A spec's edges are part of its hash, except build dependencies, which old indexes
    leave out.
    """
    # Two lists with the same edges have the same checksum: the sum of the hashes of
    # their edges, in any order. Other lists practically never have it: it has 64 bits.
    list_count = 1 + int(edges["edge_list"].max(initial=0))
    checksums = np.zeros(list_count, np.uint64)
    np.add.at(checksums, edges["edge_list"], _hashes(edges))

    # For each record: the first record of its spec. Records are sorted by spec, so the
    # newest start of a spec is carried forward.
    order = np.argsort(packed(records["spec"], records["document"]))
    spec = records["spec"][order]
    edge_list = records["edge_list"][order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = spec[1:] != spec[:-1]
    start = np.where(is_first, np.arange(len(order)), 0)
    first = np.maximum.accumulate(start)
    is_different = checksums[edge_list] != checksums[edge_list[first]]

    # The edges of first records. A list belongs to one spec; list 0 is empty.
    spec_of_list = np.zeros(list_count, np.uint32)
    spec_of_list[edge_list[is_first]] = spec[is_first]
    first_edges = edges.having(spec=spec_of_list[edges["edge_list"]])
    if not first_edges["spec"].all():
        first_edges = first_edges.where(first_edges["spec"] > 0)

    # The edges of other records, once for each record, even if records share a list.
    others = records.where(order[is_different])
    is_of_others = np.zeros(list_count, bool)
    is_of_others[others["edge_list"]] = True
    other_edges = edges.where(is_of_others[edges["edge_list"]])
    edges_of_list = rows_by(other_edges["edge_list"], list_count)
    record, edge = edges_of_list.members_of(others["edge_list"])
    other_edges = other_edges.where(edge).having(
        document=others["document"][record], spec=others["spec"][record]
    )
    return first_edges, OtherDependencies(records=others, edges=other_edges)


def _hashes(edges: Frame) -> npt.NDArray[np.uint64]:
    """Return a hash of the dependency and the use of each edge.

    The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every
    other.
    """
    hashes = packed(edges["dependency"], edges["use"]).astype(np.uint64)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))
