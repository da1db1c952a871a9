"""Why nothing satisfies a query: which conditions exclude everything, and what exists instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from spack_cache_db.errors import counted
from spack_cache_db.query.conditions import (
    ANYWHERE,
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
    Word,
    asked,
    only,
    readable_variants,
    without,
)
from spack_cache_db.query.configurations import (
    HASH_BEGINS,
    Candidate,
    Candidates,
    Misses,
    configuration_ids,
    misses_of,
)
from spack_cache_db.query.database import Lookups, select_in
from spack_cache_db.query.graph import (
    KNOWN_AS_DEPENDENCY,
    Node,
    read_needs,
    read_nodes,
    recorded_specs,
)
from spack_cache_db.query.names import NO_BINARY, KnownName, known_name, unknown_text
from spack_cache_db.query.packages import recipe_notes
from spack_cache_db.query.records import configuration_conditions, question_of, respelled
from spack_cache_db.query.requirements import breaking_dependencies
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    SpecQuery,
    VariantConstraint,
    spec_text,
)
from spack_cache_db.spack.parser import legacy_reading
from spack_cache_db.spack.targets import is_known, runs_on
from spack_cache_db.spack.versions import newest_version, preference

MOST_LEFT_OUT = 2
"""The number of conditions that are left out together at most."""

SCOPE = ("release", "stack", "host")
"""The kinds of conditions that narrow an answer beside its query."""

_MOST_MASKS = 200

OWN = f"""
SELECT specs.id, specs.release_count
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
WHERE {HASH_BEGINS}
"""
_MOST_COMPARED = 100
_MOST_NODES = 2_000
_MOST_TOLD = 3
SHORT = 7
"""Characters of a hash that Spack prints."""


@dataclass(frozen=True, slots=True)
class Without:
    """The answer once some conditions are left out.

    Attributes:
        left_out: the conditions.
        spec: the query without those that it asks itself.
        configurations: how many satisfy all the others.
        instead: what these have in place of what was asked, in words.
        nearest: the first of them, newest version first.
        target: what `spec` asks in place of the target that is left out: what runs on it.
    """

    left_out: tuple[Condition, ...]
    spec: str
    configurations: int
    instead: tuple[str, ...]
    nearest: Configuration
    target: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """Which of release, stack and host are left out, beside what is left out of the query."""
        return tuple(each.kind for each in self.left_out if each.kind in SCOPE)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        replaced = "target" if self.target is not None else ""
        names = [label(each) for each in self.left_out if each.kind != replaced]
        parts = [f"without {' and '.join(names)}"] if names else []
        parts += [f"with target={self.target}"] if self.target else []
        found = counted(self.configurations, "configuration")
        return "; ".join((f"{' and '.join(parts)}: {found}", *self.instead))


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a query has no answer.

    Attributes:
        known: what is known of the package's name, if no binary has it.
        close: packages with names near an unknown one, without a binary that has the rest.
        missing: conditions that no configuration of the package satisfies, with what there is.
        without: what is found without a condition, or without two where no single one suffices;
            most configurations first.
        nearest: where nothing is found so, the configuration that misses the fewest conditions,
            and their labels.
        named: for an unknown name, the query with a near name, if that finds something: the spec,
            and how many configurations.
        corrected: the query with what stands behind a compiler moved before it, if that finds
            something.
        read_as: the same query if it finds nothing: all that is said here is said of it.
        notes: what else there is to say.
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
        """Return why there is no answer, and what to type instead, in sentences."""
        nothing = () if self.known else ("no binary in this database satisfies this spec",)
        return (*nothing, *self.advice())

    def advice(self) -> tuple[str, ...]:
        """Return what is known, and what to type instead."""
        instead = (f"perhaps you mean: {self.corrected}",) if self.corrected else ()
        return (*self.sentences(), *instead)

    def sentences(self) -> tuple[str, ...]:
        """Return all of it in sentences, without what should be typed instead."""
        read_as = (f"nothing satisfies {self.read_as!r} either",) if self.read_as else ()
        known: tuple[str, ...] = ()
        if self.known is not None:
            # Near names stand with the rest of the query.
            near = (*(spec for spec, _ in self.named), *self.close)
            known = (f"{self.known.name}: {unknown_text(near)}" if near else self.known.sentence,)
        found = tuple(each.sentence for each in self.without)
        return (*read_as, *known, *self.missing, *found, *self.last_sentences)

    @property
    def last_sentences(self) -> tuple[str, ...]:
        """The nearest configuration, if leaving out two conditions finds nothing, and the notes."""
        if self.nearest is None:
            return self.notes
        configuration, missed = self.nearest
        said = f"nearest is {configuration.summary}, which misses {', '.join(missed)}"
        return (said, *self.notes)


def why_not(candidates: Candidates, query: SpecQuery, scope: Conditions = ANYWHERE) -> WhyNot:
    """Return why nothing satisfies a query, and what to ask instead.

    Every spec that is proposed finds something, and asks all that it does not name as left out.

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    query, _ = respelled(candidates.lookups, query)
    corrected = why_corrected(candidates, query, scope)
    if corrected is not None and corrected.read_as is not None:
        return corrected
    why = explained(candidates, query, question_of(candidates.lookups, query, scope).conditions)
    return why if corrected is None else replace(why, corrected=corrected.corrected)


