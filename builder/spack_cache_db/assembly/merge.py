"""Merges the columns of all units, and reports their contradictions.

A document that cannot stand beside another one is refused as a whole (see
`consistent_documents`). Of the others, the first with a value wins, in the order of
releases and documents (see `merged_listings` and `first_dependencies`). The numbers of
this module depend on how the input was divided; `ids` assigns the final numbers, which
do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spack_cache_db.assembly.documents import consistent_documents, in_order
from spack_cache_db.assembly.first_dependencies import (
    OtherDependencies,
    first_dependencies,
)
from spack_cache_db.assembly.known_packages import distinct_facts
from spack_cache_db.assembly.merged_listings import Difference, merged_listings
from spack_cache_db.assembly.options import NO_SNAPSHOTS, Snapshots
from spack_cache_db.assembly.snapshots import Tables, dated
from spack_cache_db.errors import Fault
from spack_cache_db.sources.facts import (
    Document,
    ModuleFacts,
    Origin,
    PackageFacts,
    Refusal,
)
from spack_cache_db.sources.frames import (
    Frame,
    Numbers,
    joined,
    number_array,
    of_documents,
    renumbering,
)
from spack_cache_db.sources.writer import (
    DOCUMENTS,
    EDGE_LISTS,
    EDGES,
    TABLES,
    Columns,
    Texts,
)


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
        document_listings: the listings of single documents, where several documents
            list a spec in one release.
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
        listed = merged_listings(tables, documents, document_release, texts)
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


def _document_releases(
    documents: Iterable[Document], releases: Iterable[str]
) -> Numbers:
    """Return the number of the release of each document; 0 for number 0."""
    number_of_release = {name: number for number, name in enumerate(releases, start=1)}
    release_numbers = [0]
    for document in documents:
        release_numbers.append(number_of_release[document.release])
    return number_array(release_numbers).astype(np.uint32)
