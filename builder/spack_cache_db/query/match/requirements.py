"""Checks the dependencies of binaries against requirements on packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from spack_cache_db.environments.rules import ALL, PackageRules, Requirement
from spack_cache_db.query.conditions.conditions import Condition, Conditions, Verdict
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import read_query, respelled
from spack_cache_db.query.match.records import NONE, SpecRecords
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_ids
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.spack.facts import COMPILERS, DEPTYPES, LANGUAGES, RUNTIMES
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint

MOST_EXPLAINED = 6
"""Maximum of requirements on one package that are explained one by one."""
MOST_NAMED = 3
USED_PROVIDERS = """
SELECT DISTINCT dependency FROM dependencies
WHERE virtuals IN (SELECT value FROM json_each(:virtuals))
  AND types IN (SELECT value FROM json_each(:types))
"""
_Broken = tuple[Set[int], Set[int], Set[int]]
"""The specs that break a requirement or use a provider that does, those for which this
is unknown, and those that an explanation names.
"""


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A requirement, conflict or preference (`prefer`) applies to a spec and its run-time
    dependencies, because Spack reuses a binary together with these (Spack 1.2,
    `solver/requirements.py` and `concretize.lp`). Build dependencies are not checked,
    except providers of `c`, `cxx` and `fortran`. Requirements of `all` are not checked
    for externals, and `buildable: false` excludes no binary. Without dependency data,
    requirements on the packages `roots` are checked for their own specs, and do not
    make all others unknown.
    """

    def __init__(
        self, records: SpecRecords, rules: PackageRules, roots: Set[str]
    ) -> None:
        self._records = records = replace(records, is_run_time=True)
        self._roots = roots
        self._checks: list[_Check] = []
        run_time, with_users = records.edges.run_time, records.edges.with_ancestors
        for kind in (rules.required, rules.conflicts, rules.preferred):
            # `all` applies to packages without an entry.
            packages = [
                name for name in kind if kind[name] and name in records.lookups.packages
            ]
            pairs = (
                (owner, requirement) for owner in kind for requirement in kind[owner]
            )
            for owner, requirement in pairs:
                breaking, unknown, named = self._broken(owner, requirement, packages)
                excluded = with_users(breaking, run_time)
                unknown = with_users(unknown, run_time) - excluded
                self._checks.append(
                    _Check(owner, requirement, named, excluded, unknown)
                )

    def dropped_for(self, query: SpecQuery) -> frozenset[Requirement]:
        """Return the preferences that a spec contradicts, which Spack drops for it."""
        return frozenset(
            check.requirement
            for check in self._checks
            if check.requirement.is_preferred and _contradicts(query, check)
        )

    def conditions(
        self, ids: Set[int], dropped: Set[Requirement] = frozenset()
    ) -> Conditions:
        """Return the requirements that one of the specs may break, as conditions.

        Args:
            ids: the specs, which are those of one package.
            dropped: preferences that do not count (`dropped_for`).
        """
        verdicts = []
        for check in self._checks:
            if check.requirement in dropped:
                continue
            holds = ids - check.excluded - check.unknown
            if len(holds) < len(ids):
                query = check.option if ids & check.named else None
                verdict = Verdict(holds, check.unknown & ids, query, check.named)
                verdicts.append((check.label, verdict))
        if len(verdicts) > MOST_EXPLAINED:
            label = f"'packages:' ({len(verdicts)} requirements)"
            named = NONE.union(*(verdict.named or () for _, verdict in verdicts))
            combined = reduce(and_, (verdict for _, verdict in verdicts))
            verdicts = [(label, replace(combined, named=named))]
        return tuple(Condition("specs", label, verdict) for label, verdict in verdicts)

    def _broken(
        self, owner: str, requirement: Requirement, packages: list[str]
    ) -> _Broken:
        if owner == ALL:
            return self._of_all(requirement, packages)
        when = requirement.when or SpecQuery()
        # Conditions on other packages cannot be checked.
        is_seen = when.name in (None, owner)
        if owner not in self._records.lookups.packages:
            return self._of_virtual(
                requirement, owner, is_seen and when.versions is None
            )
        specs = self._of(owner)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(query if query.name else replace(query, name=owner))

        breaking, unknown = _breaking(requirement, verdict_of, specs, is_seen)
        # A package does not depend on itself.
        unrecorded = NONE if owner in self._roots else self._records.unrecorded - specs
        return breaking, unknown | unrecorded, breaking

    def _of_all(self, requirement: Requirement, packages: list[str]) -> _Broken:
        """Check a requirement of `all`.

        An option applies only to packages that have its variants; one with dependencies
        does not apply to compilers and their runtimes.
        """
        provided = graph.externals(self._records.lookups)
        specs = self._records.every - provided.union(*map(self._of, packages))
        exempt: Set[int] = specs
        for option in requirement.options:
            not_counting: Set[int] = NONE
            for variant in option.variants:
                exists = SpecQuery(
                    variants=(VariantConstraint(variant.name, (), "multi"),)
                )
                not_counting |= specs - self._satisfying(exists).holds
            for name in COMPILERS | RUNTIMES if option.dependencies else ():
                not_counting |= self._of(name)
            exempt = exempt & not_counting
        breaking, unknown = _breaking(requirement, self._satisfying, specs)
        return breaking - exempt, unknown - exempt, breaking - exempt

    def _of_virtual(
        self, requirement: Requirement, virtual: str, is_seen: bool
    ) -> _Broken:
        """Check a requirement on a virtual package: it applies to the providers in use.

        A virtual package has no variants, flags, compiler or dependencies: a `when`
        with one of them never holds. Only recipes have its versions.
        """
        when, records, edges = requirement.when, self._records, self._records.edges
        if when and (when.variants or when.flags or when.dependencies):
            return NONE, NONE, NONE
        types = edges.of_any_type(DEPTYPES) if virtual in LANGUAGES else edges.run_time
        used = {
            "virtuals": json.dumps(edges.of_virtuals({virtual})),
            "types": json.dumps(types),
        }
        providers = select_ids(records.lookups.conn, USED_PROVIDERS, None, **used)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(
                replace(query, name=None) if query.name == virtual else query
            )

        def of_compiler(query: SpecQuery) -> Verdict:
            edge = Dependency(query, direct=True, virtuals=(virtual,))
            return self._satisfying(SpecQuery(dependencies=(edge,)))

        broken = _breaking(requirement, verdict_of, providers, is_seen)
        users, unknown = (
            edges.needing(specs, types, frozenset({virtual})) if specs else NONE
            for specs in broken
        )
        if virtual not in LANGUAGES:
            return (
                users,
                unknown | records.unrecorded | records.without_virtuals,
                broken[0],
            )
        # Specs from before Spack 1.0 have one compiler.
        requirement = replace(requirement, when=None)
        old, _ = _breaking(requirement, of_compiler, records.with_compiler)
        return users | old, unknown | records.unrecorded, broken[0] | old

    def _of(self, package: str) -> Set[int]:
        if package not in self._records.lookups.packages:
            return NONE
        return self._satisfying(SpecQuery(name=package)).holds

    def _satisfying(self, query: SpecQuery) -> Verdict:
        """Return the verdict on all specs, binaries or not, for a query."""
        try:
            query, _ = respelled(self._records.lookups, query)
            return self._records.satisfying(read_query(self._records, query).conditions)
        except UnsupportedQuery:
            return Verdict(NONE, self._records.every)


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """A requirement on a package, a virtual package or `all`, checked for all specs.

    Attributes:
        named: the specs that an explanation names.
        excluded: the specs that break it, or link or run one that does.
        unknown: the specs for which this is unknown.
    """

    owner: str
    requirement: Requirement
    named: Set[int]
    excluded: Set[int]
    unknown: Set[int]

    @property
    def option(self) -> SpecQuery | None:
        """The only option of the requirement, if it has one and no condition."""
        requirement = self.requirement
        if len(requirement.options) != 1 or requirement.when is not None:
            return None
        return None if requirement.is_conflict else requirement.options[0]

    @property
    def label(self) -> str:
        """The requirement as it is written in `packages:`."""
        return _label(self.owner, self.requirement)


