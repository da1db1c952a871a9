"""Merges the listings of all documents: one for each spec of a release, and what
contradicts it.

The first document with a value wins; the other values become differences. A hash has
one configuration: that of the first listing, or of the first record if no document
lists it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spack_cache_db.assembly.snapshots import Tables
from spack_cache_db.sources.facts import Document, Stacks
from spack_cache_db.sources.frames import (
    Frame,
    Numbers,
    are_among,
    distinct_pairs,
    first_rows,
    groups,
    has_different_values,
    joined,
    numbers_in,
    packed,
)
from spack_cache_db.sources.tarballs import TarballParts, tarball_url
from spack_cache_db.sources.writer import OPTIONAL, Interned, Texts


class Difference(NamedTuple):
    """Values of one column that contradict the stored values, row by row.

    Both frames have the columns `document`, `spec`, and `column` itself.
    """

    column: str
    stated: Frame
    stored: Frame


class MergedListings(NamedTuple):
    """The listings and records of all documents; the fields are those of `Merged`."""

    listings: Frame
    document_listings: Frame
    records: Frame
    specs: Frame
    differences: list[Difference]


def merged_listings(
    tables: Tables,
    documents: Sequence[Document],
    document_release: Numbers,
    texts: Texts,
) -> MergedListings:
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
    listings, other_values = _fold(stated, texts.stack_sets)
    return MergedListings(
        listings=listings,
        document_listings=_document_listings(stated, listings, documents),
        records=_with_is_listed(tables["records"], stated),
        specs=specs,
        differences=differences + other_values,
    )


def _by_document(rows: Frame) -> Frame:
    """Return rows in the order of documents; rows of one document keep their order."""
    return rows.where(np.argsort(rows["document"], kind="stable"))


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


def _fold(
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
