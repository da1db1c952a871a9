"""Answers the specs of an environment: the binary that Spack takes for each, or why it has none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from spack_cache_db.environments import (
    NO_RULES,
    PackageRules,
    UserSpec,
    required_query,
    ways,
)
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.query import graph
from spack_cache_db.query.conditions import (
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
    asked,
    without,
)
from spack_cache_db.query.configurations import SPEC_COLUMNS, Spec
from spack_cache_db.query.covered import CoveredSpec
from spack_cache_db.query.database import check_time, has_records, select, select_ids
from spack_cache_db.query.explanation import WhyNot, explained
from spack_cache_db.query.names import known_name
from spack_cache_db.query.proposal import read_facts
from spack_cache_db.query.proposal_rule import (
    Option,
    criteria_of,
    in_order,
    options_in_order,
)
from spack_cache_db.query.records import CheckedRules, SpecRecords, read_query, respelled
from spack_cache_db.query.reuse import Pool
from spack_cache_db.query.reuse_pool import read_pool
from spack_cache_db.query.reuse_search import (
    Finding,
    Found,
    Places,
    Search,
    lost_sentence,
    search_all,
)
from spack_cache_db.query.selection import (
    Candidate,
    Candidates,
    configuration_ids,
    is_as_asked,
    misses_of,
)
from spack_cache_db.spack.constraints import SpecQuery, spec_text

PACKAGE_OF_HASH = """
SELECT DISTINCT packages.name FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
WHERE hash >= :hash AND hash < :hash || '{' LIMIT 2
"""
GONE = "SELECT id FROM specs WHERE is_gone"
# The one that was listed last comes first.
GONE_OF_CONFIGURATIONS = f"""
SELECT {SPEC_COLUMNS}, specs.configuration
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration = wanted.value
WHERE specs.is_gone ORDER BY specs.last_seen DESC, specs.id
"""
IS_COPY = "SELECT name FROM releases WHERE is_copy AND id = :release"
NOTHING = "nothing here satisfies it"
MOST_UNKNOWN = 20
"""Maximum of unknown packages whose answers list close names, which take milliseconds each."""


class _Question(NamedTuple):
    """A spec with the rules that apply to it; equal questions are answered once."""

    query: SpecQuery
    legacy: SpecQuery | None
    rules: PackageRules
    reuse: ReuseRules


class _Match(NamedTuple):
    """The configurations that satisfy a query and its requirements, with their spec counts."""

    query: SpecQuery
    conditions: Conditions
    rows: Mapping[Candidate, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Satisfied:
    """The configurations that satisfy a question in one of several ways.

    Attributes:
        query: the spec with its requirements, as text.
        counts: the number of specs of each configuration.
        conditions: the conditions that each configuration satisfies.
        search: the search for the binary that Spack takes.
    """

    query: str
    counts: Mapping[Candidate, int]
    conditions: Mapping[Candidate, Conditions]
    search: Search


class SpecAnswers:
    """Answers the specs of one environment; rows and records are read once.

    Args:
        candidates: the database and the scope of the answers.
        roots: the names of the packages of all specs of the environment.
    """

    def __init__(self, candidates: Candidates, roots: Set[str]) -> None:
        self._candidates = candidates
        self._lookups = candidates.lookups
        self._scope = candidates.scope
        self._roots = roots
        self._records = SpecRecords(candidates.lookups)
        self._unknown = 0

    def answers(self, specs: Sequence[UserSpec]) -> list[CoveredSpec]:
        """Return the answer for each spec, in order."""
        # First find what satisfies each question.
        read: dict[_Question, CoveredSpec | _Satisfied] = {}
        for spec in specs:
            question = _question_of(spec)
            if question is not None and question not in read:
                read[question] = self._read(question)
            # An answer from memory runs no statement.
            check_time(self._lookups.conn)
        # Then choose the binaries, for all questions together.
        satisfied = [answer for answer in read.values() if isinstance(answer, _Satisfied)]
        search_all(self._lookups, [answer.search for answer in satisfied], self._places())
        # Equal questions have equal answers, apart from what the environment has about a spec.
        answered = {
            question: answer if isinstance(answer, CoveredSpec) else self._chosen(answer)
            for question, answer in read.items()
        }
        return [_completed(spec, answered) for spec in specs]

    @property
    def is_old(self) -> bool:
        """Whether all records of the database are from before Spack 1.0."""
        return self._pool(REUSE_ALL).is_old

    def _places(self) -> Places:
        return Places(
            mirrored(self._candidates),
            has_records(self._lookups.conn),
            self._gone,
        )

    @property
    def _gone(self) -> Set[int]:
        lookups = self._lookups
        return lookups.once(GONE, lambda: select_ids(lookups.conn, GONE))

    def _read(self, question: _Question) -> CoveredSpec | _Satisfied:
        """Return what satisfies a question, or the answer if nothing does."""
        query, rules = question.query, question.rules
        matches: list[_Match] = []
        refused = ""
        # A virtual name is replaced by each of its required providers.
        for way in [query] if query.name in self._lookups.packages else ways(query, rules):
            try:
                matches.append(self._match(way, rules))
            except UnsupportedQuery as error:
                refused = str(error)
        satisfied = [match for match in matches if match.rows]
        text = required_query(satisfied[0].query if satisfied else query, rules).text
        if satisfied:
            return self._satisfied(text, satisfied, question.reuse)
        for match in matches:
            unknown = self._unknown_answer(text, match)
            if unknown is not None:
                return unknown
        why = self._why_legacy(question.legacy, rules)
        if refused:
            reasons = (refused, *(why.sentences() if why else ()))
            covered = CoveredSpec("", "unanswerable", query=text, why=why, reasons=reasons)
            return replace(covered, corrected=why.corrected if why else None)
        return self._without_binary(text, matches[0], why)

    def _match(self, query: SpecQuery, rules: PackageRules) -> _Match:
        """Return the configurations that satisfy a query; raises `UnsupportedQuery`."""
        if query.name is None:
            query = replace(query, name=self._package_of(query.hash))
        spelled, _ = respelled(self._lookups, query)
        conditions = (*read_query(self._records, spelled).conditions, *self._scope)
        if rules is not NO_RULES:
            once, package = self._candidates.once, query.name
            checked = once(rules, lambda: CheckedRules(self._records, rules, self._roots))
            ids = self._ids_of(package)
            dropped = checked.dropped_for(spelled)
            key = (rules, package, dropped)
            conditions += once(key, lambda: checked.conditions(ids, dropped))
        return _Match(query, conditions, misses_of(self._candidates, conditions).fitting())

    def _package_of(self, dag_hash: str | None) -> str:
        """Return the only package with hashes that begin with `dag_hash`."""
        if dag_hash is None:
            raise UnsupportedQuery("names no package, and an environment asks for packages by name")
        names = [row[0] for row in select(self._lookups.conn, PACKAGE_OF_HASH, hash=dag_hash)]
        if len(names) != 1:
            number = "several packages" if names else "nothing here"
            raise UnsupportedQuery(f"/{dag_hash} stands for {number}: name the package")
        return str(names[0])

    def _ids_of(self, package: str | None) -> Set[int]:
        """Return the specs of a package in the scope."""
        specs = self._candidates.specs_of(self._scope, self._candidates.rows(package))
        return {spec.id for specs_of_row in specs.values() for spec in specs_of_row}

    def _satisfied(self, text: str, matches: Sequence[_Match], reuse: ReuseRules) -> _Satisfied:
        conditions = {row: match.conditions for match in matches for row in match.rows}
        counts = {row: count for match in matches for row, count in match.rows.items()}
        pool = self._pool(reuse)
        search = Search(pool, self._found(conditions, pool))
        return _Satisfied(text, counts, conditions, search)

    def _pool(self, reuse: ReuseRules) -> Pool:
        return self._candidates.once(("pool", reuse), lambda: read_pool(self._records, reuse))

    def _found(self, conditions: Mapping[Candidate, Conditions], pool: Pool) -> Iterator[Found]:
        """Yield the specs of configurations: installed ones, binaries, and then externals."""
        provided = graph.externals(self._lookups)
        trees = self._lookups.trees(asked(self._scope, "release"))
        for tree in trees:
            within = {row: _in_release(places, tree) for row, places in conditions.items()}
            for option in self._in_order(within):
                if option.spec.id not in provided:
                    yield Found("installed", option.row, option.spec)
        for option in self._in_order(conditions):
            if option.spec.id not in provided:
                yield Found("binary", option.row, option.spec)
                # All others have the same obstacle.
                if pool.takes_nothing:
                    break
        for option in self._in_order(conditions) if provided else ():
            if option.spec.id in provided:
                yield Found("external", option.row, option.spec)

    def _in_order(self, conditions: Mapping[Candidate, Conditions]) -> Iterator[Option]:
        """Yield the specs of configurations; those that are proposed first come first."""
        rows = list(conditions)
        facts = read_facts(self._lookups, rows, conditions[rows[0]])

        def specs_of(batch: Sequence[Candidate]) -> Mapping[int, Sequence[Spec]]:
            # Configurations of one query have the same conditions.
            groups: dict[Conditions, list[Candidate]] = {}
            for row in batch:
                groups.setdefault(conditions[row], []).append(row)
            specs: dict[int, Sequence[Spec]] = {}
            for places, group in groups.items():
                specs |= self._candidates.specs_of(places, group)
            return specs

        return options_in_order(in_order(rows, criteria_of(facts)), specs_of)

    def _chosen(self, satisfied: _Satisfied) -> CoveredSpec:
        """Return the answer for configurations that satisfy a question."""
        finding = satisfied.search.best
        assert finding is not None, "a configuration that is counted has a spec"
        row, spec = finding.found.row, finding.found.spec
        external = ""
        if finding.status == "external":
            node = graph.read_nodes(self._lookups.conn, [spec.id])[spec.id]
            external = node.external or ""
        return CoveredSpec(
            "",
            finding.status,
            query=satisfied.query,
            configurations=len(satisfied.counts),
            spec_count=sum(satisfied.counts.values()),
            configuration=self._candidates.configuration(row),
            hash=spec.hash,
            reasons=() if finding.obstacle is None else (finding.obstacle.reason,),
            external=external,
            missing=_missing(finding),
            size=None if finding.closure is None else finding.closure.size,
            closure=finding.closure,
        )

    def _unknown_answer(self, query: str, match: _Match) -> CoveredSpec | None:
        """Return the answer if binaries satisfy all conditions for which the database has data."""
        ids, unknown, possible = self._ids_of(match.query.name), dict[str, Set[int]](), []
        for condition in match.conditions:
            verdict = condition.asked
            if isinstance(verdict, Verdict) and verdict.unknown & ids:
                unknown[condition.text] = verdict.unknown
                holds = (verdict.holds | verdict.unknown) & ids
                condition = replace(condition, asked=Verdict(holds))
            possible.append(condition)
        conditions = tuple(possible)
        rows = [*misses_of(self._candidates, conditions).fitting()] if unknown else []
        if not rows:
            return None
        spec = self._candidates.specs_of(conditions, rows[:1])[rows[0].id][0]
        texts = ", ".join(text for text, specs in unknown.items() if spec.id in specs)
        configuration = self._candidates.configuration(rows[0])
        reason = f"the database does not show whether it satisfies {texts}"
        reasons = (f"{configuration.summary} /{spec.hash}: {reason}",)
        return CoveredSpec("", "unknown", query=query, configuration=configuration, reasons=reasons)

    def _why_legacy(self, legacy: SpecQuery | None, rules: PackageRules) -> WhyNot | None:
        """Return the spec that Spack before 1.0 reads, or why that has no binary either."""
        with suppress(UnsupportedQuery):
            match = self._match(legacy, rules) if legacy is not None else None
            if match and match.rows:
                return WhyNot(corrected=spec_text(required_query(match.query, rules)))
            if match and legacy:
                return replace(self._why_not(match), read_as=spec_text(legacy))
        return None

    def _without_binary(self, text: str, match: _Match, why: WhyNot | None) -> CoveredSpec:
        """Return the answer for a query that nothing satisfies."""
        why = why or self._why_not(match)
        status = "near" if why.without else "none"
        reasons = why.sentences() or (NOTHING,)
        nearest = why.without[0].nearest if why.without else why.nearest and why.nearest[0]
        # A binary that the mirror has lost is nearer than any other.
        lost = self._lost(match)
        if lost is not None:
            status, nearest = "near", lost.configuration
            # What is known about a package without binaries is no reason beside it.
            others = why.sentences() if why.known is None else ()
            reasons = (*lost.reasons, *others)
        return CoveredSpec(
            "",
            status,
            query=text,
            configuration=nearest,
            why=None if lost else why,
            reasons=reasons,
            corrected=why.corrected,
        )

    def _why_not(self, match: _Match) -> WhyNot:
        name = str(match.query.name)
        if name not in self._lookups.packages:
            self._unknown += 1
            if self._unknown > MOST_UNKNOWN:
                return WhyNot(known=known_name(self._lookups, name, with_near=False))
        return explained(self._candidates, match.query, match.conditions)

    def _lost(self, match: _Match) -> CoveredSpec | None:
        """Return the answer with the last binary that a mirror has lost, if one satisfies."""
        if not self._gone:
            return None
        # Requirements of `packages:` were checked only for what mirrors have.
        conditions = tuple(
            condition
            for condition in without(match.conditions, "release", "stack")
            if not (isinstance(condition.asked, Verdict) and condition.asked.named is not None)
        )
        ids = configuration_ids(self._lookups, conditions, every=True)
        tests = [condition for condition in conditions if condition.kind in ("hash", "specs")]
        for *values, configuration in select(
            self._lookups.conn, GONE_OF_CONFIGURATIONS, ids=json.dumps(ids)
        ):
            spec = Spec._make(values)
            if all(is_as_asked(spec, test) for test in tests):
                row = next(
                    row
                    for row in self._candidates.rows(match.query.name)
                    if row.id == configuration
                )
                words = self._candidates.configuration(row)
                reason = f"{words.summary} /{spec.hash}: {lost_sentence(spec.last_seen)}"
                return CoveredSpec("", "near", configuration=words, reasons=(reason,))
        return None


def mirrored(candidates: Candidates) -> int | None:
    """Return the release whose mirror must have everything, by id; None for any.

    An installation and a copy that `build --snapshot` made are not mirrors: what their specs need
    may be in any mirror.
    """
    release = asked(candidates.scope, "release")
    if release is None or candidates.lookups.trees(release):
        return None
    is_copy = any(select(candidates.lookups.conn, IS_COPY, release=release))
    return None if is_copy else release


def _question_of(spec: UserSpec) -> _Question | None:
    """Return the question of a spec; None if its answer needs no database."""
    if spec.query is None or (spec.external and not spec.is_buildable):
        return None
    return _Question(spec.query, spec.legacy, spec.rules, spec.reuse)


def _completed(spec: UserSpec, answered: Mapping[_Question, CoveredSpec]) -> CoveredSpec:
    """Return the answer for a spec, with its place in the environment."""
    question = _question_of(spec)
    if question is not None:
        covered = answered[question]
    elif spec.external and not spec.is_buildable:
        covered = CoveredSpec("", "external")
    else:
        covered = CoveredSpec("", "unanswerable", reasons=(spec.error or NOTHING,))
    return replace(
        covered,
        spec=spec.text,
        line=spec.line,
        group=spec.group,
        external=spec.external or covered.external,
    )


def _missing(finding: Finding) -> tuple[str, ...]:
    """Return the members of a closure that no mirror lists."""
    if finding.closure is None:
        return ()
    return tuple(
        f"{member.package}@{member.version}/{member.hash}" for member in finding.closure.missing
    )


def _in_release(conditions: Conditions, release: int) -> Conditions:
    return (Condition("release", "", release), *without(conditions, "release"))
