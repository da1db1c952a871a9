"""build.frames: what NumPy does with arrays is what plain Python does with lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.frames import (
    ROWS_AT_ONCE,
    Frame,
    Numbers,
    first_places,
    group_starts,
    joined,
    members,
    numbers,
    packed,
    pairs,
    places,
    ranges,
    summed,
    unpacked,
)
from spack_cache_db.sources.columns import Meaning

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
    found = places(numbers(order[:used]), 9).tolist()
    assert [found[value] for value in order] == [*range(1, used + 1), *[0] * (10 - used)]


@given(st.lists(SMALL, min_size=1))
def test_the_first_place_of_each_number_is_found(values: list[int]) -> None:
    """However often it stands there."""
    found = first_places(numbers(values), 9)
    assert {value: int(found[value]) for value in values} == {
        value: values.index(value) for value in values
    }


@given(st.lists(st.tuples(SMALL, st.integers(0, 2**31))))
def test_weights_are_summed_by_group(rows: list[tuple[int, int]]) -> None:
    """Groups without any weight have 0."""
    expected = [sum(weight for group, weight in rows if group == at) for at in range(12)]
    groups, weights = columns(rows, 2)
    assert summed(groups, weights, 12).tolist() == expected


@given(st.lists(st.integers(0, 4)).map(sorted))
def test_each_group_starts_where_its_key_does(keys: list[int]) -> None:
    """One start for each distinct key."""
    starts = group_starts(numbers(keys)).tolist()
    assert starts == [keys.index(key) for key, _ in groupby(keys)]


def test_rows_are_chosen_by_mask_or_place() -> None:
    """In every column at once."""
    frame = Frame(one=np.arange(3), two=np.arange(3) + 1)
    assert [*frame.where(np.array([True, False, True])).rows()] == [(0, 1), (2, 3)]
    assert [*frame.where(np.array([2, 0])).rows("two", "one")] == [(3, 2), (1, 0)]


@pytest.mark.parametrize("size", [0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1])
def test_rows_have_what_numbers_stand_for(size: int) -> None:
    """However many there are; a column without values keeps its numbers."""
    frame = Frame(word=np.arange(size) % 2, number=np.arange(size))
    expected = [((None, "a")[at % 2], at) for at in range(size)]
    assert [*frame.rows(word=[None, "a"])] == expected
    assert [*joined([frame, frame]).rows(word=[None, "a"])] == expected * 2


def test_each_column_gets_the_numbers_of_its_dictionary() -> None:
    """0 stays 0; numbers that are what they say, or of a dictionary not given, stay as they are."""
    found = Frame(
        document=np.array([2, 1]), size=np.array([0, 2]), ref_count=np.array([5, 0])
    ).renumbered(
        {"document": Meaning("documents"), "size": Meaning("sizes"), "ref_count": Meaning(None)},
        {"sizes": np.array([0, 8, 9])},
    )
    assert [*found.rows()] == [(2, 0, 5), (1, 9, 0)]
