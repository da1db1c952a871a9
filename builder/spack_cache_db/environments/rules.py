"""Requirements on packages, and the queries that they make of a spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.queries import SpecQuery


@dataclass(frozen=True, slots=True)
class Requirement:
    """A `require`, `conflict` or `prefer` of `packages:`, which a binary meets or not.

    One of the options must be met: exactly one if it `is_single` (`one_of`), none if it
    `is_conflict`. It applies under the condition `when`, or always. One that
    `is_preferred` does not apply to specs that contradict it, because Spack drops it
    for these.
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
    """Requirements of `packages:` by kind, each by package, virtual package or
    `all`.
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
    `hdf5@1.14+mpi`. An option of a virtual package may name a provider. Options that
    contradict the query are left out; `MOST_COMBINATIONS` limits the result.
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
    query: SpecQuery, requirement: Requirement, owner: str | None
) -> Iterator[SpecQuery]:
    """Yield a query with each option, and the query itself if the requirement may not
    apply.
    """
    conditional: SpecQuery | None = query
    if requirement.when is not None:
        if not implies(query, replace(requirement.when, name=None)):
            yield query
        conditional = _with_option(query, requirement.when, owner)
    # The condition contradicts the query, so the requirement never applies.
    if conditional is None:
        return
    for option in requirement.options:
        combined = _with_option(conditional, option, owner)
        if combined is not None:
            yield combined


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with the requirements on its package that one query can express.

    Requirements with several options or a `when` are left out. Variants that `all`
    requires are left out as well: they apply only to packages that have these variants.
    """
    requirements = rules.required.get(query.name or "")
    is_of_all = not requirements
    if is_of_all:
        requirements = rules.required.get(ALL)
    for requirement in requirements or ():
        if requirement.when is not None or len(requirement.options) != 1:
            continue
        option = requirement.options[0]
        if is_of_all and option.variants:
            continue
        required = _with_option(query, option, query.name)
        # A query that contradicts a requirement is kept as it is.
        if required is not None:
            query = required
    return query


def _with_option(
    query: SpecQuery, option: SpecQuery, owner: str | None
) -> SpecQuery | None:
    """Return a query with an option, None if they contradict; an owner may be a virtual
    package.

    `mpi` with the option `openmpi@5` is `openmpi@5`.
    """
    if option.name is not None and query.name == owner:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None
