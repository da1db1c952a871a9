"""Chooses the fewest mirrors that together list the binaries of a closure.

A set of mirrors is an integer with one bit for each mirror. The mirror that is
preferred most has the lowest bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_


def smallest_cover(choices: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the fewest mirrors such that each set of choices has one of
    them.

    The mirror for the first set comes first, and is a preferred one; the other numbers
    ascend. The same choices always give the same mirrors.

        >>> smallest_cover([0b011, 0b110, 0b100])
        (0, 2)

    Args:
        choices: for each binary, the set of the mirrors that list it; no set is empty.
    """
    if not choices:
        return ()
    # Usually one mirror lists all binaries.
    of_all = reduce(and_, choices)
    if of_all:
        return (next(numbers(of_all)),)
    # Leave out what cannot change the answer: this keeps the search short.
    needed = _without_supersets(choices)
    useful = _useful_mirrors(needed)
    needed = [mirrors & useful for mirrors in needed]
    # Each cover has a mirror of the first set. Try covers of two mirrors, of three, and
    # so on.
    size = 2
    while True:
        for mirror in numbers(choices[0] & useful):
            others = _cover(_without(needed, mirror), size - 1)
            if others is not None:
                return (mirror, *sorted(others))
        size += 1


def numbers(mirrors: int) -> Iterator[int]:
    """Yield the numbers of the mirrors in a set, the preferred mirror first."""
    while mirrors:
        lowest = mirrors & -mirrors
        yield lowest.bit_length() - 1
        mirrors ^= lowest


def _without_supersets(choices: Iterable[int]) -> list[int]:
    """Leave out sets that contain another one: a mirror for the smaller set is one for
    both.
    """
    smallest: list[int] = []
    for mirrors in sorted(
        set(choices), key=lambda mirrors: (mirrors.bit_count(), mirrors)
    ):
        contains_another = any(smaller & mirrors == smaller for smaller in smallest)
        if not contains_another:
            smallest.append(mirrors)
    return smallest


def _useful_mirrors(needed: Sequence[int]) -> int:
    """Return the mirrors without those that list nothing which another one does not
    list.
    """
    # The binaries of each mirror, as a set of bits.
    binaries: dict[int, int] = defaultdict(int)
    for position, mirrors in enumerate(needed):
        for mirror in numbers(mirrors):
            binaries[mirror] |= 1 << position
    # Of mirrors with the same binaries, keep the preferred one.
    preferred: dict[int, int] = {}
    for mirror in sorted(binaries):
        preferred.setdefault(binaries[mirror], mirror)
    useful = 0
    for listed, mirror in preferred.items():
        others = [other for other in preferred if other != listed]
        is_part_of_another = any(listed & other == listed for other in others)
        if not is_part_of_another:
            useful |= 1 << mirror
    return useful


def _cover(needed: Sequence[int], size: int) -> list[int] | None:
    """Return at most `size` mirrors that cover all sets; None if there are no such
    mirrors.
    """
    if not needed:
        return []
    if _disjoint_count(needed) > size:
        return None
    # The set with the fewest mirrors leaves the fewest ways to go on.
    rarest = min(needed, key=lambda mirrors: (mirrors.bit_count(), mirrors))
    for mirror in numbers(rarest):
        others = _cover(_without(needed, mirror), size - 1)
        if others is not None:
            return [mirror, *others]
    return None


def _without(needed: Sequence[int], mirror: int) -> list[int]:
    """Return the sets that do not have a mirror."""
    return [mirrors for mirrors in needed if not mirrors >> mirror & 1]


def _disjoint_count(needed: Iterable[int]) -> int:
    """Return how many sets have no mirror in common: each needs a mirror of its own."""
    count = 0
    seen = 0
    for mirrors in needed:
        if not mirrors & seen:
            count += 1
            seen |= mirrors
    return count
