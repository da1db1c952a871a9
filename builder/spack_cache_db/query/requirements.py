"""The specs of a database that satisfy what an environment's `packages:` requires.

A requirement is checked for a spec and for everything that it links or runs, because Spack reuses a
binary together with these (Spack 1.2, `solver/requirements.py` and `concretize.lp`). Dependencies
that are only used to build are not checked, except the providers of `c`, `cxx` and `fortran`, if
these have requirements. Requirements of `all` are not checked for externals. `buildable: false`
excludes no binary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
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
from spack_cache_db.query.graph import RUN_TIME, read_nodes, read_run_time
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
EXTERNALS = "SELECT id FROM specs WHERE is_external"
_NONE: frozenset[int] = frozenset()
_NOTHING = Verdict(_NONE)


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement, checked for the specs of a database.

    Attributes:
        label: the requirement as it is written.
        breaking: the specs that break it, or use a provider that breaks it.
        unknown: the specs for which the database does not show it.
        named: the specs that an explanation names: those that break it, or the providers.
        option: what it asks of each package, if that is one thing.
    """

    label: str
    breaking: Set[int]
    unknown: Set[int]
    named: Set[int]
    option: SpecQuery | None = None


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
    """Return the specs of which a requirement holds.

    Args:
        requirement: the requirement.
        verdict_of: returns the specs that satisfy a query.
        every: all specs that the requirement is about.
    """
    one = two = _NOTHING
    for option in requirement.options:
        found = verdict_of(option)
        one, two = one | found, two | (one & found)
    if requirement.is_conflict:
        found = one.opposite(every)
    else:
        found = one & two.opposite(every) if requirement.is_single else one
    if requirement.when is None:
        return found
    return verdict_of(requirement.when).opposite(every) | found


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A spec breaks a requirement if it breaks it itself, or links or runs a spec that does.

    Args:
        rules: the requirements.
        roots: the packages of the environment's specs. Without dependency data, what is required of
            these is checked for these specs only, and does not make all others unknown.
    """

    def __init__(
        self, records: SpecRecords, rules: PackageRules, roots: Set[str] = frozenset()
    ) -> None:
        records = replace(records, is_run_time=True)
        run_time = records.edges.of_any_type(RUN_TIME)
        self._checks = []
        for check in _checks(records, rules, roots):
            excluded = records.edges.with_ancestors(check.breaking, run_time)
            unknown = records.edges.with_ancestors(check.unknown, run_time) - excluded
            self._checks.append((check, excluded, unknown))

    def conditions(self, ids: Set[int]) -> Conditions:
        """Return the requirements that some of these specs may break, each as a condition."""
        found = []
        for check, excluded, unknown in self._checks:
            holds = ids - excluded - unknown
            if len(holds) < len(ids):
                option = check.option if ids & check.named else None
                found.append((check.label, Verdict(holds, unknown & ids, option, check.named)))
        if len(found) > MOST_EXPLAINED:
            named = _NONE.union(*(verdict.named or () for _, verdict in found))
            whole = reduce(and_, (verdict for _, verdict in found))
            verdict = replace(whole, named=named)
            found = [(f"'packages:' ({len(found)} requirements)", verdict)]
        return tuple(Condition("specs", label, verdict) for label, verdict in found)


def _checks(records: SpecRecords, rules: PackageRules, roots: Set[str]) -> Iterator[Check]:
    for kind in (rules.required, rules.conflicts):
        for owner, requirements in kind.items():
            for requirement in requirements:
                label = label_of(owner, requirement)
                if owner == ALL:
                    yield _check_of_all(records, requirement, label, kind)
                elif owner in records.lookups.packages:
                    yield _check_of_package(records, requirement, label, owner, owner in roots)
                else:
                    yield _check_of_virtual(records, requirement, label, owner)


def _check_of_package(
    records: SpecRecords, requirement: Requirement, label: str, package: str, is_root: bool
) -> Check:
    every = _satisfying(records, SpecQuery(name=package)).holds

    def verdict_of(query: SpecQuery) -> Verdict:
        return _satisfying(records, query if query.name else replace(query, name=package))

    found = _holding_if(requirement, verdict_of, every, _names(requirement.when, package))
    breaking = every - found.holds - found.unknown
    # A package does not depend on itself.
    unrecorded = _NONE if is_root else records.unrecorded - every
    unknown = (every & found.unknown) | unrecorded
    return Check(label, breaking, unknown, breaking, _option(requirement))


def _option(requirement: Requirement) -> SpecQuery | None:
    """Return what a requirement asks, if it always asks one thing."""
    is_one = len(requirement.options) == 1 and requirement.when is None
    return requirement.options[0] if is_one and not requirement.is_conflict else None


def _names(when: SpecQuery | None, owner: str) -> bool:
    """Return whether a condition is about the package under whose name it is written."""
    return when is None or when.name in (None, owner)


def _holding_if(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    every: Set[int],
    is_seen: bool,
) -> Verdict:
    """Return where a requirement holds; if its condition is not seen, where it holds anyway."""
    if is_seen:
        return holding(requirement, verdict_of, every)
    holds = holding(replace(requirement, when=None), verdict_of, every).holds
    return Verdict(holds, every - holds)


def _check_of_all(
    records: SpecRecords,
    requirement: Requirement,
    label: str,
    kind: Mapping[str, tuple[Requirement, ...]],
) -> Check:
    """Check a requirement of `all`: it counts for specs without an entry of their own.

    An option counts only for packages that have its variants, and one with dependencies not for
    compilers and their runtimes.
    """
    names = [name for name, some in kind.items() if some and name in records.lookups.packages]
    own = (_satisfying(records, SpecQuery(name=name)).holds for name in names)
    externals = chain.from_iterable(select(records.lookups.conn, EXTERNALS))
    every = frozenset(records.every).difference(externals, *own)
    found = holding(requirement, lambda query: _satisfying(records, query), every)
    options = (_not_counting(records, option, every) for option in requirement.options)
    exempt = reduce(and_, options) if requirement.options else every
    breaking = every - found.holds - found.unknown - exempt
    unknown = (every & found.unknown) - exempt
    return Check(label, breaking, unknown, breaking, _option(requirement))


def _not_counting(records: SpecRecords, option: SpecQuery, every: Set[int]) -> Set[int]:
    """Return the specs for which an option of `all` does not count."""
    found: Set[int] = _NONE
    for variant in option.variants:
        exists = SpecQuery(variants=(VariantConstraint(variant.name, (), "multi"),))
        found |= every - _satisfying(records, exists).holds
    for name in sorted(COMPILERS | RUNTIMES) if option.dependencies else ():
        if name in records.lookups.packages:
            found |= _satisfying(records, SpecQuery(name=name)).holds
    return found


def _check_of_virtual(
    records: SpecRecords, requirement: Requirement, label: str, virtual: str
) -> Check:
    """Check a requirement on a virtual package: it counts for whatever is used as its provider.

    A virtual package has no variants, flags, compiler or dependencies, so that a `when` which asks
    for them never holds. Recipes alone have its versions, and those of other packages are not seen.
    """
    conn, edges = records.lookups.conn, records.edges
    types = edges.of_any_type(DEPTYPES if virtual in LANGUAGES else RUN_TIME)
    used = {"virtuals": json.dumps(edges.of_virtuals({virtual})), "types": json.dumps(types)}
    every = frozenset(chain.from_iterable(select(conn, USED_PROVIDERS, **used)))

    def verdict_of(query: SpecQuery) -> Verdict:
        return _satisfying(records, replace(query, name=None) if query.name == virtual else query)

    when = requirement.when or SpecQuery()
    if when.variants or when.flags or when.dependencies:
        return Check(label, _NONE, _NONE, _NONE)
    is_seen = when.versions is None and _names(requirement.when, virtual)
    found = _holding_if(requirement, verdict_of, every, is_seen)
    breaking = every - found.holds - found.unknown
    users, unknown = (
        edges.needing(some, types, frozenset({virtual})) if some else _NONE
        for some in (breaking, every & found.unknown)
    )
    if virtual in LANGUAGES:
        by_old = _breaking_old(records, requirement, virtual)
        return Check(label, users | by_old, unknown | records.unrecorded, breaking | by_old)
    unknown = unknown | records.unrecorded | records.without_virtuals
    return Check(label, users, unknown, breaking)


def _breaking_old(records: SpecRecords, requirement: Requirement, language: str) -> Set[int]:
    """Return the specs from before Spack 1.0 whose one compiler breaks a requirement."""
    old = records.with_compiler
    if not old:
        return old

    def verdict_of(query: SpecQuery) -> Verdict:
        edge = Dependency(query, direct=True, virtuals=(language,))
        return _satisfying(records, SpecQuery(dependencies=(edge,)))

    found = holding(replace(requirement, when=None), verdict_of, old)
    return old - found.holds - found.unknown


def _satisfying(records: SpecRecords, query: SpecQuery) -> Verdict:
    """Return the specs that satisfy a query, whether they are binaries or not."""
    try:
        return records.satisfying(read_query(records, query).conditions)
    except UnsupportedQuery:
        return Verdict(_NONE, records.every)


def breaking_dependencies(lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec) -> list[str]:
    """Return the dependencies of a spec that break requirements which it satisfies itself."""
    groups = [verdict.named or _NONE for verdict in verdicts]
    named = _NONE.union(*(specs for specs in groups if spec.id not in specs))
    nodes = read_nodes(lookups.conn, read_run_time(lookups, [spec.id]).edges) if named else {}
    return sorted(f"{nodes[key].package}@{nodes[key].version}" for key in named & nodes.keys())
