"""Listings as NumPy arrays: what `ListingColumns` hold in one unit, here of the whole input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spack_cache_db.build.arrays import Mask, Numbers, packed, unpacked
from spack_cache_db.sources.columns import Interned, Stacks


class Listings(NamedTuple):
    """Parallel arrays, one number in each for a listing (see `ListingColumns`)."""

    document: Numbers
    spec: Numbers
    configuration: Numbers
    stacks: Numbers
    size: Numbers
    tarball: Numbers

    def where(self, chosen: Numbers | Mask) -> Listings:
        """Return some of the listings: those where a mask is true, or those at these places."""
        return Listings(*(column[chosen] for column in self))


class Listing(NamedTuple):
    """One row of `Listings`."""

    document: int
    spec: int
    configuration: int
    stacks: int
    size: int
    tarball: int


class Unlisted(NamedTuple):
    """Parallel arrays, for specs that a document knows of without listing them."""

    document: Numbers
    spec: Numbers
    configuration: Numbers

    def where(self, chosen: Numbers | Mask) -> Unlisted:
        """Return some of them: those where a mask is true, or those at these places."""
        return Unlisted(*(column[chosen] for column in self))


def group_starts(keys: Numbers) -> Numbers:
    """Return where each run of equal keys starts."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def unions(known: Interned[Stacks], sets: Numbers, starts: Numbers) -> Numbers:
    """Return the union of the sets of stacks of each group.

    Sets are joined one after the other, for all groups at once: there are many groups, and few
    different unions.

    Args:
        known: the numbers of all sets; unions that are new are added.
        sets: numbers of sets, group after group.
        starts: where each group starts.
    """
    sizes = np.diff(np.append(starts, len(sets)))
    found = sets[starts]
    for nth in range(1, sizes.max(initial=0)):
        more = sizes > nth
        distinct, of = np.unique(packed(found[more], sets[starts[more] + nth]), return_inverse=True)
        joined = [
            known[tuple(sorted({*known.things[first], *known.things[second]}))]
            for first, second in zip(*(part.tolist() for part in unpacked(distinct)), strict=True)
        ]
        found[more] = np.array(joined, dtype=found.dtype)[of]
    return found
