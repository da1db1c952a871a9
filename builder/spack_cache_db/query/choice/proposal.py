"""Chooses the build to propose among the matches of a question.

For `hdf5 +mpi target=:zen3` that may be `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04,
x86_64_v3`, chosen for zen3 as the newest version with default options. The matches are
configurations, called rows; `rule` puts them in order, and `options` chooses one of
their specs. This module reads these specs, and whether they can be installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from spack_cache_db.query.choice.options import (
    BEST,
    Standing,
    best_option,
    options_in_order,
)
from spack_cache_db.query.choice.proposed import Proposal, proposal_of
from spack_cache_db.query.choice.rule import Reason, criteria_of, in_order
from spack_cache_db.query.choice.rule_facts import installed_specs, read_facts
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    Word,
    condition_value,
)
from spack_cache_db.query.match.candidates import Candidate, candidates_by_id
from spack_cache_db.query.match.selection import ResultSet
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select_ids
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.closure import Closure, closures
from spack_cache_db.query.stored.mirrors import has_addresses

_CURRENT_CONFIGURATIONS = """
SELECT DISTINCT configuration_id FROM specs
WHERE is_current AND configuration_id IN (SELECT value FROM json_each(:ids))
"""
"""The configurations with a spec that a branch or a release lists."""


def propose(
    lookups: Lookups, rows: Sequence[Candidate], conditions: Conditions
) -> Proposal | None:
    """Return the build to propose among matches; None if no release of the question
    lists one.

    Args:
        lookups: the database.
        rows: the configurations that match, in any order, of one or several packages.
        conditions: those of the question; conditions on specs decide which binaries
            count.
    """
    facts = read_facts(lookups, rows, conditions)
    criteria = criteria_of(facts)
    specs = _Specs(lookups, conditions)

    # Look at the first match, which is usually the answer, and put it back.
    options = options_in_order(in_order(rows, criteria), specs.of_rows)
    first = next(options, None)
    if first is None:
        return None
    options = chain((first,), options)

    # If only snapshots list it, matches that a branch or a release lists come first, if
    # there are any. In one release, no match is more current than another.
    prefers_current = specs.release is None
    steps_before: tuple[Reason, ...] = ()
    has_only_snapshots = False
    if prefers_current and not specs.current([first.spec]):
        current_rows = specs.current_rows(rows)
        if current_rows:
            options = options_in_order(in_order(current_rows, criteria), specs.of_rows)
            steps_before = (Reason.CURRENT,)
        else:
            prefers_current = False
            has_only_snapshots = True

    def standings_of(batch: Sequence[Spec]) -> Mapping[int, Standing]:
        ids = [spec.id for spec in batch]
        # If none is preferred, all count as current.
        current = specs.current(batch) if prefers_current else frozenset(ids)
        return specs.standings(ids, current)

    # The first that can be installed is the answer.
    choice = best_option(options, standings_of)
    if choice is None:
        return None
    proposal = proposal_of(choice, rows, facts, criteria, steps_before)
    if has_only_snapshots:
        return replace(proposal, is_current=False)
    return proposal


class BestSpec(NamedTuple):
    """The spec of a configuration that would be proposed if no other one matched.

    `is_alone` says that the configuration has no other spec.
    """

    spec: Spec
    standing: Standing
    is_alone: bool


def best_specs(lookups: Lookups, rows: Sequence[Candidate]) -> dict[int, BestSpec]:
    """Return the best spec of each row, by the id of the row; rows whose specs are all
    lost have none.

    Of several rows, `propose` takes the one whose spec has the best standing, and of
    equal ones the first by the other steps of the rule.
    """
    specs = _Specs(lookups, ())
    specs_of_row = specs.of_rows(rows)

    def standings_of(batch: Sequence[Spec]) -> Mapping[int, Standing]:
        ids = [spec.id for spec in batch]
        return specs.standings(ids, specs.current(batch))

    # The first spec of most rows can be installed: then the others are not read.
    standings = dict(
        standings_of([row_specs[0] for row_specs in specs_of_row.values()])
    )
    others: list[Spec] = []
    for row_specs in specs_of_row.values():
        first, *rest = row_specs
        if standings[first.id] != BEST:
            others += rest
    standings |= standings_of(others)

    best = {}
    for row_id, row_specs in specs_of_row.items():
        compared = [spec for spec in row_specs if spec.id in standings]
        # Of equal specs, the first one.
        spec = max(compared, key=lambda spec: standings[spec.id])
        is_alone = len(row_specs) == 1
        best[row_id] = BestSpec(spec, standings[spec.id], is_alone)
    return best


class _Specs:
    """Reads the specs of matches, and whether they can be installed.

    Args:
        lookups: the database.
        conditions: those of the question.
    """

    def __init__(self, lookups: Lookups, conditions: Conditions) -> None:
        self.release = condition_value(conditions, "release")
        """The id of the release of the question; None for all releases."""
        self._lookups = lookups
        self._conditions = conditions
        self._installed = installed_specs(lookups, self.release)

    def of_rows(self, rows: Sequence[Candidate]) -> Mapping[int, Sequence[Spec]]:
        """Return the specs of rows that may be proposed, by the ids of the rows.

        Of several specs of a row, only those that are installed count, if there are
        any. Specs that a mirror has lost are left out, and rows without other specs.
        """
        ids = [row.id for row in rows]
        specs_of_row = specs_in_scope(self._lookups.conn, ids, self._conditions)
        present = {}
        for row_id, specs in specs_of_row.items():
            remaining = [spec for spec in specs if not spec.is_gone]
            if remaining:
                present[row_id] = self._installed.best_of(remaining)
        return present

    def current(self, specs: Sequence[Spec]) -> Set[int]:
        """Return the ids of the specs that a branch, a release or an installation
        lists.
        """
        installed = self._installed.specs
        return {spec.id for spec in specs if spec.is_current or spec.id in installed}

    def current_rows(self, rows: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the rows with a spec that a branch or a release lists."""
        ids = [row.id for row in rows]
        current = select_ids(self._lookups.conn, _CURRENT_CONFIGURATIONS, ids)
        return [row for row in rows if row.id in current]

    def standings(
        self, specs: Sequence[int], current: Set[int]
    ) -> Mapping[int, Standing]:
        """Return whether each spec can be installed, given which are `current`."""
        # An installed spec needs nothing more.
        standings = {spec: BEST._replace(is_current=spec in current) for spec in specs}
        # Pages do not have dependencies, and their mirrors are complete.
        if not has_records(self._lookups.conn):
            return standings
        of_mirrors = [spec for spec in specs if spec not in self._installed.specs]
        closure_of = closures(self._lookups, of_mirrors, self.release)
        # If no mirror has an address, no spec is better by one, and the first that can
        # be installed is the best.
        can_have_address = has_addresses(self._lookups)
        for spec, closure in closure_of.items():
            standing = _standing_of(closure, is_current=spec in current)
            if not can_have_address:
                standing = standing._replace(has_address=True)
            standings[spec] = standing
        return standings