def why_corrected(candidates: Candidates, query: SpecQuery, scope: Conditions) -> WhyNot | None:
    """Return what a query finds once what stands behind a compiler is asked of the package.

    Returns:
        With `corrected`, if it finds something; else with `read_as`, and why it does not. None if
        nothing stands behind a compiler, or the database cannot answer that query.
    """
    meant = legacy_reading(respelled(candidates.lookups, query)[0])
    if meant is None:
        return None
    try:
        conditions = question_of(candidates.lookups, meant, scope).conditions
    except UnsupportedQuery:
        return None
    if misses_of(candidates, conditions).fitting():
        return WhyNot(corrected=spec_text(meant))
    return replace(explained(candidates, meant, conditions), read_as=spec_text(meant))


def explained(candidates: Candidates, query: SpecQuery, conditions: Conditions) -> WhyNot:
    """Return why nothing satisfies a query, taken as it is."""
    notes = recipe_notes(candidates.lookups, query)
    if query.name is not None:
        known = known_name(candidates.lookups, query.name)
        providers = known.others if known.kind == "virtual" else ()
        built = (known_name(candidates.lookups, each).spec_count for each in providers)
        if not known.spec_count and not any(built):
            named, close = _near(candidates, known, query, without(conditions, "package"))
            return WhyNot(known=known, named=named, close=close, notes=notes)
    misses = misses_of(candidates, conditions)
    found = tuple(_without(misses, query))
    release = [at for at, each in enumerate(misses.conditions) if each.kind == "release"]
    if 0 in misses.missed and not misses.fitting(release):
        notes = (*_not_counted(candidates, conditions), *notes)
    return WhyNot(
        missing=tuple(_missing(misses)),
        without=found,
        nearest=None if found else _nearest(misses),
        notes=notes,
    )


