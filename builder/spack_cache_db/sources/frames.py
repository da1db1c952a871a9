"""Parallel NumPy arrays of numbers, and functions that merge and count them.

Numbers are ids and counts below 2**31: two of them fit into one 64-bit key that sorts
as the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
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
        first_column, *_ = self.columns.values()
        return len(first_column)

    def where(self, chosen: Numbers | Mask | slice) -> Frame:
        """Return the rows of a mask, of indexes or of a slice."""
        return Frame(**{name: column[chosen] for name, column in self.columns.items()})

    def sorted_by(self, first: str, second: str) -> Frame:
        """Return the rows sorted by two columns; equal rows keep their order."""
        keys = packed(self[first], self[second])
        return self.where(np.argsort(keys, kind="stable"))

    def having(self, **columns: Numbers) -> Frame:
        """Return the frame with columns replaced or added."""
        all_columns = self.columns | columns
        return Frame(**all_columns)

    def renumbered(self, numbers: Mapping[str, Numbers]) -> Frame:
        """Return the frame with new numbers in the columns of some of `DICTIONARIES`,
        such as the column `spec` of the dictionary `hashes`.

        `numbers[dictionary]` has the new number of each old one, and 0 for 0.
        """
        new_columns = {}
        for name, dictionary in DICTIONARIES.items():
            if dictionary in numbers and name in self.columns:
                new_columns[name] = numbers[dictionary][self[name]]
        return self.having(**new_columns)

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
                if name in values:
                    # A map is faster than a loop, and this runs for every cell.
                    part = map(values[name].__getitem__, part)
                parts.append(part)
            yield from zip(*parts, strict=True)


def joined(frames: Sequence[Frame]) -> Frame:
    """Return one frame with the rows of several that have the same columns."""
    columns = {}
    for name in frames[0].columns:
        columns[name] = np.concatenate([frame[name] for frame in frames])
    return Frame(**columns)


def of_documents(frame: Frame, new_numbers: Numbers) -> Frame:
    """Return the rows of some documents, with the new numbers of these documents.

    Args:
        frame: rows with the column `document`.
        new_numbers: the new number of each document by its old one, and 0 for documents
            whose rows are left out.
    """
    frame = frame.having(document=new_numbers[frame["document"]])
    if frame["document"].all():
        return frame
    return frame.where(np.flatnonzero(frame["document"]))


class NumberSets(NamedTuple):
    """Sets of numbers: those of set `n` are `numbers[starts[n] : starts[n + 1]]`."""

    starts: Numbers
    numbers: Numbers

    def members_of(self, sets: Numbers) -> tuple[Numbers, Numbers]:
        """Return the members of each set, one set after the other.

        The first array has the index in `sets` for each member, the second one the
        member. If set 5 is {7, 8}, `members_of([5, 5])` is [0, 0, 1, 1] and
        [7, 8, 7, 8].
        """
        starts = self.starts[sets]
        sizes = self.starts[sets + 1] - starts
        # The positions of the members of a set are `start`, `start + 1`, …. In the
        # result, the first of them has the position `members_before`.
        members_before = np.cumsum(sizes) - sizes
        position_in_result = np.arange(int(sizes.sum()))
        positions = np.repeat(starts - members_before, sizes) + position_in_result
        index = np.repeat(np.arange(len(sets)), sizes)
        return index, self.numbers[positions]


def number_sets(sets: Sequence[Sequence[int]]) -> NumberSets:
    """Return sets of numbers as arrays."""
    starts = np.cumsum([0, *(len(members) for members in sets)])
    return NumberSets(starts, number_array(chain.from_iterable(sets)))


def rows_by(keys: Numbers, count: int) -> NumberSets:
    """Return the rows that have each key: set `n` has the indexes of key `n`.

    Args:
        keys: the key of each row.
        count: the number of sets; all keys are below it.
    """
    rows = np.argsort(keys, kind="stable")
    starts = np.searchsorted(keys[rows], np.arange(count + 1))
    return NumberSets(starts, rows)


def number_array(values: Iterable[int]) -> Numbers:
    """Return an array of numbers."""
    return np.fromiter(values, dtype=np.int64)


def packed(first: Numbers, second: Numbers) -> Numbers:
    """Return one key for each pair, which sorts as the pair does."""
    keys = first.astype(np.int64)
    keys <<= 32
    keys |= second.astype(np.int64, copy=False)
    return keys


def packed_pair(first: int, second: int) -> int:
    """Return the key of one pair, as `packed` does for arrays."""
    return first << 32 | second


def unpacked(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the pairs of keys."""
    return keys >> 32, keys & 0xFFFFFFFF


