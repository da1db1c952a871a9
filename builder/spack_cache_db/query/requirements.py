"""The specs of a database that satisfy what an environment's `packages:` requires.

A requirement is checked for a spec and for everything that it links or runs, because Spack reuses a
binary together with these (Spack 1.2, `solver/requirements.py` and `concretize.lp`). Dependencies
that are only used to build are not checked, except the providers of `c`, `cxx` and `fortran`, if
these have requirements. Requirements of `all` are not checked for externals. `buildable: false`
excludes no binary.
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
"""The packages with the tag `runtime`; like compilers, they ignore dependencies that `all` asks."""

MOST_EXPLAINED = 6
"""Requirements that exclude specs of one package and are explained one by one."""

MOST_NAMED = 3
USED_PROVIDERS = """
SELECT DISTINCT dependency FROM dependencies
WHERE virtuals IN (SELECT value FROM json_each(:virtuals))
  AND types IN (SELECT value FROM json_each(:types))
"""
_NONE: frozenset[int] = frozenset()


_Broken = tuple[Set[int], Set[int], Set[int]]
"""The specs that break a requirement or use a provider that does, those for which the database does
not show it, and those that an explanation names."""


def label_of(owner: str, requirement: Requirement) -> str:
    """Return a requirement in the words of `packages:`, on one line."""
    texts = [spec_text(option) for option in requirement.options[:MOST_NAMED]]
    texts += ["…"] if len(requirement.options) > MOST_NAMED else []
    group = "" if len(texts) < 2 else "one_of " if requirement.is_single else "any_of "
    when = f" when {spec_text(requirement.when)}" if requirement.when else ""
    key = "conflict" if requirement.is_conflict else "require"
    return f"'packages: {owner}: {key}: {group}{', '.join(texts)}{when}'"


def holding(
    requirement: Requirement, verdict_of: Callable[[SpecQuery], Verdict], every: Set[int]
) -> Verdict:
    """Return those of `every` spec that satisfy a requirement."""
    one = two = Verdict(_NONE)
    for option in requirement.options:
        found = verdict_of(option)
        one, two = one | found, two | (one & found)
    if requirement.is_conflict:
        found = one.opposite(every)
    else:
        found = one & two.opposite(every) if requirement.is_single else one
    return (
        found if requirement.when is None else verdict_of(requirement.when).opposite(every) | found
    )


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A spec breaks a requirement if it breaks it itself, or links or runs a spec that does.

    Args:
        records: the records of the database.
        rules: the requirements.
        roots: the packages of the environment's specs. Without dependency data, what is required of
            these is checked for these specs only, and does not make all others unknown.
    """

    def __init__(
        self, records: SpecRecords, rules: PackageRules, roots: Set[str] = frozenset()
    ) -> None:
        self._records = records = replace(records, is_run_time=True)
        self._roots = roots
        run_time, with_users = records.edges.of_any_type(RUN_TIME), records.edges.with_ancestors
        self._checks = []
        for kind in (rules.required, rules.conflicts):
            # `all` counts for specs without an entry of their own.
            own = [name for name, some in kind.items() if some and name in records.lookups.packages]
            for owner, requirement in ((name, each) for name in kind for each in kind[name]):
                breaking, unknown, named = self._broken(owner, requirement, own)
                excluded = with_users(breaking, run_time)
                unknown = with_users(unknown, run_time) - excluded
                is_one = len(requirement.options) == 1 and requirement.when is None
                option = requirement.options[0] if is_one and not requirement.is_conflict else None
                label = label_of(owner, requirement)
                self._checks.append((label, option, named, excluded, unknown))

    def conditions(self, ids: Set[int]) -> Conditions:
        """Return the requirements that some of these specs may break, each as a condition."""
        found = []
        for label, option, named, excluded, unknown in self._checks:
            holds = ids - excluded - unknown
            if len(holds) < len(ids):
                asks = option if ids & named else None
                found.append((label, Verdict(holds, unknown & ids, asks, named)))
        if len(found) > MOST_EXPLAINED:
            named = _NONE.union(*(verdict.named or () for _, verdict in found))
            whole = reduce(and_, (verdict for _, verdict in found))
            found = [(f"'packages:' ({len(found)} requirements)", replace(whole, named=named))]
        return tuple(Condition("specs", label, verdict) for label, verdict in found)

    def _broken(self, owner: str, requirement: Requirement, own: list[str]) -> _Broken:
        if owner == ALL:
            return self._of_all(requirement, own)
        when = requirement.when or SpecQuery()
        # Conditions on other packages are not seen.
        is_seen = when.name in (None, owner)
        if owner not in self._records.lookups.packages:
            return self._of_virtual(requirement, owner, is_seen and when.versions is None)
        every = self._of(owner)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(query if query.name else replace(query, name=owner))

        breaking, unknown = _breaking(requirement, verdict_of, every, is_seen)
        # A package does not depend on itself.
        unrecorded = _NONE if owner in self._roots else self._records.unrecorded - every
        return breaking, unknown | unrecorded, breaking

    def _of_all(self, requirement: Requirement, own: list[str]) -> _Broken:
        """Check a requirement of `all`.

        An option counts only for packages that have its variants, and one with dependencies not for
        compilers and their runtimes.
        """
        provided = externals(self._records.lookups)
        every = frozenset(self._records.every).difference(provided, *map(self._of, own))
        exempt: Set[int] = every
        for option in requirement.options:
            not_counting: Set[int] = _NONE
            for variant in option.variants:
                exists = SpecQuery(variants=(VariantConstraint(variant.name, (), "multi"),))
                not_counting |= every - self._satisfying(exists).holds
            for name in COMPILERS | RUNTIMES if option.dependencies else ():
                not_counting |= self._of(name)
            exempt = exempt & not_counting
        breaking, unknown = _breaking(requirement, self._satisfying, every, is_seen=True)
        return breaking - exempt, unknown - exempt, breaking - exempt

    def _of_virtual(self, requirement: Requirement, virtual: str, is_seen: bool) -> _Broken:
        """Check a requirement on a virtual package: it counts for whatever is used as its provider.

        A virtual package has no variants, flags, compiler or dependencies, so that a `when` which
        asks for them never holds. Recipes alone have its versions.
        """
        when, records, edges = requirement.when, self._records, self._records.edges
        if when and (when.variants or when.flags or when.dependencies):
            return _NONE, _NONE, _NONE
        types = edges.of_any_type(DEPTYPES if virtual in LANGUAGES else RUN_TIME)
        used = {"virtuals": json.dumps(edges.of_virtuals({virtual})), "types": json.dumps(types)}
        every = frozenset(chain.from_iterable(select(records.lookups.conn, USED_PROVIDERS, **used)))

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(replace(query, name=None) if query.name == virtual else query)

        def of_compiler(query: SpecQuery) -> Verdict:
            edge = Dependency(query, direct=True, virtuals=(virtual,))
            return self._satisfying(SpecQuery(dependencies=(edge,)))

        broken = _breaking(requirement, verdict_of, every, is_seen)
        users, unknown = (
            edges.needing(some, types, frozenset({virtual})) if some else _NONE for some in broken
        )
        if virtual not in LANGUAGES:
            return users, unknown | records.unrecorded | records.without_virtuals, broken[0]
        # Specs from before Spack 1.0 name one compiler.
        old, _ = _breaking(
            replace(requirement, when=None), of_compiler, records.with_compiler, True
        )
        return users | old, unknown | records.unrecorded, broken[0] | old

    def _of(self, package: str) -> Set[int]:
        """Return the specs of a package."""
        if package not in self._records.lookups.packages:
            return _NONE
        return self._satisfying(SpecQuery(name=package)).holds

    def _satisfying(self, query: SpecQuery) -> Verdict:
        """Return the specs that satisfy a query, whether they are binaries or not."""
        try:
            return self._records.satisfying(read_query(self._records, query).conditions)
        except UnsupportedQuery:
            return Verdict(_NONE, self._records.every)


def _breaking(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    every: Set[int],
    is_seen: bool,
) -> tuple[Set[int], Set[int]]:
    """Return the specs that break a requirement, and those for which this is unknown.

    If its condition is not seen, no spec breaks it, and it holds only where it holds anyway.
    """
    if is_seen:
        found = holding(requirement, verdict_of, every)
        return every - found.holds - found.unknown, every & found.unknown
    return _NONE, every - holding(replace(requirement, when=None), verdict_of, every).holds


def breaking_dependencies(lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec) -> list[str]:
    """Return the dependencies of a spec that break requirements which it satisfies itself."""
    groups = [verdict.named or _NONE for verdict in verdicts]
    named = _NONE.union(*(specs for specs in groups if spec.id not in specs))
    nodes = read_nodes(lookups.conn, read_run_time(lookups, [spec.id]).edges) if named else {}
    return sorted(f"{nodes[key].package}@{nodes[key].version}" for key in named & nodes.keys())
