"""Checks binaries and their dependencies against the requirements of `packages:`.

With `packages: {zlib-ng: {require: '@2.2.4'}}`, Spack does not reuse a binary of `hdf5`
that links `zlib-ng@2.2.5`. Each requirement is checked once for all specs of a
database: first for the specs of its own package, and then for all that link or run
them. An answer is the ids of the specs that break it, and of those for which this is
unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from spack_cache_db.environments.rules import ALL, PackageRules, Requirement
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    Verdict,
    all_of,
)
from spack_cache_db.query.match.question import verdict_on
from spack_cache_db.query.match.recorded import NONE
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_ids
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import Spec
from spack_cache_db.spack.facts import COMPILERS, DEPTYPES, LANGUAGES, RUNTIMES
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Dependency, SpecQuery, VariantConstraint

MOST_EXPLAINED = 6
"""Maximum of requirements that the specs of a package break, each with a condition of
its own.
"""
MOST_NAMED = 3
"""Maximum of options that a label names."""
USED_PROVIDERS = """
SELECT DISTINCT dependency_id FROM dependencies
WHERE dependency_virtual_id IN (SELECT value FROM json_each(:virtuals))
  AND dependency_type_id IN (SELECT value FROM json_each(:types))
"""
"""The specs to which edges with some sets of virtual packages and types lead."""


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A requirement, conflict or preference (`prefer`) applies to a spec and its run-time
    dependencies, because Spack reuses a binary together with these (Spack 1.2,
    `solver/requirements.py` and `concretize.lp`). Build dependencies are not checked,
    except providers of `c`, `cxx` and `fortran`. Requirements of `all` are not checked
    for externals, and `buildable: false` excludes no binary. Without dependency data,
    requirements on the packages `roots` are checked for their own specs, and do not
    make all others unknown.

    Args:
        records: the records of all packages.
        rules: the requirements.
        roots: the packages of the environment's specs.
    """

    def __init__(
        self, records: SpecRecords, rules: PackageRules, roots: Set[str]
    ) -> None:
        self._records = replace(records, is_run_time=True)
        self._roots = roots
        self._checks = list(self._all_checks(rules))

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

        Returns:
            A condition for each of these requirements, or one for too many of them.
        """
        conditions = []
        verdicts = []
        for check in self._checks:
            if check.requirement in dropped:
                continue
            satisfying = ids - check.excluded - check.unknown
            if len(satisfying) == len(ids):
                continue
            # An explanation compares a spec with the requirement, if the spec itself
            # breaks it, and not only a dependency of it.
            breaks_it_itself = not ids.isdisjoint(check.named)
            query = check.option if breaks_it_itself else None
            verdict = Verdict(satisfying, check.unknown & ids, query, check.named)
            verdicts.append(verdict)
            conditions.append(Condition("specs", check.label, verdict))
        if len(conditions) <= MOST_EXPLAINED:
            return tuple(conditions)

        # Too many for an explanation of each: they become one condition.
        label = f"'packages:' ({len(conditions)} requirements)"
        named: set[int] = set()
        for verdict in verdicts:
            named.update(verdict.named or NONE)
        combined = replace(all_of(verdicts), named=named)
        return (Condition("specs", label, combined),)

    def _all_checks(self, rules: PackageRules) -> Iterator[_Check]:
        """Check all requirements, then conflicts, then preferences."""
        edges = self._records.edges
        known_packages = self._records.lookups.packages
        for requirements in (rules.required, rules.conflicts, rules.preferred):
            # `all` applies only to packages without requirements of their own.
            with_entry = [
                name
                for name in requirements
                if requirements[name] and name in known_packages
            ]
            for owner, requirements_of_owner in requirements.items():
                for requirement in requirements_of_owner:
                    broken = self._broken(owner, requirement, with_entry)
                    # A spec that links or runs such a spec breaks it too.
                    excluded = edges.with_ancestors(broken.specs, edges.run_time)
                    unknown = edges.with_ancestors(broken.unknown, edges.run_time)
                    yield _Check(
                        owner, requirement, broken.named, excluded, unknown - excluded
                    )

    def _broken(
        self, owner: str, requirement: Requirement, with_entry: list[str]
    ) -> _Broken:
        """Return the specs that break a requirement of a package, a virtual package or
        `all`.
        """
        if owner == ALL:
            return self._of_all(requirement, with_entry)
        if owner not in self._records.lookups.packages:
            return self._of_virtual(requirement, owner)
        return self._of_package(requirement, owner)

    def _of_package(self, requirement: Requirement, package: str) -> _Broken:
        """Check a requirement on a package of the database."""

        def verdict_of(query: SpecQuery) -> Verdict:
            # An option without a name, such as `+mpi`, is about the package itself.
            named = query if query.name else replace(query, name=package)
            return self._satisfying(named)

        # A condition (`when`) on another package cannot be checked.
        when = requirement.when
        is_checkable = when is None or when.name in (None, package)
        specs = self._specs_of(package)
        breaking, unknown = _breaking(requirement, verdict_of, specs, is_checkable)
        # Specs of other packages may use it, if their dependencies are not known.
        if package not in self._roots:
            unknown = unknown | (self._records.unrecorded - specs)
        return _Broken(breaking, unknown, named=breaking)

    def _of_all(self, requirement: Requirement, with_entry: list[str]) -> _Broken:
        """Check a requirement of `all`.

        It is not about externals, and not about packages with requirements of their own
        (`with_entry`).
        """
        specs = self._records.every - graph.externals(self._records.lookups)
        for package in with_entry:
            specs = specs - self._specs_of(package)

        # Specs to which no option applies do not break it.
        exempt = specs
        for option in requirement.options:
            exempt = exempt & self._exempt_from(option, specs)
        breaking, unknown = _breaking(requirement, self._satisfying, specs)
        breaking = breaking - exempt
        return _Broken(breaking, unknown - exempt, named=breaking)

    def _exempt_from(self, option: SpecQuery, specs: Set[int]) -> Set[int]:
        """Return the specs to which an option of `all` does not apply.

        It applies only to packages that have its variants; if it has dependencies, it
        does not apply to compilers and their runtimes.
        """
        exempt: Set[int] = NONE
        for variant in option.variants:
            # `mpi=*`
            any_value = VariantConstraint(variant.name, (), "multi")
            with_variant = self._satisfying(SpecQuery(variants=(any_value,)))
            exempt = exempt | (specs - with_variant.matching)
        if option.dependencies:
            for name in COMPILERS | RUNTIMES:
                exempt = exempt | self._specs_of(name)
        return exempt

    def _of_virtual(self, requirement: Requirement, virtual: str) -> _Broken:
        """Check a requirement on a virtual package: it applies to the providers in use.

        A virtual package has no variants, flags, compiler or dependencies: a `when`
        with one of them never holds. Only recipes have its versions.
        """
        when = requirement.when
        is_checkable = True
        if when is not None:
            if when.variants or when.flags or when.dependencies:
                return _Broken(NONE, NONE, NONE)
            is_checkable = when.name in (None, virtual) and when.versions is None

        def verdict_of(query: SpecQuery) -> Verdict:
            # `mpi target=zen3` is about the provider, whatever its name.
            if query.name == virtual:
                query = replace(query, name=None)
            return self._satisfying(query)

        # Find the providers that break it, and the specs that use one of these. A
        # compiler counts even if it is used for the build only.
        records = self._records
        edges = records.edges
        types = edges.run_time
        if virtual in LANGUAGES:
            types = edges.of_any_type(DEPTYPES)
        providers = self._providers_in_use(virtual, types)
        breaking, unknown = _breaking(requirement, verdict_of, providers, is_checkable)
        users = self._users(breaking, virtual, types)
        unknown_users = self._users(unknown, virtual, types)
        # Specs whose providers are not known may use one as well.
        unknown_users = unknown_users | records.unrecorded
        if virtual not in LANGUAGES:
            unknown_users = unknown_users | records.without_virtuals
            return _Broken(users, unknown_users, named=breaking)
        old = self._with_old_compiler(requirement, virtual)
        return _Broken(users | old, unknown_users, named=breaking | old)

    def _with_old_compiler(self, requirement: Requirement, language: str) -> Set[int]:
        """Return the specs from before Spack 1.0 whose compiler breaks a requirement.

        They have one compiler, and no edge to it. A condition (`when`) cannot be
        checked for it.
        """

        def verdict_of_users(query: SpecQuery) -> Verdict:
            # `%c=gcc@13`
            edge = Dependency(query, direct=True, virtuals=(language,))
            return self._satisfying(SpecQuery(dependencies=(edge,)))

        unconditional = replace(requirement, when=None)
        specs = self._records.with_compiler
        return _breaking(unconditional, verdict_of_users, specs).specs

    def _providers_in_use(self, virtual: str, types: Sequence[int]) -> Set[int]:
        """Return the specs that provide a virtual package for another spec.

        Args:
            virtual: the virtual package.
            types: the ids of the sets of types that the edge between them may have.
        """
        records = self._records
        virtuals = records.edges.of_virtuals({virtual})
        parameters = {"virtuals": json.dumps(virtuals), "types": json.dumps(types)}
        return select_ids(records.lookups.conn, USED_PROVIDERS, None, **parameters)

    def _users(
        self, providers: Set[int], virtual: str, types: Sequence[int]
    ) -> Set[int]:
        """Return the specs for which one of the providers provides the virtual package,
        with an edge of these types.
        """
        if not providers:
            return NONE
        return self._records.edges.needing(providers, types, frozenset({virtual}))

    def _specs_of(self, package: str) -> Set[int]:
        """Return the specs of a package; none if the database does not have it."""
        if package not in self._records.lookups.packages:
            return NONE
        return self._satisfying(SpecQuery(name=package)).matching

    def _satisfying(self, query: SpecQuery) -> Verdict:
        """Return the specs that satisfy a query; all are unknown if the database cannot
        answer it.
        """
        return verdict_on(self._records, query)


class _Broken(NamedTuple):
    """The specs that break a requirement.

    Attributes:
        specs: the specs that break it, or use a provider that does.
        unknown: the specs for which this is unknown.
        named: the specs that an explanation names.
    """

    specs: Set[int]
    unknown: Set[int]
    named: Set[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """A requirement on a package, a virtual package or `all`, checked for all specs.

    Attributes:
        owner: the package, the virtual package or `all`.
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
        if requirement.when is not None or requirement.is_conflict:
            return None
        has_one_option = len(requirement.options) == 1
        return requirement.options[0] if has_one_option else None

    @property
    def label(self) -> str:
        """The requirement as it is written in `packages:`, on one line.

        For example `'packages: hdf5: require: one_of +mpi, ~mpi when @1.14:'`.
        """
        requirement = self.requirement
        key = "require"
        if requirement.is_conflict:
            key = "conflict"
        elif requirement.is_preferred:
            key = "prefer"
        options = [spec_text(option) for option in requirement.options[:MOST_NAMED]]
        if len(requirement.options) > MOST_NAMED:
            options.append("…")
        group = ""
        if len(options) > 1:
            group = "one_of " if requirement.is_single else "any_of "
        text = f"packages: {self.owner}: {key}: {group}{', '.join(options)}"
        if requirement.when:
            text += f" when {spec_text(requirement.when)}"
        return f"'{text}'"


