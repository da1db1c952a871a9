"""Parallel arrays of numbers on NumPy, and the functions by which they are merged and counted.

Numbers are ids and counts below 2**31: two of them make one 64-bit key that sorts like the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spack_cache_db.sources.columns import Meaning

ROWS_AT_ONCE = 4_000

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
        """Return some of the rows: where a mask is true, at these places, or of this slice."""
        return Frame(**{name: column[chosen] for name, column in self.columns.items()})

    def having(self, **columns: Numbers) -> Frame:
        """Return the frame with other or more columns."""
        return Frame(**self.columns | columns)

    def renumbered(self, meanings: Mapping[str, Meaning], numbers: Mapping[str, Numbers]) -> Frame:
        """Return the frame with other numbers.

        Args:
            meanings: the dictionary that each column refers to (see `sources.columns.TABLES`).
            numbers: by dictionary, the new number of each old one, and 0 for 0. Numbers of
                dictionaries that are not named here stay.
        """
        known = {name: numbers.get(each.of or "") for name, each in meanings.items()}
        return Frame(
            **{
                name: column if (new := known.get(name)) is None else new[column]
                for name, column in self.columns.items()
            }
        )

    def rows(self, *names: str, **values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples.

        Args:
            names: the columns, in their order; all of them if none is named.
            values: replaces the numbers of a column: `values[column][number]`.
        """
        # A few thousand at a time: a number takes five times as much memory in Python.
        for start in range(0, len(self), ROWS_AT_ONCE):
            parts: list[Iterable[Any]] = []
            for name in names or self.columns:
                part = self[name][start : start + ROWS_AT_ONCE].tolist()
                parts.append(map(values[name].__getitem__, part) if name in values else part)
            yield from zip(*parts, strict=True)


def joined(frames: Sequence[Frame]) -> Frame:
    """Return frames of the same columns as one, one after the other."""
    names = frames[0].columns
    return Frame(**{name: np.concatenate([each[name] for each in frames]) for name in names})


def of_documents(frame: Frame, new: Numbers) -> Frame:
    """Return the rows of some documents; `new` has their new numbers, and 0 for all others."""
    frame = frame.having(document=new[frame["document"]])
    return frame if frame["document"].all() else frame.where(np.flatnonzero(frame["document"]))


class Pairs(NamedTuple):
    """Distinct pairs of numbers, sorted, and how often each was there."""

    first: Numbers
    second: Numbers
    counts: Numbers


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


def numbers(values: Iterable[int]) -> Numbers:
    """Return an array of these numbers."""
    return np.fromiter(values, dtype=np.int64)


def members(sets: Sequence[Sequence[int]]) -> Members:
    """Return sets of numbers as arrays."""
    starts = np.cumsum([0, *map(len, sets)])
    return Members(starts, numbers(each for numbers in sets for each in numbers))


def packed(first: Numbers, second: Numbers) -> Numbers:
    """Return one number for each pair, which sorts as the pair does."""
    keys = first.astype(np.int64)
    keys <<= 32
    keys |= second.astype(np.int64, copy=False)
    return keys


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


def group_starts(keys: Numbers) -> Numbers:
    """Return where each run of equal keys starts."""
    starts = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return np.flatnonzero(starts)


def varying(groups: Numbers, values: Numbers, largest: int) -> Mask:
    """Return, for each number of a group up to `largest`, whether it has different values.

    Args:
        groups: the group of each value, in any order.
        values: the values.
        largest: the largest number of a group.
    """
    some = np.zeros(largest + 1, values.dtype)
    some[groups] = values
    found = np.zeros(largest + 1, bool)
    found[groups[values != some[groups]]] = True
    return found


def places(order: Numbers, largest: int) -> Numbers:
    """Return an array that takes a number to its place in `order`, counted from 1, others to 0."""
    found = np.zeros(largest + 1, dtype=np.uint32)
    found[order] = np.arange(1, len(order) + 1)
    return found


def first_places(values: Numbers, largest: int) -> Numbers:
    """Return where each number up to `largest` stands first; 0 for those that do not."""
    found = np.zeros(largest + 1, dtype=np.int64)
    # Of several values for one index, NumPy keeps the last ("Indexing on ndarrays").
    found[values[::-1]] = np.arange(len(values))[::-1]
    return found
