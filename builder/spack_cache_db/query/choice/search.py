"""Finds for each spec of an environment the binary that Spack takes, or the best of the
others.

The candidates of a spec are tried in the order of `rule`, installed specs
first, until one is found that nothing keeps from being used. What a binary needs takes
time to read, so the candidates of all specs are read together: first one of each, then
more and more of those that still have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from spack_cache_db.query.choice.pool import member_facts
from spack_cache_db.query.choice.reuse import (
    Compiler,
    MemberFacts,
    Obstacle,
    Pool,
    obstacle_of_closure,
    obstacle_of_spec,
)
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import check_time
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.query.stored.closure import Closure, closures
from spack_cache_db.query.stored.mirrors import Mirror

MOST_TRIED = 500
"""Candidates of one spec that are tried; the best of them is the answer."""
GROWTH = 8
"""Factor by which the number of candidates that are read together grows each time."""


class SatisfyingSpec(NamedTuple):
    """A spec of the database that satisfies a spec of an environment.

    Attributes:
        status: `installed`, `binary` or `external`.
        row: its configuration.
    """

    status: str
    row: Candidate
    spec: Spec


class Finding(NamedTuple):
    """A candidate, why Spack may not take it, and what it needs, as far as it was
    looked at.
    """

    found: SatisfyingSpec
    obstacle: Obstacle | None = None
    closure: Closure | None = None

    @property
    def status(self) -> str:
        """The status of the answer."""
        return self.found.status if self.obstacle is None else self.obstacle.status


@dataclass(eq=False)
class Search:
    """The search for one spec.

    Attributes:
        pool: what the solver takes under the rules of the spec.
        candidates: the candidates in order.
        best: the best finding so far.
        is_over: whether the best finding is the answer.
        tried: the number of candidates that were tried.
    """

    pool: Pool
    candidates: Iterator[SatisfyingSpec]
    best: Finding | None = None
    is_over: bool = False
    tried: int = 0

    def next_candidates(self, count: int) -> list[SatisfyingSpec]:
        """Return the next candidates; none if all were tried."""
        left = MOST_TRIED - self.tried
        batch = list(islice(self.candidates, min(count, left)))
        self.tried += len(batch)
        return batch

    def consider(self, finding: Finding) -> None:
        """Keep a finding if it is better than the best so far; the first usable one is
        best.
        """
        if self.is_over:
            return
        if finding.obstacle is None:
            self.best = finding
            self.is_over = True
            return
        # Without a usable one, the first of those with the best status is the answer.
        best_obstacle = None if self.best is None else self.best.obstacle
        if best_obstacle is None or finding.obstacle.rank > best_obstacle.rank:
            self.best = finding


@dataclass(frozen=True, slots=True)
class Places:
    """Where binaries must be.

    Attributes:
        release: the release whose mirror must list all that a binary needs; None for
            any.
        with_records: whether the database has dependencies. Pages have none, and their
            mirrors are complete.
        gone: the specs that a mirror has lost.
    """

    release: int | None
    with_records: bool
    gone: Set[int] = frozenset()


def search_all(lookups: Lookups, searches: Iterable[Search], places: Places) -> None:
    """Continue searches until each is over or has tried all its candidates."""
    unfinished = list(searches)
    count = 1
    while unfinished:
        # What the next candidates of each search are themselves.
        findings: list[_SearchFinding] = []
        continued = []
        for search in unfinished:
            batch = search.next_candidates(count)
            for found in batch:
                obstacle = _own_obstacle(search.pool, found, places)
                findings.append(_SearchFinding(search, Finding(found, obstacle)))
            if batch:
                continued.append(search)
        # What they need.
        _consider(lookups, findings, places)
        unfinished = [search for search in continued if not search.is_over]
        count *= GROWTH
        check_time(lookups.conn)


class _SearchFinding(NamedTuple):
    """A finding, and the search that it is for."""

    search: Search
    finding: Finding


def _consider(
    lookups: Lookups, findings: Sequence[_SearchFinding], places: Places
) -> None:
    """Complete findings by what candidates without an obstacle need, and consider
    them.
    """
    # The closures of all searches are read together.
    specs = [
        finding.found.spec.id
        for _, finding in findings
        if _needs_closure(finding, places)
    ]
    closure_of = closures(lookups, specs, places.release) if specs else {}
    facts = _facts(lookups, findings, closure_of.values())
    for search, finding in findings:
        # Another search may need the closure of the same spec.
        closure = None
        if _needs_closure(finding, places):
            closure = closure_of.get(finding.found.spec.id)
        if closure is not None:
            obstacle = obstacle_of_closure(search.pool, closure, facts)
            finding = finding._replace(obstacle=obstacle, closure=closure)
        search.consider(finding)


def _own_obstacle(pool: Pool, found: SatisfyingSpec, places: Places) -> Obstacle | None:
    """Return why Spack may not take a candidate, whatever it needs; None if it may."""
    spec = found.spec
    if found.status == "external":
        return None
    if spec.id in places.gone and found.status == "binary":
        return Obstacle("near", lost_sentence(spec.last_seen))
    return obstacle_of_spec(pool, spec.id, is_installed=found.status == "installed")


def lost_sentence(last_seen: str | None) -> str:
    """Return that no mirror has a binary any more, and when it was last seen."""
    sentence = "the mirror has lost it"
    return f"{sentence}, last listed {last_seen}" if last_seen else sentence


def _needs_closure(finding: Finding, places: Places) -> bool:
    """Return whether what a candidate needs decides: an installed spec has all of
    it.
    """
    is_open = finding.obstacle is None and finding.found.status == "binary"
    return is_open and places.with_records


def _facts(
    lookups: Lookups,
    findings: Sequence[_SearchFinding],
    needs: Iterable[Closure],
) -> MemberFacts:
    """Return what the pools of searches need beside closures."""
    # Most specs share one pool; a pool is compared by identity.
    pools = dict.fromkeys(search.pool for search, _ in findings)
    all_closures = list(needs)
    listed: dict[int, Sequence[Mirror]] = {}
    compilers: dict[int, Mapping[str, Compiler]] = {}
    for pool in pools:
        facts = member_facts(lookups, pool, all_closures)
        listed |= facts.listed
        compilers |= facts.compilers
    return MemberFacts(listed, compilers)