def _contradicts(query: SpecQuery, check: _Check) -> bool:
    """Return whether a spec, or its constraint on a dependency, contradicts all
    options.
    """
    nodes = [query] if check.owner in (query.name, ALL) else []
    for edge in query.dependencies:
        if edge.node.name == check.owner:
            nodes.append(edge.node)
    options = check.requirement.options
    return any(_excludes_all(node, options) for node in nodes)


def _excludes_all(node: SpecQuery, options: Sequence[SpecQuery]) -> bool:
    """Return whether no spec can satisfy a node and one of the options."""
    return not any(_intersects(node, option) for option in options)


def _intersects(node: SpecQuery, option: SpecQuery) -> bool:
    """Return whether one spec may satisfy both; an option may lack the name."""
    # Without the name of the option, that of the node does not count.
    name = node.name if option.name else None
    try:
        constrained(replace(node, name=name), option)
    except UnsatisfiableSpec:
        return False
    return True


class _Breaking(NamedTuple):
    """The specs that break a requirement, and those for which this is unknown."""

    specs: Set[int]
    unknown: Set[int]


def _breaking(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    specs: Set[int],
    is_checkable: bool = True,
) -> _Breaking:
    """Return the specs that break a requirement, and those for which this is unknown.

    Args:
        requirement: the requirement.
        verdict_of: returns the verdict on all specs for a query.
        specs: the specs that are checked.
        is_checkable: whether its condition (`when`) can be checked; if not, specs that
            do not satisfy the options are unknown.
    """
    # Find the specs that satisfy at least one option, and those that satisfy two.
    one = Verdict(NONE)
    two = Verdict(NONE)
    for option in requirement.options:
        verdict = verdict_of(option)
        two = two | (one & verdict)
        one = one | verdict

    # A conflict allows no option, `one_of` exactly one, and `any_of` several.
    satisfying = one
    if requirement.is_conflict:
        satisfying = one.opposite(specs)
    elif requirement.is_single:
        satisfying = one & two.opposite(specs)

    if not is_checkable:
        return _Breaking(NONE, specs - satisfying.matching)
    if requirement.when is not None:
        # Specs that do not satisfy its condition satisfy the requirement.
        satisfying = verdict_of(requirement.when).opposite(specs) | satisfying
    breaking = specs - satisfying.matching - satisfying.unknown
    return _Breaking(breaking, specs & satisfying.unknown)


def breaking_dependencies(
    lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec
) -> list[str]:
    """Return the dependencies of a spec that break requirements which the spec itself
    satisfies, such as `zlib-ng@2.2.4`.

    Args:
        lookups: the database.
        verdicts: the values of conditions that `CheckedRules` made.
        spec: the spec.
    """
    breaking: Set[int] = NONE
    for verdict in verdicts:
        named = verdict.named or NONE
        if spec.id not in named:
            breaking = breaking | named
    if not breaking:
        return []
    needs = graph.read_run_time(lookups, [spec.id])
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    return sorted(
        f"{node.package}@{node.version}"
        for key, node in nodes.items()
        if key in breaking
    )
