"""Listings of one spec in one release by several documents → one listing.

Its stacks are those of all of them. Everything else is from the first document that knows it, in
the order of `Merged.documents`; what another document says instead is a difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spack_cache_db.build.arrays import Mask, Numbers, rows_of
from spack_cache_db.build.listings import Listing, Listings, group_starts, unions
from spack_cache_db.sources.columns import Interned, Stacks


class Difference(NamedTuple):
    """A listing that says something else than is stored, and the one that says what is stored.

    `column` is `configuration`, `size` or `tarball`.
    """

    column: str
    said: Listing
    stored: Listing


def fold(
    listings: Listings, keys: Numbers, stack_sets: Interned[Stacks]
) -> tuple[Listings, list[Difference]]:
    """Return one listing for each key, in the order of the keys, and what is not stored.

    Args:
        listings: in the order of their keys, and of their documents where keys are equal.
        keys: one for each listing.
        stack_sets: see `unions`.
    """
    starts = group_starts(keys)
    if len(starts) == len(keys):
        return listings, []
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(keys))))
    # The rest of a tarball's URL follows from the configuration.
    agrees = listings.configuration == listings.configuration[starts][group]
    size = _first(listings.size > 0, starts)
    tarball = _first((listings.tarball > 0) & agrees, starts)
    folded = listings.where(starts)._replace(
        stacks=unions(stack_sets, listings.stacks, starts),
        size=listings.size[size],
        tarball=listings.tarball[tarball],
    )
    stored = folded.where(group)
    return folded, [
        *_differences("configuration", ~agrees, listings, starts[group]),
        # 0 says that a document does not know, which contradicts nothing.
        *_differences(
            "size", (listings.size > 0) & (listings.size != stored.size), listings, size[group]
        ),
        *_differences(
            "tarball",
            (listings.tarball > 0) & ((listings.tarball != stored.tarball) | ~agrees),
            listings,
            tarball[group],
        ),
    ]


def _first(known: Mask, starts: Numbers) -> Numbers:
    """Return the first place in each group where something is known; the group's start if none."""
    none = len(known)
    first = np.minimum.reduceat(np.where(known, np.arange(none), none), starts)
    return np.where(first < none, first, starts)


def _differences(column: str, odd: Mask, listings: Listings, stored: Numbers) -> list[Difference]:
    """Return the odd listings, each with the one at its place in `stored`."""
    said = [*map(Listing._make, rows_of(*listings.where(odd)))]
    kept = [*map(Listing._make, rows_of(*listings.where(stored[odd])))]
    return [Difference(column, *pair) for pair in zip(said, kept, strict=True)]
