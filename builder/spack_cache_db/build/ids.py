"""Catalogue → final numbers: ids that depend on what the pages say and on nothing else.

Specs are numbered by configuration, then by the foremost release that lists them, then by hash:
what is asked for together lies together in the file, and what is current comes first. Where
releases disagree about a spec, the foremost one is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.build.arrays import (
    Members,
    Numbers,
    first_places,
    members,
    numbers,
    packed,
    pairs,
    places,
)
from spack_cache_db.build.merge import Catalogue, Listings
from spack_cache_db.build.names import Dictionaries, dictionaries
from spack_cache_db.records import Configuration
from spack_cache_db.releases import sort_releases
from spack_cache_db.sources.columns import PageEntry


class NumberedListings(NamedTuple):
    """Parallel arrays of ids, one of each for a listing, in the order of (release, spec).

    `configuration` is what the listing's own page says, which `specs` need not say. `size` is an
    index into `Numbered.sizes`; `tarball` is 0 where there is none.
    """

    page: Numbers
    release: Numbers
    spec: Numbers
    configuration: Numbers
    stacks: Numbers
    size: Numbers
    tarball: Numbers

    def where(self, chosen: npt.NDArray[np.bool_ | np.int64]) -> NumberedListings:
        """Return some of the listings: those where a mask is true, or those at these places."""
        return NumberedListings(*(column[chosen] for column in self))


@dataclass(frozen=True, slots=True)
class Numbered:
    """A settled catalogue with final ids.

    `pages` is in the order of (release, package); `configurations` and `hashes` are in the order
    of their ids. `spec_configuration[i]` and `spec_stacks[i]` belong to the spec with id i + 1, and
    so on for pages and configurations; `stacks` has the members of each stack set by its id.
    `disagreements` are the listings whose page says otherwise of the configuration than the spec.
    """

    dictionaries: Dictionaries
    pages: list[PageEntry]
    configurations: list[Configuration]
    hashes: list[str]
    sizes: list[str]
    page_release: Numbers
    page_package: Numbers
    configuration_package: Numbers
    stacks: Members
    spec_configuration: Numbers
    spec_stacks: Numbers
    listings: NumberedListings
    disagreements: NumberedListings


class _SpecStacks(NamedTuple):
    """Provisional numbers: the specs in use, the union of stacks of each, and the sets' texts."""

    specs: Numbers
    unions: Numbers
    texts: list[tuple[str, ...]]


class _Ids(NamedTuple):
    """Final ids by provisional number; 0 for what is not in use."""

    configuration: Numbers
    stacks: Numbers
    tarball: Numbers


class _Specs(NamedTuple):
    """The specs in the order of their ids: provisional number and hash; ids of the rest."""

    number: Numbers
    hashes: list[str]
    configuration: Numbers
    stacks: Numbers


def number(catalogue: Catalogue) -> Numbered:
    """Give final ids to a settled catalogue; what only refused pages say is left out."""
    pages = _in_order(catalogue.pages)
    listings = catalogue.listings.of(pages)
    found = _spec_stacks(catalogue, listings)
    names = _dictionaries(catalogue, pages, listings, found)
    order = _configuration_order(catalogue, listings, names)
    configurations = [catalogue.configurations[at] for at in order]
    ids = _Ids(
        places(numbers(order), len(catalogue.configurations)),
        numbers(names.stack_sets.get(each, 0) for each in found.texts),
        numbers([0, *(names.tarballs.get(each, 0) for each in catalogue.tarballs)]),
    )
    page_release = numbers(names.releases[page.release] for page in pages)
    release = np.repeat(page_release, [page.spec_count for page in pages])
    specs = _specs(catalogue, listings, release, found, ids)
    spec_id = places(specs.number, len(catalogue.hashes))
    numbered = _numbered_listings(pages, page_release, _with_ids(listings, spec_id, ids))
    return Numbered(
        dictionaries=names,
        pages=pages,
        configurations=configurations,
        hashes=specs.hashes,
        sizes=catalogue.sizes,
        page_release=page_release,
        page_package=numbers(names.packages[page.package] for page in pages),
        configuration_package=numbers(names.packages[each.package] for each in configurations),
        stacks=members([(), *([names.stacks[each] for each in sets] for sets in names.stack_sets)]),
        spec_configuration=specs.configuration,
        spec_stacks=specs.stacks,
        listings=numbered,
        disagreements=numbered.where(
            numbered.configuration != specs.configuration[numbered.spec - 1]
        ),
    )


