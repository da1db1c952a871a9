"""Answers the specs of an environment: the binary that Spack takes for each, or why it
has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from spack_cache_db.environments.model import UserSpec
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.environments.rules import (
    NO_RULES,
    PackageRules,
    combinations,
    required_query,
)
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.answers.why_not import explained
from spack_cache_db.query.choice.options import Option, options_in_order
from spack_cache_db.query.choice.pool import read_pool
from spack_cache_db.query.choice.proposal import read_facts
from spack_cache_db.query.choice.reuse import Pool
from spack_cache_db.query.choice.rule import criteria_of, in_order
from spack_cache_db.query.choice.search import (
    Finding,
    Places,
    SatisfyingSpec,
    Search,
    lost_sentence,
    search_all,
)
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    Verdict,
    condition_value,
    only,
    within_release,
    without,
)
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.candidates import Candidate, Candidates, satisfies
from spack_cache_db.query.match.misses import misses_of
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.match.requirements import CheckedRules
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.open.lookups import has_records
from spack_cache_db.query.open.sql import check_time, select, select_ids
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import HASH_BEGINS, SPEC_COLUMNS, Spec
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

PACKAGE_OF_HASH = f"""
SELECT DISTINCT packages.name FROM specs
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
WHERE {HASH_BEGINS} LIMIT 2
"""
GONE = "SELECT id FROM specs WHERE is_gone"
# The one that was listed last comes first.
GONE_OF_CONFIGURATIONS = f"""
SELECT {SPEC_COLUMNS}, specs.configuration_id
FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration_id = wanted.value
WHERE specs.is_gone ORDER BY specs.last_seen DESC, specs.id
"""
IS_COPY = "SELECT name FROM releases WHERE is_copy AND id = :release"
NOTHING = "nothing here satisfies it"
MOST_UNKNOWN = 20
"""Maximum of unknown packages whose answers list similar names, which take milliseconds
each.
"""


class _AskedSpec(NamedTuple):
    """A spec with the rules that apply to it; equal questions are answered once."""

    query: SpecQuery
    legacy: SpecQuery | None
    rules: PackageRules
    reuse: ReuseRules


class _Match(NamedTuple):
    """The configurations that satisfy a query and its requirements, with their spec
    counts.
    """

    query: SpecQuery
    conditions: Conditions
    rows: Mapping[Candidate, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Satisfied:
    """The configurations that satisfy a question in one of several ways.

    Attributes:
        query: the spec with its requirements, as text.
        counts: the number of specs of each configuration.
        search: the search for the binary that Spack takes.
    """

    query: str
    counts: Mapping[Candidate, int]
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
        read: dict[_AskedSpec, CoveredSpec | _Satisfied] = {}
        for spec in specs:
            question = _asked_spec(spec)
            if question is not None and question not in read:
                read[question] = self._read(question)
            # An answer from memory runs no statement.
            check_time(self._lookups.conn)
        # Then choose the binaries, for all questions together.
        satisfied = [
            answer for answer in read.values() if isinstance(answer, _Satisfied)
        ]
        search_all(
            self._lookups, [answer.search for answer in satisfied], self._places()
        )
        # Equal questions have equal answers, apart from what the environment has about
        # a spec.
        answered: dict[_AskedSpec, CoveredSpec] = {}
        for question, answer in read.items():
            if isinstance(answer, _Satisfied):
                answer = self._chosen(answer)
            answered[question] = answer
        return [_completed(spec, answered) for spec in specs]

    @property
    def is_old(self) -> bool:
        """Whether all records of the database are from before Spack 1.0."""
        return self._pool(REUSE_ALL).is_old

    def _places(self) -> Places:
        return Places(
            release=mirrored(self._candidates),
            with_records=has_records(self._lookups.conn),
            gone=self._gone,
        )

    @property
    def _gone(self) -> Set[int]:
        """The specs that a mirror has lost."""
        lookups = self._lookups
        return lookups.once(GONE, lambda: select_ids(lookups.conn, GONE))

    def _read(self, question: _AskedSpec) -> CoveredSpec | _Satisfied:
        """Return what satisfies a question, or the answer if nothing does."""
        query = question.query
        rules = question.rules
        # A virtual name is replaced by each of its required providers.
        queries: Iterable[SpecQuery] = [query]
        if query.name not in self._lookups.packages:
            queries = combinations(query, rules)
        matches: list[_Match] = []
        refused = ""
        for possible_query in queries:
            try:
                matches.append(self._match(possible_query, rules))
            except UnsupportedQuery as error:
                refused = str(error)
        # Configurations that satisfy it in any of these ways.
        satisfied = [match for match in matches if match.rows]
        if satisfied:
            text = required_query(satisfied[0].query, rules).text
            return self._satisfied(text, satisfied, question.reuse)
        # Configurations of which the database does not know whether they satisfy it.
        text = required_query(query, rules).text
        for match in matches:
            unknown = self._unknown_answer(text, match)
            if unknown is not None:
                return unknown
        # Nothing satisfies it.
        why = self._why_legacy(question.legacy, rules)
        if refused:
            return CoveredSpec(
                "",
                "unanswerable",
                query=text,
                why=why,
                reasons=(refused,) if why is None else (refused, *why.sentences()),
                corrected=None if why is None else why.corrected,
            )
        return self._without_binary(text, matches[0], why)

    def _match(self, query: SpecQuery, rules: PackageRules) -> _Match:
        """Return the configurations that satisfy a query; raises `UnsupportedQuery`."""
        if query.name is None:
            query = replace(query, name=self._package_of(query.hash))
        question = Question(self._lookups, query, self._scope, self._records)
        conditions = question.conditions
        if rules is not NO_RULES:
            # Specs with equal rules share what is computed for them.
            once = self._candidates.once
            checked = once(
                rules, lambda: CheckedRules(self._records, rules, self._roots)
            )
            ids = self._ids_of(query.name)
            dropped = checked.dropped_for(question.canonical_spec)
            key = (rules, query.name, dropped)
            conditions += once(key, lambda: checked.conditions(ids, dropped))
        return _Match(
            query, conditions, misses_of(self._candidates, conditions).fitting()
        )

    def _package_of(self, dag_hash: str | None) -> str:
        """Return the only package with hashes that begin with `dag_hash`."""
        if dag_hash is None:
            raise UnsupportedQuery(
                "names no package, and an environment asks for packages by name"
            )
        rows = select(self._lookups.conn, PACKAGE_OF_HASH, hash=dag_hash)
        names = [name for (name,) in rows]
        if len(names) != 1:
            number = "several packages" if names else "nothing here"
            raise UnsupportedQuery(f"/{dag_hash} stands for {number}: name the package")
        return str(names[0])

    def _ids_of(self, package: str | None) -> Set[int]:
        """Return the specs of a package in the scope."""
        specs = self._candidates.specs_of(self._scope, self._candidates.rows(package))
        return {spec.id for specs_of_row in specs.values() for spec in specs_of_row}

    def _satisfied(
        self, text: str, matches: Sequence[_Match], reuse: ReuseRules
    ) -> _Satisfied:
        """Return configurations that match, with the search for the binary that Spack
        takes.
        """
        conditions: dict[Candidate, Conditions] = {}
        counts: dict[Candidate, int] = {}
        for match in matches:
            conditions |= dict.fromkeys(match.rows, match.conditions)
            counts |= match.rows
        pool = self._pool(reuse)
        search = Search(pool, self._satisfying_specs(conditions, pool))
        return _Satisfied(text, counts, search)

    def _pool(self, reuse: ReuseRules) -> Pool:
        """Return what Spack's solver takes from the database, under rules of reuse."""
        return self._candidates.once(
            ("pool", reuse), lambda: read_pool(self._records, reuse)
        )

    def _satisfying_specs(
        self, conditions: Mapping[Candidate, Conditions], pool: Pool
    ) -> Iterator[SatisfyingSpec]:
        """Yield the specs of configurations: installed ones, binaries, and then
        externals.
        """
        provided = graph.externals(self._lookups)
        trees = self._lookups.trees(condition_value(self._scope, "release"))
        for tree in trees:
            within = {
                row: within_release(places, tree) for row, places in conditions.items()
            }
            for option in self._in_order(within):
                if option.spec.id not in provided:
                    yield SatisfyingSpec("installed", option.row, option.spec)
        for option in self._in_order(conditions):
            if option.spec.id not in provided:
                yield SatisfyingSpec("binary", option.row, option.spec)
                # All others have the same obstacle.
                if pool.takes_nothing:
                    break
        if not provided:
            return
        for option in self._in_order(conditions):
            if option.spec.id in provided:
                yield SatisfyingSpec("external", option.row, option.spec)

    def _in_order(self, conditions: Mapping[Candidate, Conditions]) -> Iterator[Option]:
        """Yield the specs of configurations; those that are proposed first come
        first.
        """
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
        spec = finding.found.spec
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
            configuration=self._candidates.configuration(finding.found.row),
            hash=spec.hash,
            reasons=() if finding.obstacle is None else (finding.obstacle.reason,),
            external=external,
            missing=_missing(finding),
            size=None if finding.closure is None else finding.closure.size,
            closure=finding.closure,
        )

    def _unknown_answer(self, query: str, match: _Match) -> CoveredSpec | None:
        """Return the answer if binaries satisfy all conditions for which the database
        has data.
        """
        ids = self._ids_of(match.query.name)
        # Let specs pass of which it is unknown whether they satisfy a condition.
        unknown: dict[str, Set[int]] = {}
        lenient: list[Condition] = []
        for condition in match.conditions:
            verdict = condition.value
            if isinstance(verdict, Verdict) and verdict.unknown & ids:
                unknown[condition.text] = verdict.unknown
                possible = (verdict.matching | verdict.unknown) & ids
                lenient.append(replace(condition, value=Verdict(possible)))
            else:
                lenient.append(condition)
        if not unknown:
            return None
        conditions = tuple(lenient)
        rows = list(misses_of(self._candidates, conditions).fitting())
        if not rows:
            return None
        # Name the first of them, and the conditions that are unknown for it.
        row = rows[0]
        spec = self._candidates.specs_of(conditions, [row])[row.id][0]
        texts = [text for text, specs in unknown.items() if spec.id in specs]
        configuration = self._candidates.configuration(row)
        reason = f"the database does not show whether it satisfies {', '.join(texts)}"
        reasons = (f"{configuration.summary} /{spec.hash}: {reason}",)
        return CoveredSpec(
            "", "unknown", query=query, configuration=configuration, reasons=reasons
        )

    def _why_legacy(
        self, legacy: SpecQuery | None, rules: PackageRules
    ) -> WhyNot | None:
        """Return the spec that Spack before 1.0 reads, or why that has no binary
        either.

        None if Spack before 1.0 reads the same spec, or if the database cannot answer
        it.
        """
        if legacy is None:
            return None
        try:
            match = self._match(legacy, rules)
            if match.rows:
                return WhyNot(corrected=spec_text(required_query(match.query, rules)))
            return replace(self._why_not(match), read_as=spec_text(legacy))
        except UnsupportedQuery:
            return None

    def _without_binary(
        self, text: str, match: _Match, why: WhyNot | None
    ) -> CoveredSpec:
        """Return the answer for a query that nothing satisfies."""
        if why is None:
            why = self._why_not(match)
        # A binary that the mirror has lost is nearer than any other.
        lost = self._lost(match)
        if lost is not None:
            # If nothing is known but that the package has no binaries, this says more.
            # The notes would say again that the mirror has lost it.
            others = replace(why, notes=()).sentences() if why.known is None else ()
            return replace(
                lost,
                query=text,
                reasons=(*lost.reasons, *others),
                corrected=why.corrected,
            )
        nearest: Configuration | None = None
        if why.without:
            nearest = why.without[0].nearest
        elif why.nearest:
            nearest = why.nearest.configuration
        return CoveredSpec(
            "",
            "near" if why.without else "none",
            query=text,
            configuration=nearest,
            why=why,
            reasons=why.sentences() or (NOTHING,),
            corrected=why.corrected,
        )

    def _why_not(self, match: _Match) -> WhyNot:
        """Return why nothing matches; of many unknown packages, similar names of the
        first only.
        """
        name = str(match.query.name)
        if name not in self._lookups.packages:
            self._unknown += 1
            if self._unknown > MOST_UNKNOWN:
                return WhyNot(known=known_name(self._lookups, name, with_near=False))
        return explained(self._candidates, match.query, match.conditions)

    def _lost(self, match: _Match) -> CoveredSpec | None:
        """Return the answer with the last binary that a mirror has lost, if one
        satisfies.
        """
        if not self._gone:
            return None
        # Requirements of `packages:` were checked only for what mirrors have.
        conditions = tuple(
            condition
            for condition in without(match.conditions, "release", "stack")
            if not _is_of_requirement(condition)
        )
        ids = configuration_ids(self._lookups, conditions, every=True)
        on_specs = only(conditions, "hash", "specs")
        rows = select(self._lookups.conn, GONE_OF_CONFIGURATIONS, ids=json.dumps(ids))
        for *values, configuration_id in rows:
            spec = Spec._make(values)
            if not all(satisfies(spec, condition) for condition in on_specs):
                continue
            of_package = self._candidates.rows(match.query.name)
            row = next(row for row in of_package if row.id == configuration_id)
            configuration = self._candidates.configuration(row)
            reason = (
                f"{configuration.summary} /{spec.hash}: {lost_sentence(spec.last_seen)}"
            )
            return CoveredSpec(
                "", "near", configuration=configuration, reasons=(reason,)
            )
        return None


