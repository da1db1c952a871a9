"""build.arrays: what NumPy does with arrays is what plain Python does with lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.arrays import (
    Numbers,
    first_places,
    members,
    numbers,
    packed,
    pairs,
    places,
    ranges,
    summed,
    unpacked,
)

IDS = st.integers(0, 2**31 - 1)
SMALL = st.integers(0, 9)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Numbers]:
    """Return rows as parallel arrays."""
    return [numbers(row[at] for row in rows) for at in range(width)]


@pytest.mark.slow
@given(st.lists(st.tuples(SMALL | IDS, SMALL | IDS)))
def test_pairs_are_counted_in_order(rows: list[tuple[int, int]]) -> None:
    """Each distinct pair once, sorted, with the number of times it was there."""
    assert [*pairs(*columns(rows, 2)).rows()] == [
        (*pair, count) for pair, count in sorted(Counter(rows).items())
    ]


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(1, 2**31))))
def test_pairs_may_have_weights(rows: list[tuple[int, int, int]]) -> None:
    """Then the weights of equal pairs are summed, to the last unit."""
    expected: Counter[tuple[int, int]] = Counter()
    for left, right, weight in rows:
        expected[left, right] += weight
    first, second, weights = columns(rows, 3)
    assert [*pairs(first, second, weights).rows()] == [
        (*pair, count) for pair, count in sorted(expected.items())
    ]


@given(st.lists(st.tuples(IDS, IDS)))
def test_packed_pairs_sort_as_pairs(rows: list[tuple[int, int]]) -> None:
    """One 64-bit key for two ids, from which both can be had again."""
    assert [
        *zip(*(part.tolist() for part in unpacked(packed(*columns(rows, 2)))), strict=True)
    ] == rows
    assert [rows[at] for at in np.argsort(packed(*columns(rows, 2)), kind="stable")] == sorted(rows)


@pytest.mark.slow
@given(st.lists(st.lists(SMALL)), st.data())
def test_members_of_sets_come_set_by_set(sets: list[list[int]], data: st.DataObject) -> None:
    """Also of sets that are asked for twice, and of empty ones."""
    at = st.integers(0, len(sets) - 1) if sets else st.nothing()
    asked = data.draw(st.lists(at))
    found, member = members(sets).of(numbers(asked))
    assert [*zip(found.tolist(), member.tolist(), strict=True)] == [
        (place, each) for place, number in enumerate(asked) for each in sets[number]
    ]


@given(st.lists(st.tuples(SMALL, SMALL)))
def test_ranges_follow_each_other(rows: list[tuple[int, int]]) -> None:
    """Each from its start, as long as its size."""
    assert ranges(*columns(rows, 2)).tolist() == [
        number for start, size in rows for number in range(start, start + size)
    ]


@given(st.permutations(range(10)), st.integers(0, 10))
def test_places_are_the_inverse_of_an_order(order: list[int], used: int) -> None:
    """From 1; what is not in the order has 0."""
    found = places(numbers(order[:used]), 10).tolist()
    assert [found[value] for value in order] == [*range(1, used + 1), *[0] * (10 - used)]


@given(st.lists(SMALL, min_size=1))
def test_the_first_place_of_each_number_is_found(values: list[int]) -> None:
    """However often it stands there."""
    found = first_places(numbers(values), 10)
    assert {value: int(found[value]) for value in values} == {
        value: values.index(value) for value in values
    }


@given(st.lists(st.tuples(SMALL, st.integers(0, 2**31))))
def test_weights_are_summed_by_group(rows: list[tuple[int, int]]) -> None:
    """Groups without any weight have 0."""
    expected = [sum(weight for group, weight in rows if group == at) for at in range(12)]
    groups, weights = columns(rows, 2)
    assert summed(groups, weights, 12).tolist() == expected
