"""Explains empty answers: the conditions that exclude everything, and what exists
instead.

`hdf5@2: +mpi` may have no answer because no configuration has the version, or because
those with `@2:` are `~mpi`. The reasons are a `WhyNot`: a near name, the answers
without one or two conditions, or else the configuration that misses the fewest of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, TypeVar

from spack_cache_db.query.answers.left_out import answers_without
from spack_cache_db.query.answers.reasons import (
    NearestConfiguration,
    NearSpec,
    WhyNot,
    label,
)
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    Word,
    condition_value,
    without,
)
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.candidates import Candidates
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.match.misses import (
    Miss,
    Misses,
    misses_of,
    positions_of_bits,
)
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.known import NO_BINARY, KnownName, known_name
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import HASH_BEGINS_OR_ANY
from spack_cache_db.query.stored.recipe_notes import recipe_notes
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery
from spack_cache_db.spack.versions import newest_version
from spack_cache_db.sqlite_connection import is_interrupted

Explanation = TypeVar("Explanation")
# The only note of an explanation that takes too long.
NO_TIME = "the reason why nothing matches takes too long to find: name a package"
SPECS_OF_CONFIGURATIONS = f"""
SELECT specs.id, specs.release_count
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration_id = wanted.value
WHERE {HASH_BEGINS_OR_ANY}
"""
"""The specs of configurations whose hashes begin with a text, and how many releases
list each.
"""


def why_in_time(
    explain: Callable[[Question], Explanation], question: Question
) -> Explanation | WhyNot:
    """Return the result of `why_not` or `why_corrected`, or `NO_TIME` if a time limit
    interrupts it.
    """
    try:
        return explain(question)
    except sqlite3.OperationalError as error:
        if not is_interrupted(error):
            raise
        return WhyNot(notes=(NO_TIME,))


def why_not(question: Question) -> WhyNot:
    """Return why nothing satisfies a question, and specs that have answers.

    Proposed specs contain all conditions that are not listed as left out. Raises
    `UnsupportedQuery` if the database cannot answer the query.
    """
    candidates = Candidates(question.lookups)
    corrected = _why_corrected(candidates, question)
    # If the query that is meant has no answer either, its reasons are given instead.
    if corrected is not None and corrected.read_as is not None:
        return corrected
    why = explained(candidates, question.canonical_spec, question.conditions)
    return why if corrected is None else replace(why, corrected=corrected.corrected)


def why_corrected(question: Question) -> WhyNot | None:
    """Return the query that is meant, if constraints stand behind a compiler.

    Since Spack 1.0, `hdf5 %gcc +mpi` has `+mpi` on the compiler; before, it was on
    `hdf5`. The result has this query as `corrected`, or as `read_as` with the reasons
    why nothing satisfies it either. It is None if nothing stands behind a compiler, or
    if the database cannot answer the corrected query.
    """
    return _why_corrected(Candidates(question.lookups), question)


def _why_corrected(candidates: Candidates, question: Question) -> WhyNot | None:
    """Return `why_corrected`; `candidates` are the rows of the question's database."""
    moved_spec = legacy_reading(question.spec)
    if moved_spec is None:
        return None
    moved = replace(question, spec=moved_spec)
    try:
        conditions = moved.conditions
    except UnsupportedQuery:
        return None
    text = spec_text(moved.canonical_spec)
    has_answers = bool(misses_of(candidates, conditions).fitting())
    if has_answers:
        return WhyNot(corrected=text)
    why = explained(candidates, moved.canonical_spec, conditions)
    return replace(why, read_as=text)


def explained(
    candidates: Candidates, query: SpecQuery, conditions: Conditions
) -> WhyNot:
    """Return why nothing satisfies a query, without corrections.

    Args:
        candidates: the database.
        query: the query, with the names of the database.
        conditions: the conditions of the query and of its scope.
    """
    lookups = candidates.lookups
    notes = recipe_notes(lookups, query)
    # If the package has no binary, its other conditions do not matter.
    if query.name is not None:
        known = known_name(lookups, query.name)
        if not known.spec_count and not _is_provided(lookups, known):
            others = without(conditions, "package")
            near = _near_names(candidates, known, query, others)
            return WhyNot(known=known, named=near.named, close=near.close, notes=notes)

    misses = misses_of(candidates, conditions)
    answers = answers_without(misses, query)
    # If the words of a configuration satisfy all conditions (it misses 0), they are not
    # the reason. If its specs do not satisfy them in any other release either, no
    # release or mirror may list such a spec.
    has_right_words = 0 in misses.missed
    if has_right_words:
        position_of_release = misses.positions_of("release")
        in_any_release = misses.fitting(left_out=position_of_release)
        if not in_any_release:
            notes = (*_not_counted(lookups, conditions), *notes)
    return WhyNot(
        missing=tuple(_missing_versions(misses)),
        without=tuple(answers),
        nearest=None if answers else _nearest(misses),
        notes=notes,
    )


