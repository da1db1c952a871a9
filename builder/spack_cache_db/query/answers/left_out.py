"""The answers to a query without one or two of its conditions.

If nothing satisfies `hdf5@2: +mpi`, configurations may satisfy `hdf5 +mpi` or
`hdf5@2:`. A condition is given by its position in `Misses.conditions`, and the
conditions that a configuration misses are the bits of a number: `0b101` is the first
and the third.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from spack_cache_db.query.answers.instead import nearest_binary, values_instead
from spack_cache_db.query.answers.reasons import Without
from spack_cache_db.query.conditions.conditions import (
    PLACE_KINDS,
    Conditions,
    Verdict,
    compiler_condition,
    only,
    variant_condition,
)
from spack_cache_db.query.conditions.pages import compiler_of_pages
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.match.misses import Misses, positions_of_bits
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import CompilerConstraint, SpecQuery
from spack_cache_db.spack.targets import has_platform, is_known, runs_on

MAX_LEFT_OUT = 2
"""Maximum of conditions that are left out together."""
_MOST_SETS = 200
"""Maximum of different sets of missed conditions that are tried."""


def answers_without(misses: Misses, query: SpecQuery) -> list[Without]:
    """Return the answers without one condition, or else without two.

    Those with most configurations come first, but behind answers with another target: a
    replaced target keeps more of the query than a condition that is left out.

    Args:
        misses: the configurations, and the conditions that they miss.
        query: the query that the conditions were read from.
    """
    for size in range(1, MAX_LEFT_OUT + 1):
        answers = []
        for positions in _sets_to_leave_out(misses, size):
            rows = misses.fitting(positions)
            if rows:
                answers.append(_answer_without(misses, query, positions, list(rows)))
        if answers:
            with_target = [answer for answer in answers if answer.target is not None]
            others = [answer for answer in answers if answer.target is None]
            return _most_first(with_target) + _most_first(others)
    return []


def _most_first(answers: Iterable[Without]) -> list[Without]:
    return sorted(answers, key=lambda answer: -answer.configurations)


def _sets_to_leave_out(misses: Misses, size: int) -> list[tuple[int, ...]]:
    """Return the sets of `size` conditions without which a configuration may satisfy
    the query, by their positions.

    These are the conditions on words that some configuration misses. If they are fewer,
    each set has conditions on places as well, such as a release: which of those a
    configuration misses is not known yet.
    """
    places = misses.positions_of(*PLACE_KINDS)
    missed_sets = {missed for missed in misses.missed if missed.bit_count() <= size}
    # The keys of a dictionary: each set once, in order.
    sets: dict[tuple[int, ...], None] = {}
    for missed in sorted(missed_sets)[:_MOST_SETS]:
        of_words = positions_of_bits(missed)
        for of_places in combinations(places, size - len(of_words)):
            positions = sorted((*of_words, *of_places))
            sets[tuple(positions)] = None
    return list(sets)


def _answer_without(
    misses: Misses, query: SpecQuery, positions: Sequence[int], rows: list[Candidate]
) -> Without:
    """Return the answer without the conditions at some positions.

    Args:
        misses: the configurations, and the conditions that they miss.
        query: the query that the conditions were read from.
        positions: the positions of the conditions that are left out.
        rows: the configurations that satisfy the others.
    """
    candidates = misses.candidates
    left_out = tuple(misses.conditions[position] for position in positions)
    reduced = query_without(query, left_out)

    # Instead of no target at all, propose the targets that run on the one in the query.
    target = None
    target_names = candidates.lookups.words["target"]
    platform_names = candidates.lookups.words["platform"]
    for condition in only(left_out, "target"):
        expected = condition.value
        if not isinstance(expected, str) or not is_known(expected):
            continue
        running = [
            row for row in rows if runs_on(target_names[row.key("target")], expected)
        ]
        # All of them may be for a platform that such a machine cannot have.
        platforms = {platform_names[row.key("platform")] for row in running}
        if any(has_platform(expected, platform) for platform in platforms):
            rows = running
            target = f":{expected}"
            reduced = replace(reduced, target=target)

    # Say what there is in place of the conditions that are left out.
    remaining = _but(misses.conditions, left_out)
    instead = []
    for position, condition in zip(positions, left_out, strict=True):
        # The newest version of several packages says nothing. If no configuration of
        # one package has the version, `WhyNot.missing` names the newest one.
        says_nothing = reduced.name is None or misses.all_miss(position)
        if condition.kind == "version" and says_nothing:
            continue
        of_specs = only(remaining, *PLACE_KINDS)
        instead.append(values_instead(candidates, condition, rows, of_specs))
    if misses.package is not None:
        instead.append(nearest_binary(candidates, left_out, rows[0], remaining))

    return Without(
        left_out,
        spec_text(reduced),
        configurations=sum(row.configurations for row in rows),
        instead=tuple(text for text in instead if text),
        nearest=candidates.configuration(rows[0]),
        target=target,
    )


def _but(conditions: Conditions, left_out: Conditions) -> Conditions:
    """Return all conditions except those that are left out."""
    return tuple(condition for condition in conditions if condition not in left_out)


def query_without(query: SpecQuery, left_out: Conditions) -> SpecQuery:
    """Return a query without the parts that some of its conditions were read from.

    All other parts stay: `cmake ~ncurses %ncurses@6` without `~ncurses` is
    `cmake %ncurses@6`. Conditions that are no part of the query change nothing.
    """
    variants = list(query.variants)
    dependencies = list(query.dependencies)
    cleared: dict[str, Any] = {}
    for condition in left_out:
        constraint = condition.value
        variants = [
            variant for variant in variants if variant_condition(variant) != condition
        ]
        if isinstance(constraint, CompilerConstraint):
            dependencies = [
                edge
                for edge in dependencies
                if compiler_condition(compiler_of_pages(edge)) != condition
            ]
        elif isinstance(constraint, Verdict):
            # A part of the query that records answer, such as `^zlib`.
            part = constraint.query
            is_requirement = constraint.named is not None
            if part is None or is_requirement:
                continue
            variants = [variant for variant in variants if variant not in part.variants]
            dependencies = [
                edge for edge in dependencies if edge not in part.dependencies
            ]
            if part.namespace is not None:
                cleared["namespace"] = None
            if part.flags:
                cleared["flags"] = ()
        elif condition.kind in ("os", "platform", "target"):
            # The option `--os` makes such a condition too.
            word = getattr(query, condition.kind)
            if condition.text == f"{condition.kind}={word}":
                cleared[condition.kind] = None
        elif condition.kind == "version":
            cleared["versions"] = None
        elif condition.kind == "hash":
            cleared["hash"] = None
    return replace(
        query, variants=tuple(variants), dependencies=tuple(dependencies), **cleared
    )