def _specs(
    catalogue: Catalogue, listings: Listings, release: Numbers, found: _SpecStacks, ids: _Ids
) -> _Specs:
    """Order the specs by configuration, then by the foremost release that lists them, then hash.

    `release` has the id of each listing's release.
    """
    foremost = first_places(listings.spec, len(catalogue.hashes))[found.specs]
    configuration = ids.configuration[listings.configuration[foremost]]
    hashes = np.array(catalogue.hashes, dtype="S32")[found.specs]
    order = np.lexsort((hashes, release[foremost], configuration))
    return _Specs(
        found.specs[order],
        [each.decode() for each in hashes[order].tolist()],
        configuration[order],
        ids.stacks[found.unions[order]],
    )


def _with_ids(listings: Listings, spec_id: Numbers, ids: _Ids) -> Listings:
    return Listings(
        spec_id[listings.spec],
        ids.configuration[listings.configuration],
        ids.stacks[listings.stacks],
        listings.size,
        ids.tarball[listings.tarball],
    )


def _in_order(pages: list[PageEntry]) -> list[PageEntry]:
    """Sort pages by release, the foremost first, and package."""
    position = {name: at for at, name in enumerate(sort_releases({p.release for p in pages}))}
    return sorted(pages, key=lambda page: (position[page.release], page.package))


def _dictionaries(
    catalogue: Catalogue, pages: list[PageEntry], listings: Listings, stacks: _SpecStacks
) -> Dictionaries:
    stack_sets = {*_used(listings.stacks), *_used(stacks.unions)}
    return dictionaries(
        pages,
        [catalogue.configurations[at] for at in _used(listings.configuration)],
        [stacks.texts[at] for at in stack_sets],
        [catalogue.tarballs[at - 1] for at in _used(listings.tarball) if at],
    )


def _configuration_order(
    catalogue: Catalogue, listings: Listings, names: Dictionaries
) -> list[int]:
    configurations = catalogue.configurations
    keys = {at: names.configuration_key(configurations[at]) for at in _used(listings.configuration)}
    return sorted(keys, key=keys.__getitem__)


def _spec_stacks(catalogue: Catalogue, listings: Listings) -> _SpecStacks:
    """Find, for each spec, the stacks that any of its releases has it in.

    A spec's sets are joined one after the other, for all specs at once: there are many specs, and
    few different unions.
    """
    specs, sets, _ = pairs(listings.spec, listings.stacks)
    first = np.flatnonzero(np.diff(specs, prepend=-1))
    sizes = np.diff(np.append(first, len(specs)))
    unions, texts = sets[first], [*catalogue.stack_sets]
    known = {text: at for at, text in enumerate(texts)}

    def joined(pair: int) -> int:
        union = tuple(sorted({*texts[pair >> 32], *texts[pair & 0xFFFFFFFF]}))
        if union not in known:
            known[union] = len(texts)
            texts.append(union)
        return known[union]

    for nth in range(1, sizes.max(initial=0)):
        more = sizes > nth
        found, of = np.unique(packed(unions[more], sets[first[more] + nth]), return_inverse=True)
        unions[more] = numbers(map(joined, found.tolist()))[of]
    return _SpecStacks(specs[first], unions, texts)


def _numbered_listings(
    pages: list[PageEntry], page_release: Numbers, listings: Listings
) -> NumberedListings:
    """Add page and release to listings that have final ids, and put them in order."""
    page = np.repeat(np.arange(len(pages)), [page.spec_count for page in pages])
    order = np.argsort(packed(page_release[page], listings.spec))
    columns = NumberedListings(page + 1, page_release[page], *listings)
    return NumberedListings(*(column.astype(np.uint32) for column in columns)).where(order)


def _used(found: Numbers) -> list[int]:
    """Return the distinct numbers, sorted."""
    return np.flatnonzero(np.bincount(found)).tolist()
