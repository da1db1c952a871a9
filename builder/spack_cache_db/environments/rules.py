"""Requirements on packages, and the queries that they make of a spec.

With `packages: {hdf5: {require: [{one_of: ['@1.12', '@1.14']}, +mpi]}}`, the spec
`hdf5` stands for `hdf5@1.12+mpi` or `hdf5@1.14+mpi`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.queries import SpecQuery


@dataclass(frozen=True, slots=True)
class Requirement:
    """A `require`, `conflict` or `prefer` of `packages:`, which a binary meets or not.

    Attributes:
        options: specs, of which a binary must satisfy at least one.
        line: its line in the environment, counted from 1.
        when: the condition under which it applies; None for always.
        is_single: whether exactly one of the options must be satisfied (`one_of`).
        is_conflict: whether none of the options may be satisfied.
        is_preferred: whether it is a preference (`prefer`). Spack drops a preference
            for specs that contradict it.
    """

    options: tuple[SpecQuery, ...]
    line: int
    when: SpecQuery | None = None
    is_single: bool = False
    is_conflict: bool = False
    is_preferred: bool = False


# Compared by identity, because an environment has few of these and many specs.
@dataclass(frozen=True, slots=True, eq=False)
class PackageRules:
    """The requirements of `packages:`, by package, virtual package or `all`.

    Attributes:
        required: those of `require:`.
        conflicts: those of `conflict:`.
        preferred: those of `prefer:`.
    """

    required: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    preferred: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)


NO_RULES = PackageRules()
ALL = "all"
"""The name in `packages:` for all packages without an entry."""

MOST_COMBINATIONS = 64
"""Maximum of combinations of options that are tried for a package or virtual
package.
"""


def combinations(query: SpecQuery, rules: PackageRules) -> list[SpecQuery]:
    """Return a query combined with one option of each requirement on its package.

    `hdf5+mpi` with `require: [{one_of: ['@1.12', '@1.14']}]` is `hdf5@1.12+mpi` and
    `hdf5@1.14+mpi`. An option of a virtual package may name a provider: `mpi` with
    `require: openmpi` is `openmpi`. Options that contradict the query are left out, and
    `MOST_COMBINATIONS` limits the result.
    """
    queries = [query]
    for requirement in rules.required.get(query.name or "", ()):
        combined: list[SpecQuery] = []
        for earlier in queries:
            combined += _with_each_option(earlier, requirement, query.name)
        distinct = list(dict.fromkeys(combined))
        queries = distinct[:MOST_COMBINATIONS]
    return queries


def _with_each_option(
    query: SpecQuery, requirement: Requirement, package: str | None
) -> Iterator[SpecQuery]:
    """Yield a query with each option of a requirement on `package`.

    A requirement with a condition (`when`) may not apply. So the query alone is one of
    the results, unless the query implies the condition.
    """
    conditional: SpecQuery | None = query
    if requirement.when is not None:
        # The name is left out, because the condition is about the same package.
        condition = replace(requirement.when, name=None)
        if not implies(query, condition):
            yield query
        conditional = _with_option(query, requirement.when, package)
    # The condition contradicts the query, so the requirement never applies.
    if conditional is None:
        return
    for option in requirement.options:
        combined = _with_option(conditional, option, package)
        if combined is not None:
            yield combined


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with the requirements on its package that one query can express.

    Left out are requirements with several options or a condition (`when`), and those
    that contradict the query. Requirements of `all` count only for packages without
    requirements of their own.
    """
    requirements = rules.required.get(query.name or "")
    is_of_all = not requirements
    if is_of_all:
        requirements = rules.required.get(ALL)
    for requirement in requirements or ():
        if requirement.when is not None or len(requirement.options) != 1:
            continue
        option = requirement.options[0]
        # The variants of `all` apply only to packages that have these variants.
        if is_of_all and option.variants:
            continue
        required = _with_option(query, option, query.name)
        if required is not None:
            query = required
    return query


def _with_option(
    query: SpecQuery, option: SpecQuery, package: str | None
) -> SpecQuery | None:
    """Return a query with an option of `package`; None if they contradict each other.

    An option of a virtual package may name a provider, which replaces the name: `mpi`
    with the option `openmpi@5` is `openmpi@5`.
    """
    if option.name is not None and query.name == package:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None