def _near(
    candidates: Candidates, known: KnownName, query: SpecQuery, conditions: Conditions
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Return the query with names near an unknown one that find something, and other such names."""
    named, close = [], []
    for name in known.others if known.kind == "unknown" else ():
        asks = Condition("package", name, Word(name))
        fitting = misses_of(candidates, (asks, *conditions)).fitting()
        if fitting and conditions:
            named.append((spec_text(replace(query, name=name)), len(fitting)))
        else:
            close.append(name)
    return tuple(named), tuple(close)


def _without(misses: Misses, query: SpecQuery) -> list[Without]:
    """Return what is found without one condition, or else without two, and can be typed."""
    for size in range(1, MOST_LEFT_OUT + 1):
        fitting = ((places, misses.fitting(places)) for places in _left_out(misses, size))
        found = [_found_without(misses, query, at, [*rows]) for at, rows in fitting if rows]
        if found:
            return sorted(found, key=lambda each: (each.target is None, -each.configurations))
    return []


def _left_out(misses: Misses, size: int) -> Iterable[tuple[int, ...]]:
    """Return the sets of so many conditions that are all that some configuration misses."""
    places = [at for at, each in enumerate(misses.conditions) if each.kind in PLACES]
    few = {missed for missed in misses.missed if missed.bit_count() <= size}
    found: dict[tuple[int, ...], None] = {}
    for missed in sorted(few)[:_MOST_MASKS]:
        words = [at for at in range(len(misses.conditions)) if missed >> at & 1]
        for more in combinations(places, size - len(words)):
            found[tuple(sorted((*words, *more)))] = None
    return found


def _found_without(
    misses: Misses, query: SpecQuery, places: Sequence[int], rows: list[Candidate]
) -> Without:
    candidates = misses.candidates
    left_out, target = tuple(misses.conditions[place] for place in places), None
    reduced, targets = _reduced(query, left_out), candidates.lookups.words["target"]
    for asks in (each.asked for each in left_out if each.kind == "target"):
        if isinstance(asks, str) and is_known(asks):
            running = [row for row in rows if runs_on(targets[row.key("target")], asks)]
            if running:
                rows, target = running, f":{asks}"
                reduced = replace(reduced, target=target)
    kept = tuple(each for each in only(misses.conditions, *PLACES) if each not in left_out)
    instead = [
        _instead(candidates, condition, rows, kept)
        for place, condition in zip(places, left_out, strict=True)
        # `missing` names the newest version if no configuration has the version.
        if condition.kind != "version" or not (reduced.name is None or misses.all_miss(place))
    ]
    instead.append(_nearest_binary(misses, left_out, rows))
    return Without(
        left_out,
        spec_text(reduced),
        sum(row.configurations for row in rows),
        tuple(filter(None, instead)),
        candidates.configuration(rows[0]),
        target,
    )


def _instead(
    candidates: Candidates, condition: Condition, rows: list[Candidate], kept: Conditions
) -> str:
    """Return in words what configurations have in place of what a condition asks.

    Their specs satisfy the conditions that are `kept`.
    """
    asks = condition.asked
    if isinstance(asks, Verdict) and asks.query is not None:
        if asks.named is None:
            return _needed_instead(candidates, asks.query, rows, kept)
        options = configuration_conditions(asks.query)
        return "; ".join(filter(None, (_instead(candidates, each, rows, ()) for each in options)))
    if condition.kind in PLACES:
        return ""
    column = COLUMNS[condition.kind]
    keys = dict.fromkeys(row.key(column) for row in rows)
    words = [candidates.lookups.words[column][key] for key in keys]
    if isinstance(asks, VariantConstraint):
        found = (each.text for texts in words for each in readable_variants(texts, asks.name))
        return _there_are(found) or f"none has a variant {asks.name}"
    if condition.kind == "version":
        return f"newest {newest_version(words)}"
    running = [word for word in words if condition.kind == "target" and runs_on(word, str(asks))]
    if running:
        return f"{_listed(running)} {'runs' if len(running) == 1 else 'run'} on {asks}"
    return _there_are(words)


def _nearest_binary(misses: Misses, left_out: Conditions, rows: list[Candidate]) -> str:
    """Return the binary that satisfies all but some requirements of `packages:`, in words."""
    verdicts = [each.asked for each in left_out if isinstance(each.asked, Verdict)]
    verdicts = [verdict for verdict in verdicts if verdict.named is not None]
    if not verdicts or misses.package is None:
        return ""
    candidates = misses.candidates
    kept = tuple(each for each in misses.conditions if each not in left_out)
    (nearest, *_) = candidates.specs_of(kept, rows[:1])[rows[0].id]
    found = f"nearest is {candidates.configuration(rows[0]).summary} /{nearest.hash[:SHORT]}"
    dependencies = breaking_dependencies(candidates.lookups, verdicts, nearest)
    return f"{found}, which uses {_listed(dependencies)}" if dependencies else found


def _reduced(query: SpecQuery, left_out: Conditions) -> SpecQuery:
    """Return a query without some of its own conditions."""
    gone = {(each.kind, each.text) for each in left_out}
    kinds, named = {kind for kind, _ in gone}, set()
    edges, variants, more = query.dependencies, query.variants, dict[str, Any]()
    for asks in (condition.asked for condition in left_out):
        if isinstance(asks, VariantConstraint | CompilerConstraint):
            named.add(asks.name)
        if isinstance(asks, Verdict) and asks.named is None and (part := asks.query):
            edges = tuple(each for each in edges if each not in part.dependencies)
            variants = tuple(each for each in variants if each not in part.variants)
            more |= {"namespace": None} if part.namespace else {}
            more |= {"flags": ()} if part.flags else {}
    for kind in ("os", "platform", "target"):
        if (kind, f"{kind}={getattr(query, kind)}") in gone:
            more[kind] = None
    more |= {"versions": None} if "version" in kinds else {}
    more |= {"hash": None} if "hash" in kinds else {}
    return replace(
        query,
        variants=tuple(each for each in variants if each.name not in named),
        dependencies=tuple(
            edge for edge in edges if edge.node.name not in named or not edge.direct
        ),
        **more,
    )


def _missing(misses: Misses) -> Iterator[str]:
    """Yield the versions that no configuration of a package has, with the newest that there is."""
    if misses.package is None or not misses.rows:
        return
    words = misses.candidates.lookups.words["version"]
    rows = [row for row in misses.rows if row.spec_count] or misses.rows
    for place, condition in enumerate(misses.conditions):
        if condition.kind == "version" and misses.all_miss(place):
            newest = newest_version(words[row.key("version")] for row in rows)
            version = condition.text.removeprefix("@")
            yield f"no version {version} of {misses.package}: newest {newest}"


def _nearest(misses: Misses) -> tuple[Configuration, tuple[str, ...]] | None:
    """Return the configuration that misses the fewest conditions, and their labels.

    It is in the release and the stack that are asked for, if any is; the first of several.
    """
    every = misses.conditions
    places = [at for at, each in enumerate(every) if each.kind in ("release", "stack")]
    for size in range(len(places) + 1):
        nearest = (misses.missing_least({*out}) for out in combinations(places, size))
        found = min(filter(None, nearest), key=lambda each: each[0].bit_count(), default=None)
        if found is not None:
            missed, row = found
            labels = tuple(label(each) for at, each in enumerate(every) if missed >> at & 1)
            return (misses.candidates.configuration(row), labels) if labels else None
    return None


def label(condition: Condition) -> str:
    """Return a condition as a user types it, or with its kind if it is a name."""
    named = condition.kind in SCOPE
    return f"{condition.kind} {condition.text}" if named else condition.text


def _not_counted(candidates: Candidates, conditions: Conditions) -> tuple[str, ...]:
    """Return what to say of specs that satisfy conditions, and that no release lists."""
    conn, lookups = candidates.lookups.conn, candidates.lookups
    ids = configuration_ids(lookups, without(conditions, "release", "stack"), every=True)
    verdict = asked(conditions, "specs")
    rows = select_in(conn, OWN, ids, hash=asked(conditions, "hash") or "")
    counts = {spec: count for spec, count in rows if verdict is None or spec in verdict.holds}
    if counts and not any(counts.values()):
        kinds = {node.kind for node in read_nodes(conn, counts).values()}
        known = "external" if kinds == {"external"} else KNOWN_AS_DEPENDENCY
        return (f"such a spec is {known}, {NO_BINARY}",)
    return ()


def _needed_instead(
    candidates: Candidates, part: SpecQuery, rows: Sequence[Candidate], places: Conditions
) -> str:
    """Return the versions that configurations need of the package that a query asks for."""
    edges = part.dependencies
    if len(edges) != 1 or edges[0].node.name is None:
        return ""
    name, wanted = edges[0].node.name, {*(edges[0].virtuals or (edges[0].node.name,))}
    specs = candidates.specs_of(places, rows[:_MOST_COMPARED]).values()
    ids = tuple(spec.id for some in specs for spec in some)[:_MOST_COMPARED]
    needs = candidates.once(("needs", ids), lambda: _needs(candidates.lookups, ids))
    found = {
        (node.version, node.version if node.package == name else f"{node.package} {node.version}")
        for virtuals, node, is_direct in needs or ()
        if (is_direct or not edges[0].direct) and not wanted.isdisjoint((node.package, *virtuals))
    }
    ordered = sorted(sorted(found), key=lambda each: preference(each[0]), reverse=True)
    if needs is None or found:
        return _there_are(text for version, text in ordered if version)
    return f"none needs {', '.join(sorted(wanted))}"


def _needs(
    lookups: Lookups, specs: Iterable[int]
) -> set[tuple[tuple[str, ...], Node, bool]] | None:
    """Return the virtuals and the end of the edges of specs and of what they link or run.

    The third value is whether a spec itself has the edge. None without dependency data.
    """
    roots = {*recorded_specs(lookups.conn, specs)}
    if not roots:
        return None
    graph = read_needs(lookups, roots, _MOST_NODES)
    nodes = read_nodes(lookups.conn, graph.edges)
    return {
        (edge.virtuals, nodes[edge.dependency], spec in roots)
        for spec, edges in graph.edges.items()
        for edge in edges
    }


def _there_are(words: Iterable[str]) -> str:
    found = [*dict.fromkeys(words)]
    return f"there {'is' if len(found) == 1 else 'are'} {_listed(found)}" if found else ""


def _listed(words: Sequence[str]) -> str:
    if len(words) > _MOST_TOLD + 1:
        return f"{', '.join(words[:_MOST_TOLD])} and {len(words) - _MOST_TOLD} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
