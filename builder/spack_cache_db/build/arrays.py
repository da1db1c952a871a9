"""Parallel arrays of numbers: the few operations that merging and counting need, on NumPy.

Numbers are ids and counts, below 2**31, so two of them make one 64-bit key that sorts as they
do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ROWS_AT_ONCE = 10_000

Numbers = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


class Pairs(NamedTuple):
    """Distinct pairs of numbers, sorted, and how often each was there."""

    first: Numbers
    second: Numbers
    counts: Numbers

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield (first, second, count)."""
        return rows_of(*self)


class Members(NamedTuple):
    """Sets of numbers: those of set `n` are `numbers[starts[n] : starts[n + 1]]`."""

    starts: Numbers
    numbers: Numbers

    def of(self, sets: Numbers) -> tuple[Numbers, Numbers]:
        """Return, for each member of each of the sets, the set's place and the member."""
        sizes = self.starts[sets + 1] - self.starts[sets]
        return np.repeat(np.arange(len(sets)), sizes), self.numbers[
            ranges(self.starts[sets], sizes)
        ]


def rows_of(*columns: Numbers) -> Iterator[tuple[int, ...]]:
    """Yield the rows of parallel arrays as plain tuples.

    A few thousand at a time, for a number takes five times as much memory in Python.
    """
    for start in range(0, len(columns[0]), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        yield from zip(*(column[part].tolist() for column in columns), strict=True)


def numbers(values: Iterable[int]) -> Numbers:
    """Return an array of these numbers."""
    return np.fromiter(values, dtype=np.int64)


def members(sets: Sequence[Sequence[int]]) -> Members:
    """Return sets of numbers as arrays."""
    starts = np.cumsum([0, *map(len, sets)])
    return Members(starts, numbers(each for numbers in sets for each in numbers))


def packed(first: Numbers, second: Numbers) -> Numbers:
    """Return one number for each pair, which sorts as the pair does."""
    return (first.astype(np.int64) << 32) | second.astype(np.int64)


def unpacked(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the pairs of which these are the keys."""
    return keys >> 32, keys & 0xFFFFFFFF


def pairs(first: Numbers, second: Numbers, weights: Numbers | None = None) -> Pairs:
    """Return the distinct pairs of numbers, counted; a pair counts as its weight, or as one."""
    counts: Numbers
    if weights is None:
        keys, counts = np.unique(packed(first, second), return_counts=True)
    else:
        keys, of = np.unique(packed(first, second), return_inverse=True)
        counts = summed(of, weights, len(keys))
    return Pairs(*unpacked(keys), counts)


def summed(groups: Numbers, weights: Numbers, size: int = 0) -> Numbers:
    """Return the sum of the weights of each group, from 0 to `size` - 1 at least."""
    # NumPy sums in floating point, which is exact below 2**53.
    return np.bincount(groups, weights, size).astype(np.int64)


def ranges(starts: Numbers, sizes: Numbers) -> Numbers:
    """Return `start, start + 1, …` of each range, one range after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def places(order: Numbers, size: int) -> Numbers:
    """Return an array that takes a number to its 1-based place in `order`, others to 0."""
    found = np.zeros(size, dtype=np.int64)
    found[order] = np.arange(1, len(order) + 1)
    return found


def first_places(values: Numbers, size: int) -> Numbers:
    """Return where each number from 0 to `size` - 1 stands first; 0 for those that do not."""
    found = np.zeros(size, dtype=np.int64)
    # Of several values for one index, NumPy keeps the last ("Indexing on ndarrays").
    found[values[::-1]] = np.arange(len(values))[::-1]
    return found
