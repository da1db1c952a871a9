"""Finds the specs of a database that meet the requirements of an environment's `packages:`.

A requirement is checked for a spec and its run-time dependencies, because Spack reuses a binary
together with these (Spack 1.2, `solver/requirements.py` and `concretize.lp`). Build dependencies
are not checked, except providers of `c`, `cxx` and `fortran`. Requirements of `all` are not checked
for externals, and `buildable: false` excludes no binary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import and_

from spack_cache_db.environments import ALL, PackageRules, Requirement
from spack_cache_db.query.conditions import (
    COMPILERS,
    Condition,
    Conditions,
    UnsupportedQuery,
    Verdict,
)
from spack_cache_db.query.configurations import Spec
from spack_cache_db.query.database import Lookups, select
from spack_cache_db.query.graph import RUN_TIME, externals, read_nodes, read_run_time
from spack_cache_db.query.records import SpecRecords, read_query
from spack_cache_db.spack.constraints import (
    DEPTYPES,
    Dependency,
    SpecQuery,
    VariantConstraint,
    spec_text,
)
from spack_cache_db.spack.normal_forms import LANGUAGES

RUNTIMES = frozenset({"compiler-wrapper", "gcc-runtime", "glibc", "intel-oneapi-runtime", "musl"})
"""The packages with the tag `runtime`; `all` cannot require dependencies of them and compilers."""

MOST_EXPLAINED = 6
"""Maximum of requirements on one package that are explained one by one."""

MOST_NAMED = 3
USED_PROVIDERS = """
SELECT DISTINCT dependency FROM dependencies
WHERE virtuals IN (SELECT value FROM json_each(:virtuals))
  AND types IN (SELECT value FROM json_each(:types))
