"""Explains empty answers: the conditions that exclude everything, and what exists
instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    Verdict,
    Word,
    asked,
    compiler_condition,
    configuration_conditions,
    only,
    readable_variants,
    variant_condition,
    without,
)
from spack_cache_db.query.conditions.pages import UnsupportedQuery, compiler_of_pages
from spack_cache_db.query.match.candidates import Candidate, Candidates
from spack_cache_db.query.match.gone import gone_among
from spack_cache_db.query.match.misses import Misses, misses_of
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.requirements import breaking_dependencies
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.known import (
    NO_BINARY,
    KnownName,
    known_name,
    unknown_text,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import HASH_BEGINS_OR_ANY
from spack_cache_db.query.stored.package_data import recipe_notes
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import is_known, runs_on
from spack_cache_db.spack.versions import newest_version, preference

Explanation = TypeVar("Explanation")
NO_TIME = "the reason why nothing matches takes too long to find: name a package"
MAX_LEFT_OUT = 2
"""Maximum of conditions that are left out together."""
SCOPE = ("release", "stack", "host")
"""The kinds of conditions that are not part of a spec."""
SPECS_OF_CONFIGURATIONS = f"""
SELECT specs.id, specs.release_count
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
WHERE {HASH_BEGINS_OR_ANY}
"""
SHORT = 7
"""Characters of a hash that Spack prints."""
_MOST_MASKS = 200
_MOST_COMPARED = 100
_MOST_NODES = 2_000
_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class Without:
    """The answer without some of the conditions.

    Attributes:
        spec: the query without the conditions `left_out`.
        configurations: the number of configurations that satisfy all others.
        instead: the values of these configurations for the conditions, as texts.
        nearest: the first configuration, newest version first.
        target: the target of `spec` in place of the one that is left out: those that
            run on it.
    """

    left_out: tuple[Condition, ...]
    spec: str
    configurations: int
    instead: tuple[str, ...]
    nearest: Configuration
    target: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The kinds of `SCOPE` that are left out."""
        return tuple(
            condition.kind for condition in self.left_out if condition.kind in SCOPE
        )

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        replaced = "target" if self.target is not None else ""
        names = [
            label(condition)
            for condition in self.left_out
            if condition.kind != replaced
        ]
        parts = [f"without {' and '.join(names)}"] if names else []
        parts += [f"with target={self.target}"] if self.target else []
        count = counted(self.configurations, "configuration")
        return "; ".join((f"{' and '.join(parts)}: {count}", *self.instead))


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The reasons for an empty answer, and what exists instead.

    Attributes:
        known: the meaning of the package's name, if no binary has it.
        close: packages with names near an unknown one that do not satisfy the other
            conditions.
        missing: conditions that no configuration satisfies, with the values that exist,
            as texts.
        without: answers without one condition, or else without two; most configurations
            first.
        nearest: otherwise the configuration that misses the fewest conditions, and
            their labels.
        named: queries with a name near an unknown one, and the number of their
            configurations.
        corrected: the query with the constraints behind a compiler moved before it, if
            that has an answer; `read_as` is this query if it has none, and all reasons
            are those of it.
    """

    known: KnownName | None = None
    close: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    without: tuple[Without, ...] = ()
    nearest: tuple[Configuration, tuple[str, ...]] | None = None
    named: tuple[tuple[str, int], ...] = ()
    corrected: str | None = None
    read_as: str | None = None
    notes: tuple[str, ...] = ()

    def reasons(self) -> tuple[str, ...]:
        """Return why there is no answer and what to type instead, as sentences."""
        nothing = (
            () if self.known else ("no binary in this database satisfies this spec",)
        )
        return (*nothing, *self.advice())

    def advice(self) -> tuple[str, ...]:
        """Return `sentences`, and what to type instead."""
        instead = (f"perhaps you mean: {self.corrected}",) if self.corrected else ()
        return (*self.sentences(), *instead)

    def sentences(self) -> tuple[str, ...]:
        """Return the reasons as sentences."""
        read_as = (
            (f"nothing satisfies {self.read_as!r} either",) if self.read_as else ()
        )
        names: tuple[str, ...] = ()
        if self.known is not None:
            # Near names are proposed with the other conditions of the query.
            near = (*(spec for spec, _ in self.named), *self.close)
            names = (
                f"{self.known.name}: {unknown_text(near)}"
                if near
                else self.known.sentence,
            )
        answers = (answer.sentence for answer in self.without)
        return (*read_as, *names, *self.missing, *answers, *self.last_sentences)

    @property
    def last_sentences(self) -> tuple[str, ...]:
        """The nearest configuration, if there is no other answer, and the notes."""
        if self.nearest is None:
            return self.notes
        configuration, missed = self.nearest
        sentence = (
            f"nearest is {configuration.summary}, which misses {', '.join(missed)}"
        )
        return (sentence, *self.notes)


def why_in_time(
    explain: Callable[[Question], Explanation], question: Question
) -> Explanation | WhyNot:
    """Return the result of `why_not` or `why_corrected`, or `NO_TIME` if it is
    interrupted.
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
    if corrected is not None and corrected.read_as is not None:
        return corrected
    why = explained(candidates, question.canonical_spec, question.conditions)
    return why if corrected is None else replace(why, corrected=corrected.corrected)


