"""sources.frames: the array operations do what plain loops would do."""

from collections import Counter, defaultdict
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.frames import (
    Frame,
    Lookup,
    are_among,
    distinct,
    distinct_pairs,
    first_rows,
    groups,
    has_different_values,
    number_array,
    number_sets,
    numbers_in,
    renumbering,
    rows_by,
)

LARGEST = 9
NUMBERS = st.lists(st.integers(0, LARGEST))
PAIRS = st.lists(st.tuples(st.integers(0, LARGEST), st.integers(0, LARGEST)))


@given(st.lists(NUMBERS, min_size=1), st.data())
def test_members_follow_their_sets(sets: list[list[int]], data: st.DataObject) -> None:
    """Any sets in any order, some of them twice, some of them empty."""
    chosen = data.draw(st.lists(st.integers(0, len(sets) - 1)))
    index, members = number_sets(sets).members_of(number_array(chosen))
    expected = []
    for position, number in enumerate(chosen):
        expected += [(position, member) for member in sets[number]]

    assert list(zip(index.tolist(), members.tolist(), strict=True)) == expected


@given(PAIRS)
def test_pairs_are_counted(pairs: list[tuple[int, int]]) -> None:
    """Each distinct pair once, sorted, with the number or the weight of its rows."""
    first = number_array(pair[0] for pair in pairs)
    second = number_array(pair[1] for pair in pairs)
    expected = [(*pair, count) for pair, count in sorted(Counter(pairs).items())]
    counted = distinct_pairs(release=first, spec=second)

    assert list(counted.rows("release", "spec", "count")) == expected

    twice = distinct_pairs(release=first, spec=second, weights=np.full(len(pairs), 2))
    assert twice["count"].tolist() == [2 * count for *_, count in expected]


@given(NUMBERS, NUMBERS)
def test_distinct_numbers_are_sorted_and_found(
    numbers: list[int], others: list[int]
) -> None:
    """As sets would be; either side may be empty."""
    keys = number_array(numbers)
    known = distinct(keys)
    assert known.tolist() == numbers_in(keys).tolist() == sorted(set(numbers))
    is_known = are_among(number_array(others), known)
    assert is_known.tolist() == [other in numbers for other in others]


@given(PAIRS)
def test_rows_are_sorted_by_two_columns(pairs: list[tuple[int, int]]) -> None:
    """Equal rows keep their order."""
    specs = number_array(spec for spec, _ in pairs)
    documents = number_array(document for _, document in pairs)
    frame = Frame(spec=specs, document=documents, row=np.arange(len(pairs)))
    rows = [(*pair, row) for row, pair in enumerate(pairs)]

    assert list(frame.sorted_by("spec", "document").rows()) == sorted(rows)


@given(NUMBERS)
def test_rows_are_found_by_their_keys(keys: list[int]) -> None:
    """All rows of each key, and the first one."""
    array = number_array(keys)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    sets = rows_by(array, LARGEST + 1)

    for key in range(LARGEST + 1):
        _, members = sets.members_of(number_array([key]))
        assert members.tolist() == rows[key]

    first = first_rows(array, LARGEST).tolist()
    assert first == [min(rows[key], default=0) for key in range(LARGEST + 1)]


@given(NUMBERS)
def test_equal_neighbours_are_groups(keys: list[int]) -> None:
    """The row at which each group starts, and the group of each row."""
    starts: list[int] = []
    group_of_row: list[int] = []
    for number, (_, members) in enumerate(groupby(keys)):
        starts.append(len(group_of_row))
        group_of_row += [number for _ in members]
    found_starts, found_groups = groups(number_array(keys))

    assert (found_starts.tolist(), found_groups.tolist()) == (starts, group_of_row)


@given(PAIRS)
def test_groups_with_different_values_are_found(pairs: list[tuple[int, int]]) -> None:
    """Whatever the order of the rows is."""
    values = defaultdict(set)
    for group, value in pairs:
        values[group].add(value)
    all_groups = number_array(group for group, _ in pairs)
    all_values = number_array(value for _, value in pairs)
    found = has_different_values(all_groups, all_values, LARGEST)
    expected = [len(values[group]) > 1 for group in range(LARGEST + 1)]

    assert found.tolist() == expected


@given(st.permutations(range(1, LARGEST + 1)), st.integers(0, LARGEST))
def test_new_numbers_are_positions(numbers: list[int], count: int) -> None:
    """Numbers that are left out become 0."""
    order = numbers[:count]
    found = renumbering(number_array(order), LARGEST).tolist()
    expected = [0] * (LARGEST + 1)
    for position, number in enumerate(order, start=1):
        expected[number] = position

    assert found == expected


@given(st.dictionaries(st.integers(-LARGEST, LARGEST), st.integers(0, LARGEST)), PAIRS)
def test_values_are_looked_up(
    values: dict[int, int], asked: list[tuple[int, int]]
) -> None:
    """A key that is not known gets its default, or is an error."""
    keys = number_array(values)
    lookup = Lookup(keys, number_array(values.values()))
    asked_keys = number_array(key for key, _ in asked)
    defaults = number_array(default for _, default in asked)
    expected = [values.get(key, default) for key, default in asked]

    assert lookup.get(asked_keys, defaults).tolist() == expected
    if all(key in values for key, _ in asked):
        assert lookup[asked_keys].tolist() == [values[key] for key, _ in asked]
    else:
        with pytest.raises(LookupError):
            lookup[asked_keys]