def _standing_of(closure: Closure, *, is_current: bool) -> Standing:
    """Return whether a binary can be installed, given all that this takes."""
    return Standing(
        is_current=is_current and closure.is_listed,
        # None, which counts as complete: the dependencies are not known.
        is_complete=closure.is_complete is not False,
        is_portable=not closure.externals,
        has_address=all(mirror.url is not None for mirror in closure.mirrors),
    )


def propose_among(lookups: Lookups, results: ResultSet) -> Proposal | None:
    """Return the build to propose among the configurations of an answer; see
    `propose`.
    """
    # An answer without a package in the question may have all configurations of a
    # database, too many to be compared one by one. So a package is chosen first.
    narrowed = _Narrowed(results.ids)
    package = condition_value(results.conditions, "package")
    has_one_package = isinstance(package, Word)
    if not has_one_package:
        narrowed = _of_one_package(lookups, results)

    rows = candidates_by_id(lookups, narrowed.ids)
    proposal = propose(lookups, rows, results.conditions)
    if proposal is None:
        return None
    # Each step once: `propose` also compares what is installed.
    decided = dict.fromkeys((*narrowed.reasons, *proposal.decided))
    return replace(proposal, decided=tuple(decided))


class _Narrowed(NamedTuple):
    """The configurations that are left after the first steps of the rule.

    Attributes:
        ids: the ids of these configurations.
        reasons: the steps that excluded others.
    """

    ids: Sequence[int]
    reasons: tuple[Reason, ...] = ()


def _of_one_package(lookups: Lookups, results: ResultSet) -> _Narrowed:
    """Return the configurations of an answer that the steps on installed specs and on
    packages leave.
    """
    ids: Sequence[int] = results.ids
    reasons = []

    # Installed specs come first. A step that excludes nothing is not a reason.
    installed = installed_specs(lookups, condition_value(results.conditions, "release"))
    with_installed = [key for key in ids if key in installed.configurations]
    if with_installed and len(with_installed) < len(ids):
        ids = with_installed
        reasons.append(Reason.INSTALLED)

    # Installed specs of several packages stay together: `propose` compares them.
    package_of = lookups.column("configurations", "package_id")
    packages = {package_of[key] for key in ids}
    if with_installed or len(packages) < 2:
        return _Narrowed(ids, tuple(reasons))

    # The package with most binaries is left; of equal ones, the last by name.
    counts = package_counts(lookups)

    def rank_of(package: int) -> tuple[int, str]:
        name = lookups.words["package"][package]
        return counts.get(name, 0), name

    largest = max(packages, key=rank_of)
    ids = [key for key in ids if package_of[key] == largest]
    return _Narrowed(ids, (*reasons, Reason.PACKAGE))
