"""Chooses the build to propose among the matches of a question.

For `hdf5 +mpi target=:zen3` that may be `hdf5@1.14.6 +mpi, gcc 13.2.0, ubuntu22.04,
x86_64_v3`, chosen for zen3 as the newest version with default options. The matches are
configurations, called rows; `rule` puts them in order, and `options` chooses one of
their specs. This module reads from the database what both need to know.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from spack_cache_db.model import INSTALLED
from spack_cache_db.query.choice.options import (
    BEST,
    Standing,
    best_option,
    options_in_order,
)
from spack_cache_db.query.choice.proposed import Proposal, proposal_of
from spack_cache_db.query.choice.rule import (
    Facts,
    Reason,
    Uses,
    criteria_of,
    in_order,
)
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    Word,
    condition_value,
    only,
)
from spack_cache_db.query.match.candidates import Candidate, candidates_by_id
from spack_cache_db.query.match.order import chosen_machine
from spack_cache_db.query.match.selection import ResultSet
from spack_cache_db.query.names.spellings import package_counts
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select, select_ids
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.closure import Closure, closures
from spack_cache_db.spack.normal_forms import readable_variant
from spack_cache_db.spack.queries import VariantConstraint

_USES = """
SELECT facet, value, release_id IS NOT NULL, package_count FROM facet_values
WHERE (release_id IS NULL OR release_id = :release) AND facet <> 'stack'
"""
_OPTION_USES = """
SELECT variant_set_id, sum(spec_count) FROM configurations
WHERE version_id = :version GROUP BY variant_set_id
"""
_LATEST = "SELECT latest_version FROM known_packages WHERE name = :name"
_DEPRECATED = "SELECT version FROM known_versions WHERE package = :name AND deprecated"
_DEFAULTS = "SELECT name, default_value FROM known_variants WHERE package = :name"
_INSTALLED = """
SELECT specs.id, specs.configuration_id, max(installations.explicit IS 1)
FROM installations JOIN specs ON specs.hash = installations.hash
WHERE :release IS NULL OR installations.release = :release GROUP BY specs.id
"""
_CURRENT = """
SELECT id FROM specs WHERE is_current AND id IN (SELECT value FROM json_each(:ids))
"""
_CURRENT_CONFIGURATIONS = """
SELECT DISTINCT configuration_id FROM specs
WHERE is_current AND configuration_id IN (SELECT value FROM json_each(:ids))
"""
_GONE = (
    "SELECT id FROM specs WHERE is_gone AND id IN (SELECT value FROM json_each(:ids))"
)


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
    if prefers_current and not specs.current([first.spec.id]):
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
        current = specs.current(ids) if prefers_current else frozenset(ids)
        return specs.standings(ids, current)

    # The first that can be installed is the answer.
    choice = best_option(options, standings_of)
    if choice is None:
        return None
    proposal = proposal_of(choice, rows, facts, criteria, steps_before)
    if has_only_snapshots:
        return replace(proposal, is_current=False)
    return proposal


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
        self._installed = _installed(lookups, self.release)

    def of_rows(self, rows: Sequence[Candidate]) -> Mapping[int, Sequence[Spec]]:
        """Return the specs of rows that may be proposed, by the ids of the rows.

        Of several specs of a row, only those that are installed count, if there are
        any. Specs that a mirror has lost are left out, and rows without other specs.
        """
        ids = [row.id for row in rows]
        specs_of_row = specs_in_scope(self._lookups.conn, ids, self._conditions)
        all_specs = chain.from_iterable(specs_of_row.values())
        gone = select_ids(self._lookups.conn, _GONE, [spec.id for spec in all_specs])
        present = {}
        for row_id, specs in specs_of_row.items():
            remaining = [spec for spec in specs if spec.id not in gone]
            if remaining:
                present[row_id] = self._installed.best_of(remaining)
        return present

    def current(self, specs: Sequence[int]) -> Set[int]:
        """Return the specs that a branch, a release or an installation lists."""
        installed_specs = {spec for spec in specs if spec in self._installed.specs}
        return installed_specs | select_ids(self._lookups.conn, _CURRENT, specs)

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
        for spec, closure in closure_of.items():
            standings[spec] = _standing_of(closure, is_current=spec in current)
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


@dataclass(frozen=True, slots=True)
class _InstalledSpecs:
    """Installed specs and their configurations, by id.

    The value of an id is 2 if a user asked for the spec by name, or for one of the
    configuration; it is 1 if they are installed as dependencies only.
    """

    specs: Mapping[int, int]
    configurations: Mapping[int, int]

    def best_of(self, specs: Sequence[Spec]) -> Sequence[Spec]:
        """Return the specs that were installed explicitly, or else installed, or else
        all.
        """
        best = max(self.specs.get(spec.id, 0) for spec in specs)
        return [spec for spec in specs if self.specs.get(spec.id, 0) == best]


_NONE_INSTALLED = _InstalledSpecs({}, {})


def _installed(lookups: Lookups, release: int | None) -> _InstalledSpecs:
    """Return the specs of installations; none if the question is about a mirror's
    release.
    """
    if not lookups.trees(release):
        return _NONE_INSTALLED
    return lookups.once(
        ("installed", release), lambda: _read_installed(lookups, release)
    )


def _read_installed(lookups: Lookups, release: int | None) -> _InstalledSpecs:
    name = None if release is None else lookups.releases[release].name
    specs: dict[int, int] = {}
    configurations: dict[int, int] = {}
    rows = select(lookups.conn, _INSTALLED, release=name)
    for spec, configuration, is_explicit in rows:
        rank = 2 if is_explicit else 1
        specs[spec] = rank
        configurations[configuration] = max(rank, configurations.get(configuration, 0))
    return _InstalledSpecs(specs, configurations)


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
    installed = _installed(lookups, condition_value(results.conditions, "release"))
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


def read_facts(
    lookups: Lookups, rows: Sequence[Candidate], conditions: Conditions
) -> Facts:
    """Return what the rule knows about matches, most of it cached with the database."""
    conn = lookups.conn
    packages = {row.key("package") for row in rows}

    # Read what the recipe of the package prefers.
    recipe = _Recipe()
    if len(packages) == 1:
        (package,) = packages
        name = lookups.words["package"][package]
        recipe = lookups.once(("recipe", name), lambda: _read_recipe(conn, name))

    # Read what is common in the release of the question, or else in the first one.
    release = condition_value(conditions, "release")
    usual_release = _first_release(lookups) if release is None else release
    uses = lookups.once(
        ("uses", usual_release), lambda: _read_uses(lookups, usual_release)
    )

    def option_uses(version: int) -> Mapping[int, int]:
        key = ("option uses", version)
        return lookups.once(
            key, lambda: dict(select(conn, _OPTION_USES, version=version))
        )

    return Facts(
        words=lookups.words,
        families=lookups.families,
        uses=uses,
        option_uses=option_uses,
        package_counts=package_counts(lookups) if len(packages) > 1 else {},
        host=chosen_machine(conditions),
        latest=recipe.latest,
        deprecated=recipe.deprecated,
        defaults=recipe.defaults,
        named_variants=_named_variants(conditions),
        installed=_installed(lookups, release).configurations,
    )


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What package data has about a package; `Facts` describes the fields."""

    latest: str | None = None
    deprecated: frozenset[str] = frozenset()
    defaults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _read_recipe(conn: sqlite3.Connection, name: str) -> _Recipe:
    # One row, or none for a package that package data does not have.
    latest = None
    for (version,) in select(conn, _LATEST, name=name):
        latest = version
    deprecated = [version for (version,) in select(conn, _DEPRECATED, name=name)]
    defaults = {}
    for variant, value in select(conn, _DEFAULTS, name=name):
        # The values in the order in which `readable_variant` returns them.
        defaults[variant] = tuple(sorted(value.split(",")))
    return _Recipe(latest, frozenset(deprecated), defaults)


