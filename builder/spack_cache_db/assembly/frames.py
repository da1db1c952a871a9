"""Parallel NumPy arrays of numbers, and functions that merge and count them.

Numbers are ids and counts below 2**31: two of them fit into one 64-bit key that sorts
as the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.sources.writer import DICTIONARIES

ROWS_AT_ONCE = 4_000
"""Number of rows that are Python objects at a time, which take five times as much
memory.
"""

Numbers = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


class Frame:
    """Parallel arrays by name: `frame[name]` has one number for each row."""

    __slots__ = ("columns",)

    def __init__(self, **columns: Numbers) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def where(self, chosen: Numbers | Mask | slice) -> Frame:
        """Return the rows of a mask, of indexes or of a slice."""
        return Frame(**{name: column[chosen] for name, column in self.columns.items()})

    def having(self, **columns: Numbers) -> Frame:
        """Return the frame with columns replaced or added."""
        return Frame(**self.columns | columns)

    def renumbered(self, numbers: Mapping[str, Numbers]) -> Frame:
        """Return the frame with new numbers in the columns of some of `DICTIONARIES`.

        `numbers[dictionary]` has the new number of each old one, and 0 for 0.
        """
        new = {
            name: numbers[dictionary][self[name]]
            for name, dictionary in DICTIONARIES.items()
            if dictionary in numbers and name in self.columns
        }
        return self.having(**new)

    def rows(self, *names: str, **values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples.

        Args:
            names: the columns, by default all.
            values: the values of a column's numbers: `values[column][number]`.
        """
        for start in range(0, len(self), ROWS_AT_ONCE):
            parts: list[Iterable[Any]] = []
            for name in names or self.columns:
                part = self[name][start : start + ROWS_AT_ONCE].tolist()
                parts.append(
                    map(values[name].__getitem__, part) if name in values else part
                )
            yield from zip(*parts, strict=True)


def joined(frames: Sequence[Frame]) -> Frame:
    """Return one frame with the rows of several that have the same columns."""
    names = frames[0].columns
    return Frame(
        **{name: np.concatenate([frame[name] for frame in frames]) for name in names}
    )


def of_documents(frame: Frame, new: Numbers) -> Frame:
    """Return the rows of some documents; `new` has their new numbers, and 0 for all
    others.
    """
    frame = frame.having(document=new[frame["document"]])
    return (
        frame
        if frame["document"].all()
        else frame.where(np.flatnonzero(frame["document"]))
    )


class Pairs(NamedTuple):
    """Distinct pairs of numbers, sorted, and the number of their occurrences."""

    first: Numbers
    second: Numbers
    counts: Numbers


class Members(NamedTuple):
    """Sets of numbers: those of set `n` are `numbers[starts[n] : starts[n + 1]]`."""

    starts: Numbers
    numbers: Numbers

    def of(self, sets: Numbers) -> tuple[Numbers, Numbers]:
        """Return the index of the set and the member, for each member of each set."""
        starts = self.starts[sets]
        sizes = self.starts[sets + 1] - starts
        # The places of all members: `start, start + 1, …` of each set, one set after
        # the other.
        before = np.cumsum(sizes) - sizes
        at = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
        return np.repeat(np.arange(len(sets)), sizes), self.numbers[at]


def members(sets: Sequence[Sequence[int]]) -> Members:
    """Return sets of numbers as arrays."""
    starts = np.cumsum([0, *map(len, sets)])
    return Members(starts, numbers(number for numbers in sets for number in numbers))


def numbers(values: Iterable[int]) -> Numbers:
    """Return an array of numbers."""
    return np.fromiter(values, dtype=np.int64)


def packed(first: Numbers, second: Numbers) -> Numbers:
    """Return one key for each pair, which sorts as the pair does."""
    keys = first.astype(np.int64)
    keys <<= 32
    keys |= second.astype(np.int64, copy=False)
    return keys


def unpacked(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the pairs of keys."""
    return keys >> 32, keys & 0xFFFFFFFF


def pairs(first: Numbers, second: Numbers, weights: Numbers | None = None) -> Pairs:
    """Return the distinct pairs, with the sum of their weights, by default their
    number.
    """
    counts: Numbers
    if weights is None:
        keys, counts = np.unique(packed(first, second), return_counts=True)
    else:
        keys, group = np.unique(packed(first, second), return_inverse=True)
        counts = summed(group, weights, len(keys))
    return Pairs(*unpacked(keys), counts)


def summed(groups: Numbers, weights: Numbers, size: int = 0) -> Numbers:
    """Return the sum of the weights of each group, for at least `size` groups."""
    # NumPy sums in floating point, which is exact below 2**53.
    return np.bincount(groups, weights, size).astype(np.int64)


def groups(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the index at which each run of equal keys starts, and the run of each
    key.
    """
    starts = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return np.flatnonzero(starts), np.cumsum(starts) - 1


def varying(groups: Numbers, values: Numbers, largest: int) -> Mask:
    """Return whether each group up to `largest` has different values."""
    last_values = np.zeros(largest + 1, values.dtype)
    last_values[groups] = values
    result = np.zeros(largest + 1, bool)
    result[groups[values != last_values[groups]]] = True
    return result


def places(order: Numbers, largest: int) -> Numbers:
    """Return the position of each number in `order`, counted from 1; 0 for other
    numbers.
    """
    positions = np.zeros(largest + 1, dtype=np.uint32)
    positions[order] = np.arange(1, len(order) + 1)
    return positions


def first_places(values: Numbers, largest: int) -> Numbers:
    """Return the first index of each number up to `largest`; 0 for missing numbers."""
    positions = np.zeros(largest + 1, dtype=np.int64)
    # NumPy keeps the last of several values for one index ("Indexing on ndarrays").
    positions[values[::-1]] = np.arange(len(values))[::-1]
    return positions
