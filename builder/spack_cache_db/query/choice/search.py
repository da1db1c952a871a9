"""Finds for each spec of an environment the binary that Spack takes, or the best of the
others.

For `hdf5 +mpi`, the database may have many binaries that satisfy the spec. These are
its candidates: installed specs first, then binaries in the order of the rule (`rule`),
then externals. They are tried until one is found that nothing keeps from being used
(`reuse`). If none is, the answer is the candidate with the least obstacle.

All that a binary needs (its closure) takes time to read, so the candidates of all
searches are read together: first one of each, then more and more of the searches that
are not over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from spack_cache_db.query.choice.pool import member_facts
from spack_cache_db.query.choice.reuse import (
    Obstacle,
    obstacle_of_closure,
    obstacle_of_named,
    obstacle_of_spec,
)
from spack_cache_db.query.choice.reuse_pool import Compiler, MemberFacts, Pool
from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import check_time
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.query.stored.closure import Closure, closures
from spack_cache_db.query.stored.mirrors import Mirror

MOST_TRIED = 500
"""Maximum of candidates of one spec that are tried."""
GROWTH = 8
"""How many times more candidates are read together than the time before."""


class SatisfyingSpec(NamedTuple):
    """A candidate: a spec of the database that satisfies a spec of an environment.

    Attributes:
        status: `installed`, `binary` or `external`.
        row: the configuration of the spec.
    """

    status: str
    row: Candidate
    spec: Spec


class Finding(NamedTuple):
    """A candidate that was looked at.

    Attributes:
        found: the candidate.
        obstacle: why Spack may not take it; None if it does.
        closure: what it needs; None if that was not read, because it does not decide
            (`_is_decided_by_closure`).
    """

    found: SatisfyingSpec
    obstacle: Obstacle | None = None
    closure: Closure | None = None

    @property
    def status(self) -> str:
        """The status of the answer, if this finding is the best one."""
        return self.found.status if self.obstacle is None else self.obstacle.status


@dataclass(eq=False)
class Search:
    """The search for one spec.

    Attributes:
        pool: what the solver takes under the rules of the spec.
        candidates: the candidates that were not tried yet, in order.
        is_by_hash: whether the spec names its binary by the hash.
        best: the best finding so far.
        is_over: whether the best finding is the answer.
        tried: the number of candidates that were tried.
    """

    pool: Pool
    candidates: Iterator[SatisfyingSpec]
    is_by_hash: bool = False
    best: Finding | None = None
    is_over: bool = False
    tried: int = 0

    def next_candidates(self, count: int) -> list[SatisfyingSpec]:
        """Return up to `count` candidates; none if all or `MOST_TRIED` were tried."""
        left = MOST_TRIED - self.tried
        batch = list(islice(self.candidates, min(count, left)))
        self.tried += len(batch)
        return batch

    def consider(self, finding: Finding) -> None:
        """Keep a finding if it is better than the best so far.

        The first finding without an obstacle is the answer. Without one, the answer is
        the first of those whose obstacle has the highest rank.
        """
        if self.is_over:
            return
        if finding.obstacle is None:
            self.best = finding
            self.is_over = True
            return
        best_obstacle = None if self.best is None else self.best.obstacle
        if best_obstacle is None or finding.obstacle.rank > best_obstacle.rank:
            self.best = finding


@dataclass(frozen=True, slots=True)
class Places:
    """Where binaries must be.

    Attributes:
        release: the id of the release whose mirror must list all that a binary needs;
            None for any mirror.
        with_records: whether the database has dependencies. A database of pages has
            none, and the mirrors of pages are complete.
        gone: the ids of the specs that a mirror has lost.
    """

    release: int | None
    with_records: bool
    gone: Set[int] = frozenset()


def search_all(lookups: Lookups, searches: Iterable[Search], places: Places) -> None:
    """Try candidates until each search is over or has no more of them.

    The results are in the searches themselves (`best`).
    """
    unfinished = list(searches)
    count = 1
    while unfinished:
        # Take the next candidates of each search, and check what they are themselves.
        findings: list[_SearchFinding] = []
        continued = []
        for search in unfinished:
            batch = search.next_candidates(count)
            for found in batch:
                obstacle = _own_obstacle(search, found, places)
                findings.append(_SearchFinding(search, Finding(found, obstacle)))
            if batch:
                continued.append(search)
        # Check what they need, for all searches together.
        _consider(lookups, findings, places)
        unfinished = [search for search in continued if not search.is_over]
        count *= GROWTH
        # A time limit ends the search here, even if all was read from memory.
        check_time(lookups.conn)


class _SearchFinding(NamedTuple):
    """A finding, and the search that it belongs to."""

    search: Search
    finding: Finding


def _own_obstacle(
    search: Search, found: SatisfyingSpec, places: Places
) -> Obstacle | None:
    """Return why Spack may not take a candidate, whatever it needs; None if it may."""
    spec = found.spec
    if found.status == "external":
        return None
    if spec.id in places.gone and found.status == "binary":
        return Obstacle("near", lost_sentence(spec.last_seen))
    if search.is_by_hash:
        return None
    is_installed = found.status == "installed"
    return obstacle_of_spec(search.pool, spec.id, is_installed=is_installed)


def lost_sentence(last_seen: str | None) -> str:
    """Return that no mirror has a binary any more, and the day that last listed it.

    For example `the mirror has lost it, last listed 2026-01-31`.
    """
    sentence = "the mirror has lost it"
    return f"{sentence}, last listed {last_seen}" if last_seen else sentence


def _consider(
    lookups: Lookups, findings: Sequence[_SearchFinding], places: Places
) -> None:
    """Add to findings what the candidates need, and let the searches consider them."""
    # Read the closures of all candidates that may still be taken.
    roots = [
        finding.found.spec.id
        for _, finding in findings
        if _is_decided_by_closure(finding, places)
    ]
    closure_of = closures(lookups, roots, places.release) if roots else {}
    facts = _facts(lookups, findings, closure_of.values())

    # Complete the findings in the order of the candidates.
    for search, finding in findings:
        # Not only by its key: another search may need the closure of the same spec.
        closure = None
        if _is_decided_by_closure(finding, places):
            closure = closure_of.get(finding.found.spec.id)
        if closure is not None:
            check = obstacle_of_named if search.is_by_hash else obstacle_of_closure
            obstacle = check(search.pool, closure, facts)
            finding = finding._replace(obstacle=obstacle, closure=closure)
        search.consider(finding)


def _is_decided_by_closure(finding: Finding, places: Places) -> bool:
    """Return whether a candidate may be taken, if all that it needs may be.

    An installed spec and an external need nothing more.
    """
    if finding.obstacle is not None or finding.found.status != "binary":
        return False
    return places.with_records


def _facts(
    lookups: Lookups,
    findings: Sequence[_SearchFinding],
    needs: Iterable[Closure],
) -> MemberFacts:
    """Return what the pools of all searches need to know about members of closures."""
    # Most searches share one pool, and pools are compared by identity.
    pools = dict.fromkeys(search.pool for search, _ in findings)
    all_closures = list(needs)
    listed: dict[int, Sequence[Mirror]] = {}
    compilers: dict[int, Mapping[str, Compiler]] = {}
    for pool in pools:
        facts = member_facts(lookups, pool, all_closures)
        listed |= facts.listed
        compilers |= facts.compilers
    return MemberFacts(listed, compilers)