def distinct_pairs(weights: Numbers | None = None, **columns: Numbers) -> Frame:
    """Return the distinct pairs of two columns, sorted, with their number in `count`.

    Args:
        weights: numbers that are summed for each pair, instead of counting rows.
        columns: the two columns. `distinct_pairs(configuration=…, release=…)` has the
            columns `configuration`, `release` and `count`.
    """
    # Keyword arguments keep their order.
    first_name, second_name = columns
    keys = packed(columns[first_name], columns[second_name])
    counts: Numbers
    if weights is None:
        keys, counts = np.unique(keys, return_counts=True)
    else:
        keys, group = np.unique(keys, return_inverse=True)
        counts = summed(group, weights, len(keys))
    first, second = unpacked(keys)
    return Frame(**{first_name: first, second_name: second, "count": counts})


def distinct(keys: Numbers) -> Numbers:
    """Return the distinct keys, sorted.

    `np.unique` and `np.union1d` use a hash table, which takes twenty times as long.
    """
    ordered = np.sort(keys)
    starts, _ = groups(ordered)
    return ordered[starts]


def are_among(keys: Numbers, known: Numbers) -> Mask:
    """Return whether each key is one of the known ones, which are sorted.

    `np.isin` sorts both sides, which takes four times as long.
    """
    return _found(keys, known).is_known


class _Found(NamedTuple):
    """The positions of keys among known ones, and whether each key is one of them."""

    position: Numbers
    is_known: Mask


def _found(keys: Numbers, known: Numbers) -> _Found:
    """Return where keys are among known ones, which are sorted."""
    if not len(known):
        return _Found(np.zeros(len(keys), int), np.zeros(len(keys), bool))
    position = np.searchsorted(known, keys)
    # A key above all known ones is compared with the last one.
    position = np.minimum(position, len(known) - 1)
    return _Found(position, known[position] == keys)


class Lookup:
    """Values by keys, which may be any whole numbers."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: Numbers, values: Numbers) -> None:
        order = np.argsort(keys, kind="stable")
        # Numbers of 64 bits, because NumPy would convert others at each search.
        self._keys = keys[order].astype(np.int64)
        self._values = values[order]

    def __getitem__(self, keys: Numbers) -> Numbers:
        """Return the value of each key; `LookupError` if one is not known."""
        position, is_known = _found(keys, self._keys)
        if not is_known.all():
            unknown = keys[np.argmin(is_known)]
            raise LookupError(f"the number {unknown} of a row that does not exist")
        return self._values[position]

    def get(self, keys: Numbers, default: Numbers) -> Numbers:
        """Return the value of each key, or its default if it is not known."""
        values = default.copy()
        position, is_known = _found(keys, self._keys)
        values[is_known] = self._values[position[is_known]]
        return values


def numbers_in(values: Numbers) -> Numbers:
    """Return the distinct numbers of a column, sorted.

    The numbers have to be small: there is a count for each one up to the largest.
    """
    return np.flatnonzero(np.bincount(values))


def summed(group: Numbers, weights: Numbers, size: int = 0) -> Numbers:
    """Return the sum of the weights of each group, for at least `size` groups.

    Args:
        group: the group of each row.
        weights: the weight of each row.
        size: the number of sums, if it is larger than that of groups.
    """
    # NumPy sums in floating point, which is exact below 2**53.
    return np.bincount(group, weights, size).astype(np.int64)


def groups(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the groups of equal keys that follow each other.

    The first array has the row at which each group starts, the second one the group of
    each row: [0, 2] and [0, 0, 1] for the keys [5, 5, 9].
    """
    # The first row starts a group, and each row whose key differs from the one before.
    is_start = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
    return np.flatnonzero(is_start), np.cumsum(is_start) - 1


def has_different_values(group: Numbers, values: Numbers, largest: int) -> Mask:
    """Return whether each group up to `largest` has different values.

    Args:
        group: the group of each row.
        values: the value of each row.
        largest: the largest group.
    """
    # A group has different values if one of them is not that of its last row.
    last_value = np.zeros(largest + 1, values.dtype)
    last_value[group] = values
    differs = values != last_value[group]
    result = np.zeros(largest + 1, bool)
    result[group[differs]] = True
    return result


def renumbering(order: Numbers, largest: int) -> Numbers:
    """Return the new number of each old one: its position in `order`, from 1.

    Numbers up to `largest` that are not in `order` become 0.
    """
    new_numbers = np.zeros(largest + 1, dtype=np.uint32)
    new_numbers[order] = np.arange(1, len(order) + 1)
    return new_numbers


def first_rows(values: Numbers, largest: int) -> Numbers:
    """Return the first row with each number up to `largest`.

    It is 0 for missing numbers too, so a caller asks only for numbers that occur.
    """
    rows = np.zeros(largest + 1, dtype=np.int64)
    # NumPy keeps the last of several values for one index ("Indexing on ndarrays").
    rows[values[::-1]] = np.arange(len(values))[::-1]
    return rows