def why_corrected(question: Question) -> WhyNot | None:
    """Return `corrected`, or `read_as` with its reasons, for constraints behind a
    compiler.

    None if there are none, or the database cannot answer the corrected query.
    """
    return _why_corrected(Candidates(question.lookups), question)


def _why_corrected(candidates: Candidates, question: Question) -> WhyNot | None:
    moved_spec = legacy_reading(question.spec)
    if moved_spec is None:
        return None
    moved = replace(question, spec=moved_spec)
    try:
        conditions = moved.conditions
    except UnsupportedQuery:
        return None
    text = spec_text(moved.canonical_spec)
    if misses_of(candidates, conditions).fitting():
        return WhyNot(corrected=text)
    why = explained(candidates, moved.canonical_spec, conditions)
    return replace(why, read_as=text)


def explained(
    candidates: Candidates, query: SpecQuery, conditions: Conditions
) -> WhyNot:
    """Return why nothing satisfies a query, without corrections."""
    lookups, notes = candidates.lookups, recipe_notes(candidates.lookups, query)
    if query.name is not None:
        known = known_name(lookups, query.name)
        providers = known.others if known.kind == "virtual" else ()
        built = (known_name(lookups, provider).spec_count for provider in providers)
        if not known.spec_count and not any(built):
            named, close = _near(
                candidates, known, query, without(conditions, "package")
            )
            return WhyNot(known=known, named=named, close=close, notes=notes)
    misses = misses_of(candidates, conditions)
    answers = tuple(_without(misses, query))
    release = [
        at
        for at, condition in enumerate(misses.conditions)
        if condition.kind == "release"
    ]
    if 0 in misses.missed and not misses.fitting(release):
        notes = (*_not_counted(lookups, conditions), *notes)
    nearest = None if answers else _nearest(misses)
    return WhyNot(
        missing=tuple(_missing(misses)), without=answers, nearest=nearest, notes=notes
    )


