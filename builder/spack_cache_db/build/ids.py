"""Merged input → final numbers: ids that depend on what the input says and on nothing else.

Specs are numbered by configuration, then by the foremost release that lists them, then by hash:
what is asked for together lies together in the file, and what is current comes first. Where
releases disagree about a spec, the foremost one is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spack_cache_db.build.arrays import (
    Mask,
    Members,
    Numbers,
    first_places,
    members,
    numbers,
    packed,
    pairs,
    places,
    rows_of,
)
from spack_cache_db.build.contradictions import contradiction, edge_contradictions
from spack_cache_db.build.fold import Difference
from spack_cache_db.build.graph import NumberedGraph, number_graph
from spack_cache_db.build.listings import Listing, group_starts, unions
from spack_cache_db.build.merge import Merged
from spack_cache_db.build.names import Names, number_names
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.sources.columns import Document


class NumberedListings(NamedTuple):
    """Parallel arrays of ids, one of each for a listing, in the order of (release, spec).

    `document` is a place in `Numbered.documents`. `configuration` is what that document says, which
    `specs` need not say. `size` and `tarball` are 0 where there is none.
    """

    document: Numbers
    release: Numbers
    spec: Numbers
    configuration: Numbers
    stacks: Numbers
    size: Numbers
    tarball: Numbers

    def where(self, chosen: Numbers | Mask) -> NumberedListings:
        """Return some of the listings: those where a mask is true, or those at these places."""
        return NumberedListings(*(column[chosen] for column in self))


@dataclass(frozen=True, slots=True)
class Numbered:
    """Merged input with final ids.

    `documents` begins with the pages, in the order of their ids; `configurations` and `hashes` are
    in the order of theirs, and so is `sizes`. `spec_configuration[i]` and `spec_stacks[i]` belong
    to the spec with id i + 1, and so on for pages and configurations; `stacks` has the members of
    each stack set by its id. `is_binary` says of each spec whether some release lists it.
    `disagreements` are the listings whose document says otherwise of the configuration than the
    spec; `contradictions` is whatever else is not stored, by the document that says so.
    """

    names: Names
    documents: list[Document]
    configurations: list[Configuration]
    hashes: list[str]
    sizes: list[str]
    page_release: Numbers
    page_package: Numbers
    configuration_package: Numbers
    stacks: Members
    spec_configuration: Numbers
    spec_stacks: Numbers
    is_binary: Mask
    listings: NumberedListings
    disagreements: NumberedListings
    contradictions: list[tuple[int, Problem]]
    graph: NumberedGraph


class _Specs(NamedTuple):
    """What is known of each spec, in provisional numbers: parallel arrays, in the order of `spec`.

    `foremost` is the place of the listing that says the configuration; behind the listings, that
    of the unlisted. `release` is the place of its release.
    """

    spec: Numbers
    foremost: Numbers
    release: Numbers
    configuration: Numbers
    stacks: Numbers


class _Ids(NamedTuple):
    """Final ids by provisional number; 0 for what is not in use."""

    configuration: Numbers
    stacks: Numbers
    tarball: Numbers
    spec: Numbers


def number(merged: Merged) -> Numbered:
    """Return all that is in use, with final ids; what only refused documents say is left out."""
    specs = _specs(merged)
    names = _names(merged, specs)
    order = _configuration_order(merged, specs, names)
    configurations = [merged.texts.configurations.things[at] for at in order]
    configuration_ids = places(numbers(order), len(merged.texts.configurations))
    hashes = np.array(merged.texts.hashes.things, dtype="S32")[specs.spec]
    spec_order = np.lexsort((hashes, specs.release, configuration_ids[specs.configuration]))
    in_order = _Specs(*(column[spec_order] for column in specs))
    ids = _Ids(
        configuration_ids,
        numbers(names.stack_sets.get(each, 0) for each in merged.texts.stack_sets),
        numbers([0, *(names.tarballs.get(each, 0) for each in merged.texts.tarballs)]),
        places(in_order.spec, len(merged.texts.hashes)),
    )
    pages = [(each.release, each.page) for each in merged.documents if each.page]
    spec_configuration = ids.configuration[in_order.configuration]
    listings = _numbered_listings(merged, ids)
    return Numbered(
        names=names,
        documents=merged.documents,
        configurations=configurations,
        hashes=[each.decode() for each in hashes[spec_order].tolist()],
        sizes=merged.texts.sizes.things,
        page_release=numbers(names.releases[release] for release, _ in pages),
        page_package=numbers(names.packages[page.package] for _, page in pages),
        configuration_package=numbers(names.packages[each.package] for each in configurations),
        stacks=members([(), *([names.stacks[each] for each in sets] for sets in names.stack_sets)]),
        spec_configuration=spec_configuration,
        spec_stacks=ids.stacks[in_order.stacks],
        is_binary=in_order.foremost < len(merged.listings.spec),
        listings=listings,
        disagreements=listings.where(
            listings.configuration != spec_configuration[listings.spec - 1]
        ),
        contradictions=_contradictions(merged, specs),
        graph=number_graph(merged.texts, merged.records, merged.edges, ids.spec),
    )


def _specs(merged: Merged) -> _Specs:
    """Return, for each spec, who says its configuration, and the stacks of all releases."""
    listings, unlisted = merged.listings, merged.unlisted
    no_stacks = np.full_like(unlisted.spec, merged.texts.stack_sets[()])
    spec = np.concatenate([listings.spec, unlisted.spec])
    configuration = np.concatenate([listings.configuration, unlisted.configuration])
    found, sets, _ = pairs(spec, np.concatenate([listings.stacks, no_stacks]))
    starts = group_starts(found)
    foremost = first_places(spec, len(merged.texts.hashes))[found[starts]]
    stacks = unions(merged.texts.stack_sets, sets, starts)
    document = np.concatenate([listings.document, unlisted.document])
    release = merged.document_release[document[foremost]]
    return _Specs(found[starts], foremost, release, configuration[foremost], stacks)


def _contradictions(merged: Merged, specs: _Specs) -> list[tuple[int, Problem]]:
    """Return what is not stored, each with the document that says so."""
    differences = (*merged.differences, *_unlisted_differences(merged, specs))
    found = [(each.said.document, contradiction(merged, each)) for each in differences]
    return found + edge_contradictions(merged)


def _unlisted_differences(merged: Merged, specs: _Specs) -> list[Difference]:
    """Return where a document that does not list a spec says otherwise of its configuration."""
    unlisted = merged.unlisted
    at = np.searchsorted(specs.spec, unlisted.spec)
    odd = np.flatnonzero(unlisted.configuration != specs.configuration[at])
    document = np.concatenate([merged.listings.document, unlisted.document])
    return [
        Difference(
            "configuration",
            Listing(said, spec, configuration, 0, 0, 0),
            Listing(stored, spec, kept, 0, 0, 0),
        )
        for said, spec, configuration, stored, kept in rows_of(
            *unlisted.where(odd), document[specs.foremost[at[odd]]], specs.configuration[at[odd]]
        )
    ]


def _names(merged: Merged, specs: _Specs) -> Names:
    texts, listings = merged.texts, merged.listings
    stack_sets = {*_used(listings.stacks), *_used(specs.stacks)}
    return number_names(
        merged.releases,
        (each.page.package for each in merged.documents if each.page),
        [texts.configurations.things[at] for at in _used_configurations(merged, specs)],
        [texts.stack_sets.things[at] for at in stack_sets],
        [texts.tarballs.things[at - 1] for at in _used(listings.tarball) if at],
        (each.index_facts.stack for each in merged.documents if each.index_facts),
    )


def _configuration_order(merged: Merged, specs: _Specs, names: Names) -> list[int]:
    things = merged.texts.configurations.things
    used = _used_configurations(merged, specs)
    rows = {at: names.configuration_row(things[at]) for at in used}
    # What a configuration need not have comes first where it is NULL.
    keys = {at: [(each is not None, each) for each in row] for at, row in rows.items()}
    return sorted(keys, key=keys.__getitem__)


def _used_configurations(merged: Merged, specs: _Specs) -> list[int]:
    return _used(np.concatenate([merged.listings.configuration, specs.configuration]))


def _numbered_listings(merged: Merged, ids: _Ids) -> NumberedListings:
    """Return the listings with their final ids, in the order of these."""
    listings = merged.listings
    release = merged.document_release[listings.document] + 1
    spec = ids.spec[listings.spec]
    columns = NumberedListings(
        listings.document,
        release,
        spec,
        ids.configuration[listings.configuration],
        ids.stacks[listings.stacks],
        listings.size,
        ids.tarball[listings.tarball],
    )
    order = np.argsort(packed(release, spec))
    return NumberedListings(*(column.astype(np.uint32) for column in columns)).where(order)


def _used(found: Numbers) -> list[int]:
    """Return the distinct numbers, sorted."""
    return np.flatnonzero(np.bincount(found)).tolist()
