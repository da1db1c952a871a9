"""Answers the specs of an environment: the binary that Spack takes for each, or why it
has none.

For `hdf5 +mpi`, the database has configurations that satisfy the spec together with the
requirements of `packages:` (`spec_matches`). Of their specs, `choice.search` finds the
one that Spack's solver takes. `uncovered_specs` answers the specs that nothing
satisfies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from spack_cache_db.environments.model import UserSpec
from spack_cache_db.environments.reuse_rules import REUSE_ALL, ReuseRules
from spack_cache_db.environments.rules import (
    PackageRules,
    combinations,
    required_query,
)
from spack_cache_db.query.answers.covered import CoveredSpec
from spack_cache_db.query.answers.spec_matches import Match, Matcher
from spack_cache_db.query.answers.toolchains import Toolchain
from spack_cache_db.query.answers.uncovered_specs import NOTHING, UncoveredSpecs
from spack_cache_db.query.choice.options import Option, options_in_order
from spack_cache_db.query.choice.pool import read_pool
from spack_cache_db.query.choice.reuse_pool import Pool
from spack_cache_db.query.choice.rule import criteria_of, in_order
from spack_cache_db.query.choice.rule_facts import read_facts
from spack_cache_db.query.choice.search import (
    Finding,
    Places,
    SatisfyingSpec,
    Search,
    search_all,
)
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    condition_value,
    within_release,
)
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.candidates import Candidate, Candidates
from spack_cache_db.query.open.lookups import has_records
from spack_cache_db.query.open.sql import check_time, select
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.spack.queries import SpecQuery

IS_COPY = "SELECT name FROM releases WHERE is_copy AND id = :release"
"""Whether `build --snapshot` made a release."""

CHECKED_SPECS = 10
"""Number of specs that are read from one check of the time limit to the next."""


class _Question(NamedTuple):
    """A spec with the settings that apply to it; equal questions are answered once.

    Attributes:
        query: the spec.
        legacy: the spec that Spack before 1.0 reads; None if it reads the same.
        rules: the requirements of `packages:`.
        reuse: the settings of the environment for reuse.
    """

    query: SpecQuery
    legacy: SpecQuery | None
    rules: PackageRules
    reuse: ReuseRules


@dataclass(frozen=True, slots=True, eq=False)
class _Satisfied:
    """The configurations that satisfy a question in one of several ways.

    Attributes:
        query: the spec with its requirements, as text.
        counts: the number of specs of each configuration.
        conditions: the conditions that the specs of each configuration must satisfy.
        pool: what Spack's solver takes from the database.
    """

    query: str
    counts: Mapping[Candidate, int]
    conditions: Mapping[Candidate, Conditions]
    pool: Pool


class SpecAnswers:
    """Answers the specs of one environment.

    Args:
        candidates: the database and the scope of the answers.
        roots: the names of the packages of all specs of the environment.
    """

    def __init__(self, candidates: Candidates, roots: Set[str]) -> None:
        self._candidates = candidates
        self._lookups = candidates.lookups
        self._scope = candidates.scope
        self._matcher = Matcher(candidates, roots)
        self._uncovered = UncoveredSpecs(self._matcher)

    @property
    def is_old(self) -> bool:
        """Whether all records of the database are from before Spack 1.0."""
        return self._pool(REUSE_ALL).is_old

    def answers(
        self, specs: Sequence[UserSpec], toolchain: Toolchain | None = None
    ) -> list[CoveredSpec]:
        """Return the answer for each spec, in order.

        With a toolchain, its binaries alone count for specs that have one of it.
        """
        # First find what satisfies each question.
        read: dict[_Question, CoveredSpec | _Satisfied] = {}
        for number, spec in enumerate(specs):
            question = _question_of(spec)
            if question is not None and question not in read:
                read[question] = self._within(self._read_once(question), toolchain)
            # A time limit ends the work here, even if all was read from memory.
            if number % CHECKED_SPECS == 0:
                check_time(self._lookups.conn)

        # Then choose the binaries, for all questions together.
        searches = {}
        for question, answer in read.items():
            if isinstance(answer, _Satisfied):
                candidates = self._satisfying_specs(answer)
                is_by_hash = question.query.hash is not None
                searches[question] = Search(answer.pool, candidates, is_by_hash)
        search_all(self._lookups, searches.values(), self._places())

        # Equal questions have equal answers, apart from what the environment has about
        # a spec.
        answered: dict[_Question, CoveredSpec] = {}
        for question, answer in read.items():
            if isinstance(answer, _Satisfied):
                answer = self._chosen(answer, searches[question])
            answered[question] = answer
        return [_completed(spec, answered) for spec in specs]

    def _read_once(self, question: _Question) -> CoveredSpec | _Satisfied:
        """Return what satisfies a question; it is read once for all toolchains."""
        return self._candidates.once(question, lambda: self._read(question))

    def _within(
        self, answer: CoveredSpec | _Satisfied, toolchain: Toolchain | None
    ) -> CoveredSpec | _Satisfied:
        """Return what satisfies a question, of one toolchain alone if one is given."""
        if toolchain is None or not isinstance(answer, _Satisfied):
            return answer
        counts = {
            row: count
            for row, count in answer.counts.items()
            if toolchain.takes(self._toolchain_of(row))
        }
        conditions = {row: answer.conditions[row] for row in counts}
        return replace(answer, counts=counts, conditions=conditions)

    def _read(self, question: _Question) -> CoveredSpec | _Satisfied:
        """Return what satisfies a question, or the answer if nothing does."""
        query = question.query
        rules = question.rules
        # A virtual name is replaced by each of its required providers.
        queries: Iterable[SpecQuery] = [query]
        if query.name not in self._lookups.packages:
            queries = combinations(query, rules)
        matches: list[Match] = []
        refused = ""
        for possible_query in queries:
            try:
                matches.append(self._matcher.match(possible_query, rules))
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
            unknown = self._uncovered.unknown_answer(text, match)
            if unknown is not None:
                return unknown

        # Nothing satisfies it, or the database cannot answer it.
        why = self._uncovered.why_legacy(question.legacy, rules)
        if not refused:
            return self._uncovered.answer(text, matches[0], why)
        return CoveredSpec(
            "",
            "unanswerable",
            query=text,
            why=why,
            reasons=(refused,) if why is None else (refused, *why.sentences()),
            corrected=None if why is None else why.corrected,
        )

    def _satisfied(
        self, text: str, matches: Sequence[Match], reuse: ReuseRules
    ) -> _Satisfied:
        """Return configurations that match in one of several ways."""
        conditions: dict[Candidate, Conditions] = {}
        counts: dict[Candidate, int] = {}
        for match in matches:
            conditions |= dict.fromkeys(match.rows, match.conditions)
            counts |= match.rows
        return _Satisfied(text, counts, conditions, self._pool(reuse))

    def _pool(self, reuse: ReuseRules) -> Pool:
        """Return what Spack's solver takes from the database, under rules of reuse."""
        return self._candidates.once(
            ("pool", reuse), lambda: read_pool(self._matcher.records, reuse)
        )

    def _satisfying_specs(self, satisfied: _Satisfied) -> Iterator[SatisfyingSpec]:
        """Yield the specs of configurations: installed ones, binaries, and then
        externals.
        """
        conditions = satisfied.conditions
        externals = graph.externals(self._lookups)
        # Installations are releases of the database.
        for tree in self._lookups.trees(condition_value(self._scope, "release")):
            within = {
                row: within_release(conditions_of_row, tree)
                for row, conditions_of_row in conditions.items()
            }
            for option in self._in_order(within):
                if option.spec.id not in externals:
                    yield SatisfyingSpec("installed", option.row, option.spec)
        for option in self._in_order(conditions):
            if option.spec.id not in externals:
                yield SatisfyingSpec("binary", option.row, option.spec)
                # All other binaries have the same obstacle.
                if satisfied.pool.takes_nothing:
                    break
        if not externals:
            return
        for option in self._in_order(conditions):
            if option.spec.id in externals:
                yield SatisfyingSpec("external", option.row, option.spec)

    def _in_order(self, conditions: Mapping[Candidate, Conditions]) -> Iterator[Option]:
        """Yield the specs of configurations that satisfy their conditions, in the order
        of `choice.rule`.
        """
        rows = list(conditions)
        facts = read_facts(self._lookups, rows, conditions[rows[0]])

        def specs_of(batch: Sequence[Candidate]) -> Mapping[int, Sequence[Spec]]:
            # Configurations of one query have the same conditions.
            groups: dict[Conditions, list[Candidate]] = {}
            for row in batch:
                groups.setdefault(conditions[row], []).append(row)
            specs: dict[int, Sequence[Spec]] = {}
            for conditions_of_group, group in groups.items():
                specs |= self._candidates.specs_of(conditions_of_group, group)
            return specs

        return options_in_order(in_order(rows, criteria_of(facts)), specs_of)

    def _places(self) -> Places:
        """Return where the binaries that Spack takes must be."""
        return Places(
            release=_mirrored_release(self._candidates),
            with_records=has_records(self._lookups.conn),
            gone=self._uncovered.gone,
        )

    def _chosen(self, satisfied: _Satisfied, search: Search) -> CoveredSpec:
        """Return the answer for configurations that satisfy a question, when the search
        is over.
        """
        finding = search.best
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
            toolchains=self._toolchains(satisfied.counts),
        )

    def _toolchains(self, rows: Iterable[Candidate]) -> frozenset[Toolchain]:
        """Return the toolchains of configurations."""
        return frozenset(self._toolchain_of(row) for row in rows)

    def _toolchain_of(self, row: Candidate) -> Toolchain:
        """Return the toolchain of a configuration."""
        words = self._lookups.words
        names = [words[column][row.key(column)] for column in Toolchain._fields]
        return Toolchain(*names)