def _contradicts(query: SpecQuery, check: _Check) -> bool:
    """Return whether a spec, or its constraint on a dependency, contradicts all
    options.
    """
    named = [query] if check.owner in (query.name, ALL) else []
    named += [edge.node for edge in query.dependencies if edge.node.name == check.owner]
    return any(
        not any(_intersects(node, option) for option in check.requirement.options)
        for node in named
    )


def _intersects(node: SpecQuery, option: SpecQuery) -> bool:
    try:
        constrained(replace(node, name=option.name and node.name), option)
    except UnsatisfiableSpec:
        return False
    return True


def _label(owner: str, requirement: Requirement) -> str:
    """Return a requirement as it is written in `packages:`, on one line."""
    texts = [spec_text(option) for option in requirement.options[:MOST_NAMED]]
    texts += ["…"] if len(requirement.options) > MOST_NAMED else []
    group = "" if len(texts) < 2 else "one_of " if requirement.is_single else "any_of "
    when = f" when {spec_text(requirement.when)}" if requirement.when else ""
    key = "require"
    if requirement.is_conflict:
        key = "conflict"
    elif requirement.is_preferred:
        key = "prefer"
    return f"'packages: {owner}: {key}: {group}{', '.join(texts)}{when}'"


def _breaking(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    specs: Set[int],
    is_seen: bool = True,
) -> tuple[Set[int], Set[int]]:
    """Return the specs that break a requirement, and those for which this is unknown.

    If its condition cannot be checked (`is_seen`), specs that do not meet it are
    unknown.
    """
    any_met = two_met = Verdict(NONE)
    for verdict in map(verdict_of, requirement.options):
        any_met, two_met = any_met | verdict, two_met | (any_met & verdict)
    meets = any_met & two_met.opposite(specs) if requirement.is_single else any_met
    if requirement.is_conflict:
        meets = any_met.opposite(specs)
    if not is_seen:
        return NONE, specs - meets.holds
    if requirement.when is not None:
        meets = verdict_of(requirement.when).opposite(specs) | meets
    return specs - meets.holds - meets.unknown, specs & meets.unknown


def breaking_dependencies(
    lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec
) -> list[str]:
    """Return the dependencies of a spec that break requirements which the spec itself
    meets.
    """
    groups = [verdict.named or NONE for verdict in verdicts]
    named = NONE.union(*(specs for specs in groups if spec.id not in specs))
    needs = graph.read_run_time(lookups, [spec.id] if named else [])
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    return sorted(
        f"{nodes[key].package}@{nodes[key].version}" for key in named & nodes.keys()
    )
