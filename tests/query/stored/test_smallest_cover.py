"""The fewest mirrors that list all binaries of a closure."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.stored.smallest_cover import numbers, smallest_cover

MIRRORS = 7
CHOICES = st.lists(st.integers(1, 2**MIRRORS - 1), min_size=1, max_size=9)


def is_cover(choices: list[int], mirrors: tuple[int, ...]) -> bool:
    """Return whether each set has one of the mirrors."""
    added = sum(1 << mirror for mirror in mirrors)
    return all(binary & added for binary in choices)


@given(CHOICES)
def test_no_smaller_set_of_mirrors_is_a_cover(choices: list[int]) -> None:
    """Each set has a chosen mirror, and no choice of fewer mirrors would do."""
    cover = smallest_cover(choices)

    assert is_cover(choices, cover)
    assert len(set(cover)) == len(cover)
    smaller = combinations(range(MIRRORS), len(cover) - 1)
    assert not any(is_cover(choices, mirrors) for mirrors in smaller)


@given(CHOICES)
def test_the_mirror_of_the_first_set_comes_first(choices: list[int]) -> None:
    """The first mirror has the first binary, and the other mirrors follow in their
    order.
    """
    first, *others = smallest_cover(choices)

    assert choices[0] >> first & 1
    assert others == sorted(others)


@given(CHOICES, st.randoms(use_true_random=False))
def test_the_order_of_dependencies_does_not_matter(
    choices: list[int], random: object
) -> None:
    """The same sets in another order, apart from the first, have the same mirrors."""
    others = choices[1:]
    random.shuffle(others)  # type: ignore[attr-defined]

    assert smallest_cover([choices[0], *others]) == smallest_cover(choices)


def test_a_preferred_mirror_is_chosen() -> None:
    """Of covers of the same size, the one with the preferred mirror is chosen."""
    assert smallest_cover([0b110, 0b110]) == (1,)
    assert smallest_cover([0b011, 0b110, 0b100]) == (0, 2)
    assert smallest_cover([0b1000, 0b0011]) == (3, 0)
    assert smallest_cover([]) == ()


def test_hundreds_of_similar_mirrors_are_compared_quickly() -> None:
    """Mirrors that list no more than another one do not multiply the work."""
    every = (1 << 600) - 1
    choices = [every & ~(0b111 << 3 * number) for number in range(20)]

    # Without this reduction, each pair of 600 mirrors would be tried.
    assert smallest_cover([*choices, 1 << 700, 1 << 701 | 1 << 702]) == (60, 700, 701)


def test_a_set_lists_its_mirrors_from_the_preferred_one() -> None:
    """The lowest bit is the preferred mirror."""
    assert list(numbers(0b10110)) == [1, 2, 4]
