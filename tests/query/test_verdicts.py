"""query.verdicts: what is known of two conditions together."""

from __future__ import annotations

from itertools import product

import pytest

from spack_cache_db.query.verdicts import Verdict

TRUTHS = (True, False, None)
PAIRS = [*product(TRUTHS, TRUTHS)]


def verdict(place: int) -> Verdict:
    """Return a verdict on the pairs, by their places: what one of each pair says."""
    said = {at: pair[place] for at, pair in enumerate(PAIRS)}
    return Verdict(
        {at for at, truth in said.items() if truth},
        {at for at, truth in said.items() if truth is None},
    )


def truth(of: Verdict, at: int) -> bool | None:
    """Return what a verdict says of one spec."""
    return True if at in of.holds else None if at in of.unknown else False


@pytest.mark.parametrize(("at", "pair"), [*enumerate(PAIRS)])
def test_two_conditions(at: int, pair: tuple[bool | None, bool | None]) -> None:
    """What is false decides `and`, what is true decides `or`; else one unknown is enough."""
    first, second = verdict(0), verdict(1)

    assert truth(first & second, at) is (False if False in pair else None if None in pair else True)
    assert truth(first | second, at) is (True if True in pair else None if None in pair else False)


@pytest.mark.parametrize(("at", "pair"), [*enumerate(PAIRS)])
def test_the_opposite(at: int, pair: tuple[bool | None, bool | None]) -> None:
    """What is not known stays so."""
    opposite = verdict(0).opposite({*range(len(PAIRS))})

    assert truth(opposite, at) is {True: False, False: True, None: None}[pair[0]]