def _first_release(lookups: Lookups) -> int | None:
    """Return the id of the first release that is not an installation; None if there is
    none.
    """
    for release in lookups.releases.values():
        if release.kind != INSTALLED:
            return release.id
    return None


def _read_uses(
    lookups: Lookups, release: int | None
) -> Mapping[str, Mapping[str, Uses]]:
    """Return how many packages use words, by kinds of words; see `Facts.uses`."""
    uses: dict[str, dict[str, Uses]] = defaultdict(dict)
    rows = select(lookups.conn, _USES, release=release)
    for facet, value, is_in_release, count in rows:
        # A compiler counts by its commonest version, and a family by its commonest
        # target: most packages have several, so sums would count packages twice.
        kind = facet
        word = value
        if facet == "compiler":
            word = value.partition("@")[0]
        elif facet == "target":
            kind = "family"
            word = lookups.families.get(value, value)
        before = uses[kind].get(word, Uses())
        if is_in_release:
            after = before._replace(in_release=max(before.in_release, count))
        else:
            after = before._replace(anywhere=max(before.anywhere, count))
        uses[kind][word] = after
    return uses


def _named_variants(conditions: Conditions) -> frozenset[str]:
    """Return the names of the variants that conditions are on."""
    names = set()
    for condition in only(conditions, "variant"):
        # A filter of the site has the text of a variant, which is not parsed.
        if isinstance(condition.value, VariantConstraint):
            names.add(condition.value.name)
            continue
        variant = readable_variant(condition.text)
        if variant is not None:
            names.add(variant.name)
    return frozenset(names)
