"""Explains empty answers: the conditions that exclude everything, and what exists
instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from spack_cache_db.errors import counted, series
from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    PLACE_KINDS,
    Condition,
    Conditions,
    Verdict,
    Word,
    compiler_condition,
    condition_value,
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
from spack_cache_db.query.stored.recipe_notes import recipe_notes
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import is_known, runs_on
from spack_cache_db.spack.versions import newest_version, preference
from spack_cache_db.sqlite_connection import is_interrupted

Explanation = TypeVar("Explanation")
NO_TIME = "the reason why nothing matches takes too long to find: name a package"
MAX_LEFT_OUT = 2
"""Maximum of conditions that are left out together."""
SCOPE = ("release", "stack", "host")
"""The kinds of conditions that are not part of a spec."""
SPECS_OF_CONFIGURATIONS = f"""
SELECT specs.id, specs.release_count
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration_id = wanted.value
WHERE {HASH_BEGINS_OR_ANY}
"""
SHORT = 7
"""Characters of a hash that Spack prints."""
_MOST_SETS = 200
"""Maximum of different sets of missed conditions that are tried."""
_MOST_COMPARED = 100
"""Maximum of binaries whose dependencies are read for one sentence."""
_MOST_NODES = 2_000
"""Maximum of specs in the graph of these dependencies."""
_MOST_LISTED = 3
"""Values that a sentence names."""


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
        kinds = [condition.kind for condition in self.left_out]
        return tuple(kind for kind in kinds if kind in SCOPE)

    @property
    def sentence(self) -> str:
        """The answer in one sentence, such as `without +mpi: 3 configurations`."""
        parts = []
        names = []
        for condition in self.left_out:
            is_replaced = condition.kind == "target" and self.target is not None
            if not is_replaced:
                names.append(label(condition))
        if names:
            parts.append(f"without {' and '.join(names)}")
        if self.target:
            parts.append(f"with target={self.target}")
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
        advice = self.advice()
        if self.known is not None:
            return advice
        return ("no binary in this database satisfies this spec", *advice)

    def advice(self) -> tuple[str, ...]:
        """Return `sentences`, and what to type instead."""
        if self.corrected is None:
            return self.sentences()
        return (*self.sentences(), f"perhaps you mean: {self.corrected}")

    def sentences(self) -> tuple[str, ...]:
        """Return the reasons as sentences."""
        sentences = []
        if self.read_as:
            sentences.append(f"nothing satisfies {self.read_as!r} either")
        if self.known is not None:
            # Near names are proposed with the other conditions of the query.
            near = (*(spec for spec, _ in self.named), *self.close)
            if near:
                sentences.append(f"{self.known.name}: {unknown_text(near)}")
            else:
                sentences.append(self.known.sentence)
        sentences += self.missing
        sentences += [answer.sentence for answer in self.without]
        sentences += self.last_sentences
        return tuple(sentences)

    @property
    def last_sentences(self) -> tuple[str, ...]:
        """The nearest configuration, if there is no other answer, and the notes."""
        if self.nearest is None:
            return self.notes
        configuration, missed = self.nearest
        nearest = f"nearest is {configuration.summary}"
        return (f"{nearest}, which misses {', '.join(missed)}", *self.notes)


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
    lookups = candidates.lookups
    notes = recipe_notes(lookups, query)
    # If the package has no binary, its other conditions do not matter.
    if query.name is not None:
        known = known_name(lookups, query.name)
        if not known.spec_count and not _is_provided(lookups, known):
            others = without(conditions, "package")
            named, close = _near(candidates, known, query, others)
            return WhyNot(known=known, named=named, close=close, notes=notes)

    misses = misses_of(candidates, conditions)
    answers = tuple(_without(misses, query))
    releases = [
        position
        for position, condition in enumerate(misses.conditions)
        if condition.kind == "release"
    ]
    # 0: a configuration satisfies all conditions by its words, but lists no spec.
    if 0 in misses.missed and not misses.fitting(releases):
        notes = (*_not_counted(lookups, conditions), *notes)
    return WhyNot(
        missing=tuple(_missing(misses)),
        without=answers,
        nearest=None if answers else _nearest(misses),
        notes=notes,
    )


def _is_provided(lookups: Lookups, known: KnownName) -> bool:
    """Return whether a package with binaries provides a virtual package."""
    if known.kind != "virtual":
        return False
    return any(known_name(lookups, provider).spec_count for provider in known.others)


def _near(
    candidates: Candidates, known: KnownName, query: SpecQuery, conditions: Conditions
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Return queries with names near an unknown one that have answers, and the other
    near names.
    """
    if known.kind != "unknown":
        return (), ()
    rewritten = []
    close = []
    for name in known.others:
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
        answers = []
        for positions in _left_out(misses, size):
            rows = misses.fitting(positions)
            if rows:
                answers.append(_found_without(misses, query, positions, list(rows)))
        if answers:
            # A replaced target keeps more of the query than a condition left out.
            with_target = [answer for answer in answers if answer.target is not None]
            others = [answer for answer in answers if answer.target is None]
            return _most_first(with_target) + _most_first(others)
    return []


