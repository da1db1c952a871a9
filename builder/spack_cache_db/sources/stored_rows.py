"""Reads the listings, records and dependencies of a database as arrays.

A history has millions of these rows, so they are numbers in NumPy arrays from the
statement to the columns, without an object for each row.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import msgspec
import numpy as np

from spack_cache_db.sources.facts import Install, NodeFacts
from spack_cache_db.sources.frames import (
    Frame,
    Lookup,
    Numbers,
    are_among,
    groups,
    joined,
    number_array,
    packed,
    packed_pair,
    unpacked,
)
from spack_cache_db.sources.tarballs import TarballParts, tarball_url
from spack_cache_db.sources.writer import Interned, Texts, Writer
from spack_cache_db.spack.nodes import Use

# JSON lists of values, because an object for each row takes three times as long.
LISTINGS = """
SELECT json_group_array(spec_id), json_group_array(stack_set_id),
  json_group_array(coalesce(tarball_prefix_id, 0)), json_group_array(size)
FROM (
  SELECT spec_id, stack_set_id, tarball_prefix_id, size FROM listings
  WHERE release_id = ? AND spec_id > ? ORDER BY spec_id LIMIT ?
)
"""
LISTING_COUNT = "SELECT count(*) FROM listings"
OWN_LISTINGS = """
SELECT coalesce(page_id, 0), coalesce(mirror_id, 0), spec_id, stack_set_id,
  coalesce(tarball_prefix_id, 0)
FROM document_listings ORDER BY id
"""
OWN_SIZES = "SELECT size FROM document_listings ORDER BY id"
NODES = f"SELECT id, {', '.join(NodeFacts._fields)} FROM nodes"  # noqa: S608 - our own names
RECORDS = """
SELECT json_group_array(mirror_id), json_group_array(spec_id), json_group_array(node_id),
  json_group_array(is_listed)
FROM records WHERE spec_id > ? AND spec_id <= ?
"""
RECORD_COUNT = "SELECT count(*) FROM records"
INSTALLS = "SELECT mirror_id, spec_id, prefix, explicit, installed_at FROM installs"
SPLICES = "SELECT mirror_id, spec_id, build_spec_id FROM splices"
EDGES = """
SELECT json_group_array(spec_id), json_group_array(dependency_id),
  json_group_array(dependency_type_id), json_group_array(dependency_virtual_id),
  json_group_array(coalesce(direct, 2))