def _question_of(spec: UserSpec) -> _Question | None:
    """Return the question of a spec; None if its answer needs no database."""
    if spec.query is None or _must_be_external(spec):
        return None
    return _Question(spec.query, spec.legacy, spec.rules, spec.reuse)


def _must_be_external(spec: UserSpec) -> bool:
    """Return whether an external satisfies a spec, and Spack must not build its
    package.
    """
    return bool(spec.external) and not spec.is_buildable


def _mirrored_release(candidates: Candidates) -> int | None:
    """Return the id of the release whose mirror must have everything; None for any.

    An installation and a copy that `build --snapshot` made are not mirrors: what their
    specs need may be in any mirror.
    """
    release = condition_value(candidates.scope, "release")
    if release is None or candidates.lookups.trees(release):
        return None
    is_copy = any(select(candidates.lookups.conn, IS_COPY, release=release))
    return None if is_copy else release


def _missing(finding: Finding) -> tuple[str, ...]:
    """Return the members of a closure that no mirror lists, such as
    `zlib-ng@2.2.4/abcdefg…`.
    """
    if finding.closure is None:
        return ()
    return tuple(
        f"{member.package}@{member.version}/{member.hash}"
        for member in finding.closure.missing
    )


def _completed(
    spec: UserSpec, answered: Mapping[_Question, CoveredSpec]
) -> CoveredSpec:
    """Return the answer for a spec, with its place in the environment."""
    question = _question_of(spec)
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
