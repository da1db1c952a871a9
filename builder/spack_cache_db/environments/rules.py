"""Requirements on packages, and the queries that they make of a spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

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

MOST_WAYS = 64
"""Maximum of combinations of options that are tried for a package or virtual
package.
"""


def ways(query: SpecQuery, rules: PackageRules) -> list[SpecQuery]:
    """Return a query combined with one option of each requirement on its package, in
    all ways.

    An option of a virtual package may name a provider. Options that contradict the
    query are left out; `MOST_WAYS` limits the result.
    """
    queries = [query]
    for requirement in rules.required.get(query.name or "", ()):
        combined = (
            way
            for earlier in queries
            for way in _ways(earlier, requirement, query.name)
        )
        queries = [*islice(dict.fromkeys(combined), MOST_WAYS)]
    return queries


def _ways(
    query: SpecQuery, requirement: Requirement, owner: str | None
) -> Iterator[SpecQuery]:
    """Yield a query with each option, and the query itself if the requirement may not
    apply.
    """
    when = requirement.when or SpecQuery()
    if not implies(query, replace(when, name=None)):
        yield query
    limited = query if requirement.when is None else _with_option(query, when, owner)
    for option in requirement.options:
        if limited is not None and (combined := _with_option(limited, option, owner)):
            yield combined


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with the requirements on its package that one query can express.

    Requirements with several options or a `when` are left out. Variants that `all`
    requires are
    left out as well: they apply only to packages that have these variants.
    """
    package_rules = rules.required.get(query.name or "")
    for requirement in package_rules or rules.required.get(ALL, ()):
        (option, *alternatives) = requirement.options or (SpecQuery(),)
        if (
            not alternatives
            and requirement.when is None
            and (package_rules or not option.variants)
        ):
            query = _with_option(query, option, query.name) or query
    return query


def _with_option(
    query: SpecQuery, option: SpecQuery, owner: str | None
) -> SpecQuery | None:
    """Return a query with an option, None if they contradict; an owner may be a virtual
    package.
    """
    if option.name is not None and query.name == owner:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None
