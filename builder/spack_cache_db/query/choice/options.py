"""Chooses one spec among the matches of a question: the first that can be installed.

A question such as `hdf5 +mpi` is matched by configurations, called rows here. A row has
one or more specs, which differ in their hashes. The rule puts the rows in order, the
best first (`rule.in_order`), but it does not see whether a spec can be installed: that
depends on all that the spec needs, which takes time to read. So `options_in_order`
yields the specs of the rows in that order, and `best_option` looks at one after the
other until it finds one that can be installed.

The first spec is usually the answer, and reading many specs in one statement is quicker
than reading each alone. So 1 item is read first, and then 8, 64 and so on together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.stored.binary import Spec

MOST_CHECKED = 500
"""Maximum of specs that are looked at; the best of them is chosen."""
_GROWTH = 8
"""How many times more items are read together than the time before."""

Item = TypeVar("Item")


class Standing(NamedTuple):
    """Whether a spec can be installed.

    Standings are compared as tuples: the larger one is better, and an earlier field
    counts more than all later ones.

    Attributes:
        is_current: whether a branch or a release lists the spec, not only an old
            snapshot; for a question about one release, whether that lists it.
        is_complete: whether mirrors have all that it needs, as far as the database
            knows.
        is_portable: whether it needs nothing that the system must provide.
        has_address: whether the URLs of these mirrors are known.
    """

    is_current: bool
    is_complete: bool
    is_portable: bool
    has_address: bool


BEST = Standing(is_current=True, is_complete=True, is_portable=True, has_address=True)
"""The standing of a spec that can be installed."""


class Option(NamedTuple):
    """A spec that may be chosen.

    Attributes:
        row: the configuration of the spec.
        is_alone: whether the rule ranks no other spec as equal to it.
    """

    row: Candidate
    spec: Spec
    is_alone: bool = False


class Choice(NamedTuple):
    """The option that was chosen.

    Attributes:
        standing: the standing of its spec.
        passed_over: the rows of the options before it. They stand worse; of several
            specs of a row, the best standing is given.
    """

    option: Option
    standing: Standing
    passed_over: Mapping[Candidate, Standing]


def options_in_order(
    groups: Iterator[Sequence[Candidate]],
    specs_of: Callable[[Sequence[Candidate]], Mapping[int, Sequence[Spec]]],
) -> Iterator[Option]:
    """Yield the specs of rows, the best first.

    Args:
        groups: groups of rows that the rule ranks as equal, the best group first. The
            specs of a group are yielded by their first release and then by hash.
        specs_of: returns the specs of rows, by the ids of the rows; a row without specs
            may have no key.
    """
    for batch in _growing(groups):
        rows = list(chain.from_iterable(batch))
        specs_of_row = specs_of(rows)
        for group in batch:
            options = []
            for row in group:
                for spec in specs_of_row.get(row.id, ()):
                    options.append(Option(row, spec))
            # A build numbers specs by their first release, and then by hash.
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
        options: the options, the best first.
        standings_of: returns the standings of specs, by the ids of the specs.
    """
    best: Choice | None = None
    passed_over: dict[Candidate, Standing] = {}
    for batch in _growing(islice(options, MOST_CHECKED)):
        standings = standings_of([option.spec for option in batch])
        for option in batch:
            standing = standings[option.spec.id]
            if best is None or standing > best.standing:
                # A copy, because later options are no part of this choice.
                best = Choice(option, standing, dict(passed_over))
            if standing == BEST:
                return best
            row_standing = passed_over.get(option.row, standing)
            passed_over[option.row] = max(row_standing, standing)
    return best


def _growing(items: Iterator[Item]) -> Iterator[list[Item]]:
    """Yield lists of items: the first item, then the next 8, then 64, and so on."""
    size = 1
    while True:
        batch = list(islice(items, size))
        if not batch:
            return
        yield batch
        size *= _GROWTH