FROM dependencies WHERE spec_id > ? AND spec_id <= ?
"""
EDGE_COUNT = "SELECT count(*) FROM dependencies"

LISTINGS_AT_ONCE = 3_000
"""Number of listings in a JSON list, which may not be longer than `MOST_LENGTH`."""

SPECS_AT_ONCE = 500
"""Number of specs whose records or dependencies are in a JSON list."""

ROWS_AT_ONCE = 10_000
"""Number of rows that are Python objects at a time."""

LARGEST_ID = 2**31 - 1
"""Two ids fit into one key (`packed`)."""

_NUMBERS = msgspec.json.Decoder(list[int])
_TEXTS = msgspec.json.Decoder(list[str | None])

_DIRECT = (False, True, None)
"""The values of `direct`; `EDGES` has their indexes."""


class Specs(NamedTuple):
    """The specs of a database.

    Attributes:
        ids: their ids, in order.
        numbers: the numbers of their hashes, by their ids.
        configurations: the number of the configuration of each hash; 0 for number 0.
    """

    ids: Numbers
    numbers: Lookup
    configurations: Numbers


@dataclass(frozen=True, slots=True)
class Stored:
    """What the rows of a database refer to.

    Ids are those of the database, and numbers those of the columns that are written.

    Attributes:
        select: executes a statement.
        specs: the specs.
        release_numbers: the numbers of releases, by id.
        stack_sets: the numbers of stack sets, by id.
        tarballs: the numbers of tarballs, by id; 0 for 0.
        pages: the numbers of the documents that are pages, by id.
        mirrors: the numbers of the documents that are indexes, by id.
        page_keys: the documents of pages by release and package, in numbers (`packed`).
        package_numbers: the numbers of packages, by name.
        release_of_document: the number of the release of each document.
        stacks_of_document: the number of the stack set of each index.
        other_configurations: configurations that differ from that of the hash, by
            document and hash.
        other_edges: dependencies and their uses that differ from those of the hash, by
            document and hash.
    """

    select: Callable[..., sqlite3.Cursor]
    specs: Specs
    release_numbers: Mapping[int, int]
    stack_sets: Lookup
    tarballs: Lookup
    pages: Lookup
    mirrors: Lookup
    page_keys: Lookup
    package_numbers: Mapping[str, int]
    release_of_document: Numbers
    stacks_of_document: Numbers
    other_configurations: Mapping[tuple[int, int], int]
    other_edges: Mapping[tuple[int, int], Sequence[tuple[int, int]]]


def number_columns(rows: Iterable[Sequence[int]], *names: str) -> Frame:
    """Return rows as a frame with these columns of 32 bits.

    Raises:
        TypeError: a value is not a whole number.
        ValueError: a number is larger than any id of a build.
    """
    remaining = iter(rows)
    parts: list[Numbers] = [np.zeros((0, len(names)), np.uint32)]
    while True:
        # An array accepts no other values than whole numbers.
        chunk = islice(remaining, ROWS_AT_ONCE)
        numbers = np.asarray(array("q", chain.from_iterable(chunk)))
        if not len(numbers):
            break
        parts.append(_ids(numbers).reshape(-1, len(names)))
    columns = {}
    for position, name in enumerate(names):
        columns[name] = np.concatenate([part[:, position] for part in parts])
    return Frame(**columns)


def _ids(numbers: Numbers) -> Numbers:
    """Return numbers in 32 bits; `ValueError` for one that is not an id of a build."""
    if len(numbers) and (numbers.min() < 0 or numbers.max() > LARGEST_ID):
        raise ValueError("an id that no build writes")
    return numbers.astype(np.uint32)


def read_rows(stored: Stored, writer: Writer) -> None:
    """Write all rows of a database."""
    _RowReader(stored, writer).read()


class _RowReader:
    """Reads the rows of one database.

    A listing of the database has the values of all documents that list a spec in one
    release. Where these differ, each document has listings of its own, which are read
    instead.
    """

    def __init__(self, stored: Stored, writer: Writer) -> None:
        self._stored = stored
        self._texts: Texts = writer.texts
        self._writer = writer
        self._sizes = _SizeNumbers(writer.texts.sizes)

    def read(self) -> None:
        """Read listings, records and dependencies."""
        listings = self._listings()
        own = self._own_listings()
        is_of_page = own["page"] > 0
        own_of_pages = own.where(is_of_page)
        own_of_indexes = own.where(~is_of_page)

        records = self._records(listings, own_of_indexes)
        is_listed = records["is_listed"] > 0
        of_indexes = records.where(is_listed)
        of_pages = self._listings_of_pages(listings, of_indexes)
        for frame in (of_pages, own_of_pages, of_indexes):
            self._write_listings(frame)

        unlisted = self._with_other_configurations(records.where(~is_listed))
        self._write("unlisted", unlisted)
        # Only records have dependencies.
        if len(records):
            edge_lists = self._write_edges(records)
            self._write("records", records.having(edge_list=edge_lists))

    def _write(self, table: str, frame: Frame) -> None:
        """Write the rows of a table; other columns of the frame are left out."""
        self._writer.extend(table, frame.columns)

    def _write_listings(self, listings: Frame) -> None:
        self._write("listings", self._with_other_configurations(listings))

    # Listings.

    def _listings(self) -> Frame:
        """Return the listings of releases."""
        (count,) = self._stored.select(LISTING_COUNT).fetchone()
        parts: list[Frame] = []
        for release_id, number in self._stored.release_numbers.items():
            parts.extend(self._listings_of_release(release_id, number))
        if not parts:
            parts.append(self._listing_rows(0, "[]", "[]", "[]", "[]"))
        listings = joined(parts)
        if len(listings) != count:
            raise LookupError("a listing of a release that does not exist")
        return listings

    def _listings_of_release(self, release_id: int, number: int) -> Iterator[Frame]:
        """Yield the listings of one release, some at a time."""
        last_spec = -1
        while True:
            parameters = (release_id, last_spec, LISTINGS_AT_ONCE)
            values = self._stored.select(LISTINGS, parameters).fetchone()
            spec_ids = _NUMBERS.decode(values[0])
            if not spec_ids:
                break
            yield self._listing_rows(number, *values)
            last_spec = spec_ids[-1]

    def _listing_rows(
        self, release: int, specs: str, stacks: str, tarballs: str, sizes: str
    ) -> Frame:
        """Return listings of one release from JSON lists of ids and sizes."""
        stored = self._stored
        spec = stored.specs.numbers[number_array(_NUMBERS.decode(specs))]
        stack_ids = number_array(_NUMBERS.decode(stacks))
        tarball_ids = number_array(_NUMBERS.decode(tarballs))
        return Frame(
            release=np.full(len(spec), release, np.uint32),
            spec=spec,
            configuration=stored.specs.configurations[spec],
            stacks=stored.stack_sets[stack_ids],
            size=self._size_numbers(_TEXTS.decode(sizes)),
            tarball=stored.tarballs[tarball_ids],
        )

    def _own_listings(self) -> Frame:
        """Return the listings of single documents; `page` is 0 for those of indexes."""
        stored = self._stored
        rows = number_columns(
            stored.select(OWN_LISTINGS), "page", "mirror", "spec", "stacks", "tarball"
        )
        page = rows["page"]
        document = np.zeros(len(rows), np.uint32)
        document[page > 0] = stored.pages[page[page > 0]]
        document[page == 0] = stored.mirrors[rows["mirror"][page == 0]]
        sizes = chain.from_iterable(stored.select(OWN_SIZES))
        spec = stored.specs.numbers[rows["spec"]]
        return Frame(
            page=page,
            document=document,
            spec=spec,
            configuration=stored.specs.configurations[spec],
            stacks=stored.stack_sets[rows["stacks"]],
            size=self._size_numbers(sizes),
            tarball=stored.tarballs[rows["tarball"]],
        )

    def _size_numbers(self, sizes: Iterable[str | None]) -> Numbers:
        """Return the numbers of sizes; 0 for None."""
        return np.asarray(array("I", map(self._sizes.__getitem__, sizes)))

    def _listings_of_pages(self, listings: Frame, of_indexes: Frame) -> Frame:
        """Return the listings that no index has, each with the document of its page.

        Args:
            listings: the listings of releases.
            of_indexes: the listings of indexes.
        """
        of_pages = self._without(listings, of_indexes)
        # A page lists specs of its own package. But the configuration of the hash may
        # have another package than the page: then the page has another configuration.
        document = self._pages_of_packages(of_pages)
        keys = packed(of_pages["release"], of_pages["spec"])
        document = self._pages_with_other_configurations().get(keys, document)
        if not document.all():
            raise LookupError("a listing without a page")
        return of_pages.having(document=document)

    def _without(self, listings: Frame, of_indexes: Frame) -> Frame:
        """Return the listings of releases that no index of the release has."""
        keys = packed(listings["release"], listings["spec"])
        release_of_index = self._stored.release_of_document[of_indexes["document"]]
        keys_of_indexes = np.sort(packed(release_of_index, of_indexes["spec"]))
        is_of_page = ~are_among(keys, keys_of_indexes)
        # Without indexes, millions of rows need not be copied.
        return listings if is_of_page.all() else listings.where(is_of_page)

    def _pages_of_packages(self, listings: Frame) -> Numbers:
        """Return the document of the page of each listing's release and package; 0 if
        there is no such page.
        """
        stored = self._stored
        package_of_configuration = [0]
        for configuration in self._texts.configurations.things:
            number = stored.package_numbers.get(configuration.package, 0)
            package_of_configuration.append(number)
        package = number_array(package_of_configuration)[listings["configuration"]]
        page_keys = packed(listings["release"], package)
        no_pages = np.zeros(len(listings), np.uint32)
        return stored.page_keys.get(page_keys, no_pages)

    def _pages_with_other_configurations(self) -> Lookup:
        """Return the documents of pages that state other configurations than those of
        the hashes, by release and spec in numbers (`packed`).
        """
        stored = self._stored
        keys = []
        documents = []
        for document, spec in stored.other_configurations:
            # Indexes have stacks, pages have none.
            is_page = not stored.stacks_of_document[document]
            if is_page:
                release = int(stored.release_of_document[document])
                keys.append(packed_pair(release, spec))
                documents.append(document)
        return Lookup(number_array(keys), number_array(documents))

    def _with_other_configurations(self, rows: Frame) -> Frame:
        """Return rows with the configurations that their documents state.

        The part of a tarball's URL that is stored is relative to the configuration of
        the hash, so it changes as well.
        """
        others = self._stored.other_configurations
        keys = packed(rows["document"], rows["spec"])
        other_keys = [packed_pair(document, spec) for document, spec in others]
        changed = np.flatnonzero(are_among(keys, np.sort(number_array(other_keys))))
        if not len(changed):
            return rows

        texts = self._texts
        configurations = texts.configurations.things
        configuration = rows["configuration"].copy()
        tarball = rows["tarball"].copy()
        cells = rows.where(changed).rows("document", "spec", "configuration", "tarball")
        for row, (document, spec, old, number) in zip(changed, cells, strict=True):
            new = others[document, spec]
            configuration[row] = new
            if number and new != old:
                # Numbers count from 1.
                part = texts.tarballs.things[number - 1]
                dag_hash = texts.hashes.things[spec - 1]
                url = tarball_url(part, configurations[old - 1], dag_hash)
                new_part = TarballParts(configurations).split(url, new, dag_hash)
                tarball[row] = texts.tarballs[new_part]
        return rows.having(configuration=configuration, tarball=tarball)

    # Records.

    def _records(self, listings: Frame, own: Frame) -> Frame:
        """Return the records of indexes, with the columns of their listings.

        Args:
            listings: the listings of releases.
            own: the listings of indexes that differ from these.
        """
        stored = self._stored
        rows = self._rows_of_specs(
            RECORDS, RECORD_COUNT, "mirror", "spec", "node", "is_listed"
        )
        document = stored.mirrors[rows["mirror"]]
        spec = stored.specs.numbers[rows["spec"]]
        keys = packed(document, spec)
        release = stored.release_of_document[document]

        # Size and tarball are those of the index, or else those of its release.
        own_keys = packed(own["document"], own["spec"])
        listing_keys = packed(listings["release"], listings["spec"])
        optional = {}
        for name in ("size", "tarball"):
            value: Numbers = np.zeros(len(rows), np.uint32)
            # Without records, nothing is looked up in millions of listings.
            if len(rows):
                of_release = Lookup(listing_keys, listings[name])
                value = of_release.get(packed(release, spec), value)
                value = Lookup(own_keys, own[name]).get(keys, value)
            optional[name] = value
        return Frame(
            document=document,
            spec=spec,
            configuration=stored.specs.configurations[spec],
            stacks=stored.stacks_of_document[document],
            **optional,
            node=self._nodes()[rows["node"]],
            install=self._installs().get(keys, np.zeros(len(rows), np.uint32)),
            build_spec=self._splices().get(keys, np.zeros(len(rows), np.uint32)),
            is_listed=rows["is_listed"],
        )

    def _nodes(self) -> Lookup:
        """Return the numbers of nodes by their ids."""
        numbers = {}
        for row_id, *columns in self._stored.select(NODES):
            numbers[row_id] = self._texts.nodes[NodeFacts(*columns)]
        return lookup_of(numbers)

    def _installs(self) -> Lookup:
        """Return the numbers of installations by document and hash."""
        ids = []
        numbers = []
        for mirror, spec, *columns in self._stored.select(INSTALLS):
            ids.append((mirror, spec))
            numbers.append(self._texts.installs[Install(*columns)])
        keys = self._record_keys(number_columns(ids, "mirror", "spec"))
        return Lookup(keys, number_array(numbers))

    def _splices(self) -> Lookup:
        """Return the numbers of build specs by document and hash."""
        rows = number_columns(
            self._stored.select(SPLICES), "mirror", "spec", "build_spec"
        )
        build_specs = self._stored.specs.numbers[rows["build_spec"]]
        return Lookup(self._record_keys(rows), build_specs)

    def _record_keys(self, rows: Frame) -> Numbers:
        """Return the keys of records by the ids of their mirrors and specs."""
        document = self._stored.mirrors[rows["mirror"]]
        return packed(document, self._stored.specs.numbers[rows["spec"]])

    # Dependencies.

    def _write_edges(self, records: Frame) -> Numbers:
        """Write lists of dependencies, and return the number of that of each record.

        All records of a hash have the list of the hash, unless they have their own.
        """
        # Sorted by spec, the edges of each spec follow each other: they are its list.
        edges = self._edges()
        edges = edges.where(np.argsort(edges["spec"], kind="stable"))
        starts, list_index = groups(edges["spec"])
        list_of_spec = np.zeros(len(self._texts.hashes) + 1, np.uint32)
        list_of_spec[edges["spec"][starts]] = np.arange(1, len(starts) + 1)
        self._write("edges", edges.having(edge_list=list_index + 1))

        # Records with other dependencies than their hash have lists of their own.
        lists: Numbers = list_of_spec[records["spec"]]
        keys = packed(records["document"], records["spec"])
        others = self._stored.other_edges
        other_keys = [packed_pair(document, spec) for document, spec in others]
        has_own = are_among(keys, np.sort(number_array(other_keys)))
        own = records.where(has_own).rows("document", "spec")
        for row, key in zip(np.flatnonzero(has_own), own, strict=True):
            lists[row] = self._writer.add_edges(others[key])
        return lists

    def _edges(self) -> Frame:
        """Return the dependencies of hashes, with their uses."""
        specs = self._stored.specs.numbers
        rows = self._rows_of_specs(
            EDGES, EDGE_COUNT, "spec", "dependency", "types", "virtuals", "direct"
        )
        types = self._lists("SELECT id, types FROM dependency_types")
        virtuals = self._lists("SELECT id, virtuals FROM dependency_virtuals")

        # A few hundred uses are repeated by millions of edges, so each is one number:
        # types and virtuals packed, times 3, plus `direct`, which must be 0, 1 or 2.
        parts = packed(
            lookup_of(types.positions)[rows["types"]],
            lookup_of(virtuals.positions)[rows["virtuals"]],
        )
        is_direct = lookup_of({0: 0, 1: 1, 2: 2})[rows["direct"]]
        keys, use_of_row = np.unique(
            parts * len(_DIRECT) + is_direct, return_inverse=True
        )
        uses = []
        type_of_key, virtual_of_key = unpacked(keys // len(_DIRECT))
        direct_of_key = keys % len(_DIRECT)
        for type_number, virtual_number, direct in zip(
            type_of_key, virtual_of_key, direct_of_key, strict=True
        ):
            use = Use(
                types.lists[type_number],
                virtuals.lists[virtual_number],
                _DIRECT[direct],
            )
            uses.append(self._texts.uses[use])
        return Frame(
            spec=specs[rows["spec"]],
            dependency=specs[rows["dependency"]],
            use=number_array(uses)[use_of_row],
        )

    def _rows_of_specs(self, sql: str, count_sql: str, *names: str) -> Frame:
        """Return the rows of a table of specs, with these columns.

        Args:
            sql: a statement that returns JSON lists of numbers, from the rows of specs
                whose ids are above the first parameter and up to the second one.
            count_sql: a statement that counts all rows.
            names: the names of the columns.

        Raises:
            LookupError: a row is not of a spec.
        """
        parts = [Frame(**{name: np.zeros(0, np.uint32) for name in names})]
        spec_ids = self._stored.specs.ids.tolist()
        last_id = 0
        for first in range(0, len(spec_ids), SPECS_AT_ONCE):
            *_, next_id = spec_ids[first : first + SPECS_AT_ONCE]
            lists = self._stored.select(sql, (last_id, next_id)).fetchone()
            columns = {}
            for name, text in zip(names, lists, strict=True):
                columns[name] = _ids(number_array(_NUMBERS.decode(text)))
            parts.append(Frame(**columns))
            last_id = next_id
        rows = joined(parts)
        (count,) = self._stored.select(count_sql).fetchone()
        if len(rows) != count:
            raise LookupError("a row of a spec that does not exist")
        return rows

    def _lists(self, sql: str) -> _Lists:
        """Return the lists in a column of texts with commas."""
        lists: list[tuple[str, ...]] = []
        positions = {}
        for row_id, text in self._stored.select(sql):
            positions[row_id] = len(lists)
            lists.append(tuple(text.split(",")) if text else ())
        return _Lists(lists, positions)


class _SizeNumbers(dict[str | None, int]):
    """The numbers of sizes: `numbers[text]`; 0 for None."""

    def __init__(self, sizes: Interned[str]) -> None:
        super().__init__({None: 0})
        self._sizes = sizes

    def __missing__(self, size: str | None) -> int:
        if not isinstance(size, str):
            raise TypeError(f"the size {size!r}")
        self[size] = self._sizes[size]
        return self[size]


class _Lists(NamedTuple):
    """Lists of words, and their positions by the ids of their rows."""

    lists: list[tuple[str, ...]]
    positions: dict[int, int]


def lookup_of(numbers: Mapping[int, int]) -> Lookup:
    """Return numbers by ids, which have to be whole numbers."""
    keys = np.asarray(array("q", numbers))
    values = np.fromiter(numbers.values(), np.uint32, len(numbers))
    return Lookup(keys, values)