def _near(
    candidates: Candidates, known: KnownName, query: SpecQuery, conditions: Conditions
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Return queries with names near an unknown one that have answers, and the other
    near names.
    """
    rewritten, close = [], []
    for name in known.others if known.kind == "unknown" else ():
        condition = Condition("package", name, Word(name))
        fitting = misses_of(candidates, (condition, *conditions)).fitting()
        if fitting and conditions:
            rewritten.append((spec_text(replace(query, name=name)), len(fitting)))
        else:
            close.append(name)
    return tuple(rewritten), tuple(close)


def _without(misses: Misses, query: SpecQuery) -> list[Without]:
    """Return the answers without one condition, or else without two."""
    for size in range(1, MAX_LEFT_OUT + 1):
        answers = [
            _found_without(misses, query, indexes, [*rows])
            for indexes in _left_out(misses, size)
            if (rows := misses.fitting(indexes))
        ]
        if answers:
            return sorted(
                answers,
                key=lambda answer: (answer.target is None, -answer.configurations),
            )
    return []


def _left_out(misses: Misses, size: int) -> Iterable[tuple[int, ...]]:
    """Return the sets of `size` conditions that are all that some configuration
    misses.
    """
    places = [
        at for at, condition in enumerate(misses.conditions) if condition.kind in PLACES
    ]
    few = sorted({missed for missed in misses.missed if missed.bit_count() <= size})
    sets: dict[tuple[int, ...], None] = {}
    for missed in few[:_MOST_MASKS]:
        words = [
            index for index in range(len(misses.conditions)) if missed >> index & 1
        ]
        for more in combinations(places, size - len(words)):
            sets[tuple(sorted((*words, *more)))] = None
    return sets


def _found_without(
    misses: Misses, query: SpecQuery, indexes: Sequence[int], rows: list[Candidate]
) -> Without:
    candidates, target = misses.candidates, None
    left_out = tuple(misses.conditions[index] for index in indexes)
    reduced, targets = _reduced(query, left_out), candidates.lookups.words["target"]
    for expected in (condition.asked for condition in only(left_out, "target")):
        if isinstance(expected, str) and is_known(expected):
            running = [
                row for row in rows if runs_on(targets[row.key("target")], expected)
            ]
            if running:
                rows, target = running, f":{expected}"
                reduced = replace(reduced, target=target)
    remaining = _remaining(only(misses.conditions, *PLACES), left_out)
    instead = [
        _instead(candidates, condition, rows, remaining)
        for index, condition in zip(indexes, left_out, strict=True)
        # `missing` names the newest version if no configuration has the version.
        if condition.kind != "version"
        or not (reduced.name is None or misses.all_miss(index))
    ]
    return Without(
        left_out,
        spec_text(reduced),
        sum(row.configurations for row in rows),
        tuple(filter(None, (*instead, _nearest_binary(misses, left_out, rows)))),
        candidates.configuration(rows[0]),
        target,
    )


def _remaining(conditions: Conditions, left_out: Conditions) -> Conditions:
    return tuple(condition for condition in conditions if condition not in left_out)


def _instead(
    candidates: Candidates,
    condition: Condition,
    rows: list[Candidate],
    remaining: Conditions,
) -> str:
    """Return the values of configurations for a condition that is left out, as text.

    Only specs that satisfy the `remaining` conditions count.
    """
    expected = condition.asked
    if isinstance(expected, Verdict) and expected.query is not None:
        if expected.named is None:
            return _needed_instead(candidates, expected.query, rows, remaining)
        options = configuration_conditions(expected.query)
        texts = (_instead(candidates, option, rows, ()) for option in options)
        return "; ".join(filter(None, texts))
    if condition.kind in PLACES:
        return ""
    column = COLUMNS[condition.kind]
    keys = dict.fromkeys(row.key(column) for row in rows)
    words = [candidates.lookups.words[column][key] for key in keys]
    if isinstance(expected, VariantConstraint):
        found = (
            variant
            for texts in words
            for variant in readable_variants(texts, expected.name)
        )
        variants = _there_are(variant.text for variant in found)
        return variants or f"none has a variant {expected.name}"
    if condition.kind == "version":
        return f"newest {newest_version(words)}"
    if condition.kind == "target":
        running = [word for word in words if runs_on(word, str(expected))]
        if running:
            return f"{_first(running)} {'runs' if len(running) == 1 else 'run'} on {expected}"
    return _there_are(words)


def _nearest_binary(misses: Misses, left_out: Conditions, rows: list[Candidate]) -> str:
    """Return the nearest binary, if requirements of `packages:` are left out, as
    text.
    """
    verdicts = [
        condition.asked
        for condition in left_out
        if isinstance(condition.asked, Verdict)
    ]
    verdicts = [verdict for verdict in verdicts if verdict.named is not None]
    if not verdicts or misses.package is None:
        return ""
    candidates = misses.candidates
    remaining = _remaining(misses.conditions, left_out)
    (nearest, *_) = candidates.specs_of(remaining, rows[:1])[rows[0].id]
    sentence = f"nearest is {candidates.configuration(rows[0]).summary} /{nearest.hash[:SHORT]}"
    dependencies = breaking_dependencies(candidates.lookups, verdicts, nearest)
    return (
        f"{sentence}, which uses {_first(dependencies)}" if dependencies else sentence
    )


def _reduced(query: SpecQuery, left_out: Conditions) -> SpecQuery:
    """Return a query without the parts that some of its conditions were read from.

    All other parts stay: `cmake ~ncurses %ncurses@6` without `~ncurses` is
        `cmake %ncurses@6`.
    """
    variants = [
        variant
        for variant in query.variants
        if variant_condition(variant) not in left_out
    ]
    dependencies = list(query.dependencies)
    cleared: dict[str, Any] = {}
    for condition in left_out:
        constraint = condition.asked
        if isinstance(constraint, CompilerConstraint):
            dependencies = [
                edge
                for edge in dependencies
                if compiler_condition(compiler_of_pages(edge)) != condition
            ]
        elif isinstance(constraint, Verdict):
            # A requirement of `packages:` is no part of the query.
            part = constraint.query if constraint.named is None else None
            if part is None:
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
            # A condition on a word is also one of the scope, such as `--os`.
            if condition.text == f"{condition.kind}={getattr(query, condition.kind)}":
                cleared[condition.kind] = None
        elif condition.kind == "version":
            cleared["versions"] = None
        elif condition.kind == "hash":
            cleared["hash"] = None
    return replace(
        query, variants=tuple(variants), dependencies=tuple(dependencies), **cleared
    )


def _missing(misses: Misses) -> Iterator[str]:
    """Yield the versions that no configuration of a package has, with its newest
    version.
    """
    if misses.package is None or not misses.rows:
        return
    words = misses.candidates.lookups.words["version"]
    rows = [row for row in misses.rows if row.spec_count] or misses.rows
    for index, condition in enumerate(misses.conditions):
        if condition.kind == "version" and misses.all_miss(index):
            newest = newest_version(words[row.key("version")] for row in rows)
            version = condition.text.removeprefix("@")
            yield f"no version {version} of {misses.package}: newest {newest}"


def _nearest(misses: Misses) -> tuple[Configuration, tuple[str, ...]] | None:
    """Return the configuration that misses the fewest conditions, and their labels.

    Configurations in the release and the stack of the query have precedence.
    """
    conditions = misses.conditions
    release_and_stack = [
        at for at, found in enumerate(conditions) if found.kind in ("release", "stack")
    ]
    for size in range(len(release_and_stack) + 1):
        nearest = (
            misses.missing_least({*out})
            for out in combinations(release_and_stack, size)
        )
        best = min(
            filter(None, nearest), key=lambda pair: pair[0].bit_count(), default=None
        )
        if best is not None:
            missed, row = best
            labels = tuple(
                label(found) for at, found in enumerate(conditions) if missed >> at & 1
            )
            return (misses.candidates.configuration(row), labels) if labels else None
    return None


def label(condition: Condition) -> str:
    """Return a condition as a user types it; a release, stack or host with its kind."""
    return (
        f"{condition.kind} {condition.text}"
        if condition.kind in SCOPE
        else condition.text
    )


def _not_counted(lookups: Lookups, conditions: Conditions) -> tuple[str, ...]:
    """Return a note if specs satisfy the conditions that no release lists, or no mirror
    now.
    """
    gone = gone_among(lookups, without(conditions, "release"))
    if gone is not None:
        return (gone.instead,)
    ids = configuration_ids(
        lookups, without(conditions, "release", "stack"), every=True
    )
    verdict, prefix = asked(conditions, "specs"), asked(conditions, "hash") or ""
    rows = select_in(lookups.conn, SPECS_OF_CONFIGURATIONS, ids, hash=prefix)
    counts = {
        spec: count for spec, count in rows if verdict is None or spec in verdict.holds
    }
    if not counts or any(counts.values()):
        return ()
    kinds = {node.kind for node in graph.read_nodes(lookups.conn, counts).values()}
    kind = "external" if kinds == {"external"} else graph.KNOWN_AS_DEPENDENCY
    return (f"such a spec is {kind}, {NO_BINARY}",)


def _needed_instead(
    candidates: Candidates,
    part: SpecQuery,
    rows: Sequence[Candidate],
    conditions: Conditions,
) -> str:
    """Return the versions that configurations need of the dependency in a query."""
    edges = part.dependencies
    if len(edges) != 1 or edges[0].node.name is None:
        return ""
    name, expected = edges[0].node.name, {*(edges[0].virtuals or (edges[0].node.name,))}
    specs = candidates.specs_of(conditions, rows[:_MOST_COMPARED]).values()
    ids = tuple(spec.id for specs_of_row in specs for spec in specs_of_row)[
        :_MOST_COMPARED
    ]
    needs = candidates.once(("needs", ids), lambda: _needs(candidates.lookups, ids))
    versions = {
        (
            node.version,
            node.version if node.package == name else f"{node.package} {node.version}",
        )
        for virtuals, node, is_direct in needs or ()
        if (is_direct or not edges[0].direct)
        and not expected.isdisjoint((node.package, *virtuals))
    }
    ordered = sorted(
        sorted(versions), key=lambda item: preference(item[0]), reverse=True
    )
    if needs is None or versions:
        return _there_are(text for version, text in ordered if version)
    return f"none needs {', '.join(sorted(expected))}"


def _needs(
    lookups: Lookups, specs: Iterable[int]
) -> set[tuple[tuple[str, ...], graph.Node, bool]] | None:
    """Return the dependencies of specs: virtuals, node, and whether they are direct
    ones.

    None without dependency data.
    """
    if not (roots := {*graph.recorded_specs(lookups.conn, specs)}):
        return None
    needs = graph.read_needs(lookups, roots, _MOST_NODES)
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    return {
        (edge.virtuals, nodes[edge.dependency], spec in roots)
        for spec, edges in needs.edges.items()
        for edge in edges
    }


def _there_are(words: Iterable[str]) -> str:
    texts = [*dict.fromkeys(words)]
    return (
        f"there {'is' if len(texts) == 1 else 'are'} {_first(texts)}" if texts else ""
    )


def _first(words: Sequence[str]) -> str:
    """Return words as a list in a sentence; of many, the first and the number of the
    others.
    """
    if len(words) > _MOST_LISTED + 1:
        return f"{', '.join(words[:_MOST_LISTED])} and {len(words) - _MOST_LISTED} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
