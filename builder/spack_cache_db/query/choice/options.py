"""The binaries that may be proposed, in order, and the one that is chosen of them.

Whether a binary can be installed takes time to read. The matches are in the order of
the other steps already, so binaries are looked at one after the other: first one, then
more and more together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.stored.binary import Spec

MOST_CHECKED = 500
"""Maximum of binaries whose dependencies are read; the best of them is chosen."""
_GROWTH = 8
"""Factor by which the number of matches that are read together grows each time."""

Item = TypeVar("Item")


class Standing(NamedTuple):
    """Whether a binary can be installed; the largest is best.

    Attributes:
        is_current: whether a branch or a release lists it, or the release of the
            question.
        is_complete: whether mirrors have what it needs, as far as the database knows.
        is_portable: whether it needs nothing that the system must provide.
        has_address: whether the addresses of these mirrors are known.
    """

    is_current: bool
    is_complete: bool
    is_portable: bool
    has_address: bool


BEST = Standing(is_current=True, is_complete=True, is_portable=True, has_address=True)


class Option(NamedTuple):
    """A spec that may be chosen; `is_alone` if no other spec is equal to it in all
    criteria.
    """

    row: Candidate
    spec: Spec
    is_alone: bool = False


class Choice(NamedTuple):
    """The option that was chosen, and the best standing of each row before it."""

    option: Option
    standing: Standing
    passed_over: Mapping[Candidate, Standing]


def options_in_order(
    groups: Iterator[Sequence[Candidate]],
    specs_of: Callable[[Sequence[Candidate]], Mapping[int, Sequence[Spec]]],
) -> Iterator[Option]:
    """Yield the specs of groups of rows, those of a group by release and then by hash.

    Args:
        groups: rows in order (`in_order`).
        specs_of: returns the specs of rows, by the ids of their configurations.
    """
    for batch in _growing(groups):
        # The specs of several groups are read together.
        rows = list(chain.from_iterable(batch))
        specs_of_row = specs_of(rows)
        for group in batch:
            options = []
            for row in group:
                for spec in specs_of_row.get(row.id, ()):
                    options.append(Option(row, spec))
            # The ids of specs are in the order of their first release and hash.
            options.sort(key=lambda option: option.spec.id)
            if len(options) == 1:
                options = [options[0]._replace(is_alone=True)]
            yield from options


def best_option(
    options: Iterator[Option],
    standings_of: Callable[[Sequence[Spec]], Mapping[int, Standing]],
) -> Choice | None:
    """Return the first option of the best standing; None if there is no option.

    Args:
        options: the options in order; at most `MOST_CHECKED` are looked at.
        standings_of: returns the standing of specs, by their ids.
    """
    best: Choice | None = None
    passed_over: dict[Candidate, Standing] = {}
    for batch in _growing(islice(options, MOST_CHECKED)):
        standings = standings_of([option.spec for option in batch])
        for option in batch:
            standing = standings[option.spec.id]
            if best is None or standing > best.standing:
                # Options before it come first in the order, but stand worse.
                best = Choice(option, standing, dict(passed_over))
            if standing == BEST:
                return best
            # Of several specs of a row, the best standing counts.
            earlier = passed_over.get(option.row, standing)
            passed_over[option.row] = max(standing, earlier)
    return best


def _growing(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield the first item, then 8 items, then 64, and so on."""
    count = 1
    while True:
        batch = list(islice(items, count))
        if not batch:
            return
        yield batch
        count *= _GROWTH