def _most_first(answers: Iterable[Without]) -> list[Without]:
    return sorted(answers, key=lambda answer: -answer.configurations)


def _left_out(misses: Misses, size: int) -> Iterable[tuple[int, ...]]:
    """Return the sets of `size` conditions that are all that some configuration
    misses, by their positions.

    `missed` has conditions on words of a configuration only. Those on places, such as
    a release, may be left out beside them.
    """
    places = [
        position
        for position, condition in enumerate(misses.conditions)
        if condition.kind in PLACE_KINDS
    ]
    few = sorted({missed for missed in misses.missed if missed.bit_count() <= size})
    sets: dict[tuple[int, ...], None] = {}
    for missed in few[:_MOST_SETS]:
        of_words = [
            position
            for position in range(len(misses.conditions))
            if missed >> position & 1
        ]
        for of_places in combinations(places, size - len(of_words)):
            sets[tuple(sorted((*of_words, *of_places)))] = None
    return sets


def _found_without(
    misses: Misses, query: SpecQuery, positions: Sequence[int], rows: list[Candidate]
) -> Without:
    candidates = misses.candidates
    left_out = tuple(misses.conditions[position] for position in positions)
    reduced = _reduced(query, left_out)

    # Instead of no target at all, propose the targets that run on the one asked for.
    target = None
    target_names = candidates.lookups.words["target"]
    for condition in only(left_out, "target"):
        expected = condition.value
        if not isinstance(expected, str) or not is_known(expected):
            continue
        running = [
            row for row in rows if runs_on(target_names[row.key("target")], expected)
        ]
        if running:
            rows = running
            target = f":{expected}"
            reduced = replace(reduced, target=target)

    # What there is in place of the conditions that are left out.
    instead = []
    remaining = _remaining(only(misses.conditions, *PLACE_KINDS), left_out)
    for position, condition in zip(positions, left_out, strict=True):
        # `missing` names the newest version if no configuration has the version.
        is_named = reduced.name is None or misses.all_miss(position)
        if condition.kind != "version" or not is_named:
            instead.append(_instead(candidates, condition, rows, remaining))
    instead.append(_nearest_binary(misses, left_out, rows))
    return Without(
        left_out,
        spec_text(reduced),
        configurations=sum(row.configurations for row in rows),
        instead=tuple(text for text in instead if text),
        nearest=candidates.configuration(rows[0]),
        target=target,
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
    expected = condition.value
    if isinstance(expected, Verdict) and expected.query is not None:
        if expected.named is None:
            return _needed_instead(candidates, expected.query, rows, remaining)
        # A requirement of `packages:`.
        texts = []
        for option in configuration_conditions(expected.query):
            texts.append(_instead(candidates, option, rows, ()))
        return "; ".join(text for text in texts if text)
    if condition.kind in PLACE_KINDS:
        return ""

    column = COLUMNS[condition.kind]
    keys = dict.fromkeys(row.key(column) for row in rows)
    words = [candidates.lookups.words[column][key] for key in keys]
    if isinstance(expected, VariantConstraint):
        name = expected.name
        variants = []
        for texts_of_variants in words:
            variants += readable_variants(texts_of_variants, name)
        there_are = _there_are(variant.text for variant in variants)
        return there_are or f"none has a variant {name}"
    if condition.kind == "version":
        return f"newest {newest_version(words)}"
    if condition.kind == "target":
        running = [word for word in words if runs_on(word, str(expected))]
        if running:
            verb = "runs" if len(running) == 1 else "run"
            return f"{_in_sentence(running)} {verb} on {expected}"
    return _there_are(words)


def _nearest_binary(misses: Misses, left_out: Conditions, rows: list[Candidate]) -> str:
    """Return the nearest binary, if requirements of `packages:` are left out, as
    text.
    """
    verdicts = []
    for condition in left_out:
        verdict = condition.value
        if isinstance(verdict, Verdict) and verdict.named is not None:
            verdicts.append(verdict)
    if not verdicts or misses.package is None:
        return ""
    candidates = misses.candidates
    row = rows[0]
    remaining = _remaining(misses.conditions, left_out)
    nearest = candidates.specs_of(remaining, [row])[row.id][0]
    summary = candidates.configuration(row).summary
    sentence = f"nearest is {summary} /{nearest.hash[:SHORT]}"
    dependencies = breaking_dependencies(candidates.lookups, verdicts, nearest)
    if dependencies:
        sentence += f", which uses {_in_sentence(dependencies)}"
    return sentence


def _reduced(query: SpecQuery, left_out: Conditions) -> SpecQuery:
    """Return a query without the parts that some of its conditions were read from.

    All other parts stay: `cmake ~ncurses %ncurses@6` without `~ncurses` is
        `cmake %ncurses@6`.
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
            part = constraint.query
            # A requirement of `packages:` is not a part of the query.
            if constraint.named is not None or part is None:
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
    release_and_stack = [
        position
        for position, condition in enumerate(misses.conditions)
        if condition.kind in ("release", "stack")
    ]
    # First with both, then without one of them, then without both.
    for size in range(len(release_and_stack) + 1):
        best: tuple[int, Candidate] | None = None
        for positions in combinations(release_and_stack, size):
            nearest = misses.missing_least(set(positions))
            if nearest is None:
                continue
            if best is None or nearest[0].bit_count() < best[0].bit_count():
                best = nearest
        if best is not None:
            missed, row = best
            labels = []
            for position, condition in enumerate(misses.conditions):
                if missed >> position & 1:
                    labels.append(label(condition))
            if not labels:
                return None
            return misses.candidates.configuration(row), tuple(labels)
    return None


def label(condition: Condition) -> str:
    """Return a condition as a user types it; a release, stack or host with its kind."""
    if condition.kind in SCOPE:
        return f"{condition.kind} {condition.text}"
    return condition.text


def _not_counted(lookups: Lookups, conditions: Conditions) -> tuple[str, ...]:
    """Return a note if specs satisfy the conditions that no release lists, or no mirror
    now.
    """
    gone = gone_among(lookups, without(conditions, "release"))
    if gone is not None:
        return (gone.instead,)
    everywhere = without(conditions, "release", "stack")
    ids = configuration_ids(lookups, everywhere, every=True)
    prefix = condition_value(conditions, "hash") or ""
    verdict = condition_value(conditions, "specs")
    releases_of_spec = {}
    rows = select_in(lookups.conn, SPECS_OF_CONFIGURATIONS, ids, hash=prefix)
    for spec, release_count in rows:
        if verdict is None or spec in verdict.matching:
            releases_of_spec[spec] = release_count
    if not releases_of_spec or any(releases_of_spec.values()):
        return ()
    nodes = graph.read_nodes(lookups.conn, releases_of_spec)
    kinds = {node.kind for node in nodes.values()}
    kind = "external" if kinds == {"external"} else graph.KNOWN_AS_DEPENDENCY
    return (f"such a spec is {kind}, {NO_BINARY}",)


def _needed_instead(
    candidates: Candidates,
    part: SpecQuery,
    rows: Sequence[Candidate],
    conditions: Conditions,
) -> str:
    """Return the versions that configurations need of the dependency in a query."""
    if len(part.dependencies) != 1:
        return ""
    edge = part.dependencies[0]
    name = edge.node.name
    if name is None:
        return ""
    # The dependencies of the first binaries.
    specs_of_row = candidates.specs_of(conditions, rows[:_MOST_COMPARED])
    ids = [spec.id for specs in specs_of_row.values() for spec in specs]
    roots = tuple(ids[:_MOST_COMPARED])
    needs = candidates.once(("needs", roots), lambda: _needs(candidates.lookups, roots))
    if needs is None:
        return ""

    # The versions of those that could be meant: the package, or a virtual package.
    expected = set(edge.virtuals or (name,))
    texts_of_version = set()
    for need in needs:
        is_meant = not expected.isdisjoint((need.node.package, *need.virtuals))
        if is_meant and (need.is_direct or not edge.direct):
            version = need.node.version
            is_named = need.node.package == name
            text = version if is_named else f"{need.node.package} {version}"
            texts_of_version.add((version, text))
    if not texts_of_version:
        return f"none needs {', '.join(sorted(expected))}"
    # The newest version first.
    ordered = sorted(texts_of_version)
    ordered.sort(key=lambda item: preference(item[0]), reverse=True)
    return _there_are(text for version, text in ordered if version)


class _Need(NamedTuple):
    """A dependency of some specs, and the virtual packages it is needed for."""

    virtuals: tuple[str, ...]
    node: graph.Node
    is_direct: bool


def _needs(lookups: Lookups, specs: Iterable[int]) -> set[_Need] | None:
    """Return the dependencies of specs; None without dependency data."""
    roots = set(graph.recorded_specs(lookups.conn, specs))
    if not roots:
        return None
    needs = graph.read_needs(lookups, roots, _MOST_NODES)
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    result = set()
    for spec, edges in needs.edges.items():
        for edge in edges:
            need = _Need(edge.virtuals, nodes[edge.dependency], spec in roots)
            result.add(need)
    return result


def _there_are(words: Iterable[str]) -> str:
    """Return what there is: `there are 1.14.6, 1.14.5 and 1.12.3`; empty for no
    words.
    """
    texts = list(dict.fromkeys(words))
    if not texts:
        return ""
    verb = "is" if len(texts) == 1 else "are"
    return f"there {verb} {_in_sentence(texts)}"


def _in_sentence(words: Sequence[str]) -> str:
    """Return words as a list in a sentence; of many, the first and the number of the
    others.
    """
    # `and 1 more` is no shorter than the last word.
    if len(words) == _MOST_LISTED + 1:
        return series(words, len(words))
    return series(words, _MOST_LISTED)