"""
_NONE: frozenset[int] = frozenset()

_Broken = tuple[Set[int], Set[int], Set[int]]
"""The specs that break a requirement or use a provider that does, those for which this is unknown,
and those that an explanation names."""


def label_of(owner: str, requirement: Requirement) -> str:
    """Return a requirement as it is written in `packages:`, on one line."""
    texts = [spec_text(option) for option in requirement.options[:MOST_NAMED]]
    texts += ["…"] if len(requirement.options) > MOST_NAMED else []
    group = "" if len(texts) < 2 else "one_of " if requirement.is_single else "any_of "
    when = f" when {spec_text(requirement.when)}" if requirement.when else ""
    key = "conflict" if requirement.is_conflict else "require"
    return f"'packages: {owner}: {key}: {group}{', '.join(texts)}{when}'"


def holding(
    requirement: Requirement, verdict_of: Callable[[SpecQuery], Verdict], all_specs: Set[int]
) -> Verdict:
    """Return the verdict on all specs for a requirement."""
    one = two = Verdict(_NONE)
    for option in requirement.options:
        verdict = verdict_of(option)
        one, two = one | verdict, two | (one & verdict)
    if requirement.is_conflict:
        verdict = one.opposite(all_specs)
    else:
        verdict = one & two.opposite(all_specs) if requirement.is_single else one
    return (
        verdict
        if requirement.when is None
        else verdict_of(requirement.when).opposite(all_specs) | verdict
    )


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A spec breaks a requirement if it or a run-time dependency does.

    Args:
        records: the records of the database.
        rules: the requirements.
        roots: the packages of the environment's specs. Without dependency data, requirements on
            these are checked for their own specs, and do not make all others unknown.
    """

    def __init__(
        self, records: SpecRecords, rules: PackageRules, roots: Set[str] = frozenset()
    ) -> None:
        self._records = records = replace(records, is_run_time=True)
        self._roots = roots
        run_time, with_users = records.edges.of_any_type(RUN_TIME), records.edges.with_ancestors
        self._checks = []
        for kind in (rules.required, rules.conflicts):
            # `all` applies to packages without an entry.
            packages = [name for name in kind if kind[name] and name in records.lookups.packages]
            pairs = ((owner, requirement) for owner in kind for requirement in kind[owner])
            for owner, requirement in pairs:
                breaking, unknown, named = self._broken(owner, requirement, packages)
                excluded = with_users(breaking, run_time)
                unknown = with_users(unknown, run_time) - excluded
                is_one = len(requirement.options) == 1 and requirement.when is None
                option = requirement.options[0] if is_one and not requirement.is_conflict else None
                label = label_of(owner, requirement)
                self._checks.append((label, option, named, excluded, unknown))

    def conditions(self, ids: Set[int]) -> Conditions:
        """Return the requirements that one of the specs may break, as conditions."""
        verdicts = []
        for label, option, named, excluded, unknown in self._checks:
            holds = ids - excluded - unknown
            if len(holds) < len(ids):
                query = option if ids & named else None
                verdicts.append((label, Verdict(holds, unknown & ids, query, named)))
        if len(verdicts) > MOST_EXPLAINED:
            named = _NONE.union(*(verdict.named or () for _, verdict in verdicts))
            combined = reduce(and_, (verdict for _, verdict in verdicts))
            verdicts = [
                (f"'packages:' ({len(verdicts)} requirements)", replace(combined, named=named))
            ]
        return tuple(Condition("specs", label, verdict) for label, verdict in verdicts)

    def _broken(self, owner: str, requirement: Requirement, packages: list[str]) -> _Broken:
        if owner == ALL:
            return self._of_all(requirement, packages)
        when = requirement.when or SpecQuery()
        # Conditions on other packages cannot be checked.
        is_seen = when.name in (None, owner)
        if owner not in self._records.lookups.packages:
            return self._of_virtual(requirement, owner, is_seen and when.versions is None)
        specs = self._of(owner)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(query if query.name else replace(query, name=owner))

        breaking, unknown = _breaking(requirement, verdict_of, specs, is_seen)
        # A package does not depend on itself.
        unrecorded = _NONE if owner in self._roots else self._records.unrecorded - specs
        return breaking, unknown | unrecorded, breaking

    def _of_all(self, requirement: Requirement, packages: list[str]) -> _Broken:
        """Check a requirement of `all`.

        An option applies only to packages that have its variants; one with dependencies does not
        apply to compilers and their runtimes.
        """
        provided = externals(self._records.lookups)
        specs = frozenset(self._records.every).difference(provided, *map(self._of, packages))
        exempt: Set[int] = specs
        for option in requirement.options:
            not_counting: Set[int] = _NONE
            for variant in option.variants:
                exists = SpecQuery(variants=(VariantConstraint(variant.name, (), "multi"),))
                not_counting |= specs - self._satisfying(exists).holds
            for name in COMPILERS | RUNTIMES if option.dependencies else ():
                not_counting |= self._of(name)
            exempt = exempt & not_counting
        breaking, unknown = _breaking(requirement, self._satisfying, specs, is_seen=True)
        return breaking - exempt, unknown - exempt, breaking - exempt

    def _of_virtual(self, requirement: Requirement, virtual: str, is_seen: bool) -> _Broken:
        """Check a requirement on a virtual package: it applies to the providers in use.

        A virtual package has no variants, flags, compiler or dependencies: a `when` with one of
        them never holds. Only recipes have its versions.
        """
        when, records, edges = requirement.when, self._records, self._records.edges
        if when and (when.variants or when.flags or when.dependencies):
            return _NONE, _NONE, _NONE
        types = edges.of_any_type(DEPTYPES if virtual in LANGUAGES else RUN_TIME)
        used = {"virtuals": json.dumps(edges.of_virtuals({virtual})), "types": json.dumps(types)}
        providers = frozenset(
            chain.from_iterable(select(records.lookups.conn, USED_PROVIDERS, **used))
        )

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(replace(query, name=None) if query.name == virtual else query)

        def of_compiler(query: SpecQuery) -> Verdict:
            edge = Dependency(query, direct=True, virtuals=(virtual,))
            return self._satisfying(SpecQuery(dependencies=(edge,)))

        broken = _breaking(requirement, verdict_of, providers, is_seen)
        users, unknown = (
            edges.needing(specs, types, frozenset({virtual})) if specs else _NONE
            for specs in broken
        )
        if virtual not in LANGUAGES:
            return users, unknown | records.unrecorded | records.without_virtuals, broken[0]
        # Specs from before Spack 1.0 have one compiler.
        old, _ = _breaking(
            replace(requirement, when=None), of_compiler, records.with_compiler, True
        )
        return users | old, unknown | records.unrecorded, broken[0] | old

    def _of(self, package: str) -> Set[int]:
        if package not in self._records.lookups.packages:
            return _NONE
        return self._satisfying(SpecQuery(name=package)).holds

    def _satisfying(self, query: SpecQuery) -> Verdict:
        """Return the verdict on all specs, binaries or not, for a query."""
        try:
            return self._records.satisfying(read_query(self._records, query).conditions)
        except UnsupportedQuery:
            return Verdict(_NONE, self._records.every)


def _breaking(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    specs: Set[int],
    is_seen: bool,
) -> tuple[Set[int], Set[int]]:
    """Return the specs that break a requirement, and those for which this is unknown.

    If its condition cannot be checked, specs that do not meet it are unknown.
    """
    if is_seen:
        verdict = holding(requirement, verdict_of, specs)
        return specs - verdict.holds - verdict.unknown, specs & verdict.unknown
    return _NONE, specs - holding(replace(requirement, when=None), verdict_of, specs).holds


def breaking_dependencies(lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec) -> list[str]:
    """Return the dependencies of a spec that break requirements which the spec itself meets."""
    groups = [verdict.named or _NONE for verdict in verdicts]
    named = _NONE.union(*(specs for specs in groups if spec.id not in specs))
    nodes = read_nodes(lookups.conn, read_run_time(lookups, [spec.id]).edges) if named else {}
    return sorted(f"{nodes[key].package}@{nodes[key].version}" for key in named & nodes.keys())
