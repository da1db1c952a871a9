"""build.fold: what several documents list becomes one listing, and nothing is lost in silence."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.build.arrays import numbers
from spack_cache_db.build.fold import Difference, fold
from spack_cache_db.build.listings import Listing, Listings
from spack_cache_db.sources.columns import Interned, Stacks

ROWS = st.lists(
    st.builds(
        Listing,
        document=st.integers(0, 9),
        spec=st.integers(0, 3),
        configuration=st.integers(0, 2),
        stacks=st.integers(0, 3),
        size=st.integers(0, 2),
        tarball=st.integers(0, 2),
    ),
    max_size=12,
    unique_by=itemgetter(0, 1),
)
SETS: list[Stacks] = [(), ("a",), ("b",), ("a", "b")]


def folded(group: list[Listing]) -> tuple[tuple[object, ...], list[Difference]]:
    """Return what a group of listings becomes, and what of them is not stored: by plain Python."""
    first = group[0]
    sized = next((each for each in group if each.size), first)
    alike = [each for each in group if each.configuration == first.configuration]
    linked = next((each for each in alike if each.tarball), first)
    tarball = linked.tarball
    names = {name for each in group for name in SETS[each.stacks]}
    differences = []
    for each in group:
        if each.configuration != first.configuration:
            differences.append(Difference("configuration", each, first))
        if each.size not in (0, sized.size):
            differences.append(Difference("size", each, sized))
        if each.tarball and (each not in alike or each.tarball != tarball):
            differences.append(Difference("tarball", each, linked))
    row = (first.document, first.spec, first.configuration, tuple(sorted(names)))
    return (*row, sized.size, tarball), differences


@given(ROWS)
def test_a_fold_is_that_of_plain_python(rows: list[Listing]) -> None:
    """Stacks are united; the first that knows is right; whoever says otherwise is told."""
    rows = sorted(rows, key=lambda each: (each.spec, each.document))
    known = Interned[Stacks]()
    for each in SETS:
        known[each]
    columns = [numbers(row[at] for row in rows) for at in range(6)]
    found, differences = fold(Listings(*columns), columns[1], known)
    expected = [folded([*group]) for _, group in groupby(rows, key=itemgetter(1))]
    assert [
        (*row[:3], known.things[row[3]], *row[4:])
        for row in zip(*(column.tolist() for column in found), strict=True)
    ] == [row for row, _ in expected]
    assert sorted(differences) == sorted(each for _, some in expected for each in some)


@pytest.mark.parametrize("column", Listings._fields[4:])
def test_who_does_not_know_hides_nothing(column: str) -> None:
    """The first document that knows is right, 0 contradicts nobody, and another number does."""
    silent = Listing._make([0] * len(Listing._fields))
    right, wrong = (silent._replace(document=at, **{column: at}) for at in (1, 2))
    columns = map(numbers, zip(silent, right, wrong, strict=True))
    known = Interned[Stacks]()
    known[()]
    found, differences = fold(Listings(*columns), numbers([0, 0, 0]), known)
    assert getattr(found, column).tolist() == [1]
    assert differences == [Difference(column, wrong, right)]