def _is_provided(lookups: Lookups, known: KnownName) -> bool:
    """Return whether a name is that of a virtual package, which a package with binaries
    provides.
    """
    if known.kind != "virtual":
        return False
    return any(known_name(lookups, provider).spec_count for provider in known.others)


class _Near(NamedTuple):
    """Queries with near names that have answers, and the other near names; both as in
    `WhyNot`.
    """

    named: tuple[NearSpec, ...] = ()
    close: tuple[str, ...] = ()


def _near_names(
    candidates: Candidates, known: KnownName, query: SpecQuery, conditions: Conditions
) -> _Near:
    """Return the queries and the names near an unknown one.

    Args:
        candidates: the database.
        known: what is known of the name; other kinds than `unknown` have no near names.
        query: the query with this name.
        conditions: the other conditions; without any, names alone are proposed.
    """
    if known.kind != "unknown":
        return _Near()
    named = []
    close = []
    for name in known.others:
        condition = Condition("package", name, Word(name))
        fitting = misses_of(candidates, (condition, *conditions)).fitting()
        if fitting and conditions:
            text = spec_text(replace(query, name=name))
            named.append(NearSpec(text, len(fitting)))
        else:
            close.append(name)
    return _Near(tuple(named), tuple(close))


def _not_counted(lookups: Lookups, conditions: Conditions) -> tuple[str, ...]:
    """Return a note if the specs that satisfy the conditions do not count: no release
    lists them, or mirrors have lost them.
    """
    gone = gone_among(lookups, without(conditions, "release"))
    if gone is not None:
        return (gone.instead,)

    # Find the specs that satisfy all conditions but those on the place. Specs that only
    # may satisfy conditions on records (`Verdict.unknown`) are left out.
    everywhere = without(conditions, "release", "stack")
    ids = configuration_ids(lookups, everywhere, every=True)
    prefix = condition_value(conditions, "hash") or ""
    verdict = condition_value(conditions, "specs")
    release_counts = {}
    rows = select_in(lookups.conn, SPECS_OF_CONFIGURATIONS, ids, hash=prefix)
    for spec, release_count in rows:
        if verdict is None or spec in verdict.matching:
            release_counts[spec] = release_count
    if not release_counts or any(release_counts.values()):
        return ()

    # No release lists any of them.
    nodes = graph.read_nodes(lookups.conn, release_counts)
    kinds = {node.kind for node in nodes.values()}
    kind = "external" if kinds == {"external"} else graph.KNOWN_AS_DEPENDENCY
    return (f"such a spec is {kind}, {NO_BINARY}",)


def _missing_versions(misses: Misses) -> Iterator[str]:
    """Yield the versions that no configuration of a package has, with its newest
    version.
    """
    if misses.package is None or not misses.rows:
        return
    words = misses.candidates.lookups.words["version"]
    # Configurations with binaries, or else all.
    rows = [row for row in misses.rows if row.spec_count] or misses.rows
    for position in misses.positions_of("version"):
        if misses.all_miss(position):
            newest = newest_version(words[row.key("version")] for row in rows)
            version = misses.conditions[position].text.removeprefix("@")
            yield f"no version {version} of {misses.package}: newest {newest}"


def _nearest(misses: Misses) -> NearestConfiguration | None:
    """Return the configuration that misses the fewest conditions; None without a
    configuration, or if one misses no condition.

    Configurations in the release and the stack of the query have precedence.
    """
    release_and_stack = misses.positions_of("release", "stack")
    # First among the specs in both, then without one of them, then without both.
    for size in range(len(release_and_stack) + 1):
        best: Miss | None = None
        for left_out in combinations(release_and_stack, size):
            nearest = misses.missing_least(set(left_out))
            if nearest is None:
                continue
            if best is None or nearest.missed_count < best.missed_count:
                best = nearest
        if best is not None:
            labels = []
            for position in positions_of_bits(best.missed):
                labels.append(label(misses.conditions[position]))
            if not labels:
                return None
            configuration = misses.candidates.configuration(best.row)
            return NearestConfiguration(configuration, tuple(labels))
    return None