def _is_of_requirement(condition: Condition) -> bool:
    """Return whether a condition is one of `packages:` that specs were compared
    with.
    """
    return isinstance(condition.value, Verdict) and condition.value.named is not None


def mirrored(candidates: Candidates) -> int | None:
    """Return the release whose mirror must have everything, by id; None for any.

    An installation and a copy that `build --snapshot` made are not mirrors: what their
    specs need may be in any mirror.
    """
    release = condition_value(candidates.scope, "release")
    if release is None or candidates.lookups.trees(release):
        return None
    is_copy = any(select(candidates.lookups.conn, IS_COPY, release=release))
    return None if is_copy else release


def _asked_spec(spec: UserSpec) -> _AskedSpec | None:
    """Return the question of a spec; None if its answer needs no database."""
    if spec.query is None or _must_be_external(spec):
        return None
    return _AskedSpec(spec.query, spec.legacy, spec.rules, spec.reuse)


def _completed(
    spec: UserSpec, answered: Mapping[_AskedSpec, CoveredSpec]
) -> CoveredSpec:
    """Return the answer for a spec, with its place in the environment."""
    question = _asked_spec(spec)
    if question is not None:
        covered = answered[question]
    elif _must_be_external(spec):
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


def _must_be_external(spec: UserSpec) -> bool:
    """Return whether an external satisfies a spec, and Spack must not build its
    package.
    """
    return bool(spec.external) and not spec.is_buildable


def _missing(finding: Finding) -> tuple[str, ...]:
    """Return the members of a closure that no mirror lists."""
    if finding.closure is None:
        return ()
    return tuple(
        f"{member.package}@{member.version}/{member.hash}"
        for member in finding.closure.missing
    )
