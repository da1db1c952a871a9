"""build.listings: groups of rows, and the unions of their stacks."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.arrays import numbers
from spack_cache_db.build.listings import Listings, Unlisted, group_starts, unions
from spack_cache_db.sources.columns import Interned, Stacks

STACKS = st.sets(st.sampled_from("abcd")).map(lambda names: tuple(sorted(names)))


@given(st.lists(st.integers(0, 4)).map(sorted))
def test_each_group_starts_where_its_key_does(keys: list[int]) -> None:
    """One start for each distinct key."""
    starts = group_starts(numbers(keys)).tolist()
    assert starts == [keys.index(key) for key, _ in groupby(keys)]


@pytest.mark.slow
@given(st.lists(st.lists(STACKS, min_size=1, max_size=5), max_size=5))
def test_unions_hold_every_stack_of_the_group(groups: list[list[Stacks]]) -> None:
    """And no other; a set that is new gets a number."""
    known = Interned[Stacks]()
    sets = numbers(known[each] for group in groups for each in group)
    starts = numbers(np.cumsum([0, *map(len, groups)])[:-1])
    found = unions(known, sets, starts)
    assert [known.things[at] for at in found] == [
        tuple(sorted(set().union(*group))) for group in groups
    ]
    assert len(set(known.things)) == len(known)


def test_rows_are_chosen_by_mask_or_place() -> None:
    """In every column at once."""
    listings = Listings(*(np.arange(3) + at for at in range(6)))
    assert [column.tolist() for column in listings.where(np.array([True, False, True]))] == [
        [at, at + 2] for at in range(6)
    ]
    unlisted = Unlisted(*(np.arange(3) + at for at in range(3)))
    assert [column.tolist() for column in unlisted.where(np.array([2, 0]))] == [
        [at + 2, at] for at in range(3)
    ]
