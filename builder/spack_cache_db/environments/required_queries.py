"""The queries that a spec becomes under the requirements of an environment's `packages:`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from spack_cache_db.environments import ALL, PackageRules, Requirement
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies

MOST_WAYS = 64
"""Ways to satisfy a spec of a virtual package, or what is required of a package, that are tried."""


def ways(query: SpecQuery, rules: PackageRules) -> list[SpecQuery]:
    """Return the queries that ask for one option of each requirement on a query's package.

    What is required of a virtual package by the name of a provider is asked of that provider.
    Options that contradict the query are left out; of very many ways, the first are returned.
    """
    found = [query]
    for requirement in rules.required.get(query.name or "", ()):
        made = (way for each in found for way in _ways(each, requirement, query.name))
        found = [*islice(dict.fromkeys(made), MOST_WAYS)]
    return found


def _ways(query: SpecQuery, requirement: Requirement, owner: str | None) -> Iterator[SpecQuery]:
    """Yield a query with each option, and the query itself if the requirement may not count."""
    when = requirement.when or SpecQuery()
    if not implies(query, replace(when, name=None)):
        yield query
    begun = query if requirement.when is None else _with_option(query, when, owner)
    for option in requirement.options:
        if begun is not None and (found := _with_option(begun, option, owner)):
            yield found


def required_query(query: SpecQuery, rules: PackageRules) -> SpecQuery:
    """Return a query with what is required of its package, as far as one query can say it.

    Requirements with several options or a `when` are left out, and so are variants that `all`
    requires: they count only for packages that have these variants.
    """
    own = rules.required.get(query.name or "")
    for requirement in own or rules.required.get(ALL, ()):
        (option, *others) = requirement.options or (SpecQuery(),)
        if not others and requirement.when is None and (own or not option.variants):
            query = _with_option(query, option, query.name) or query
    return query


def _with_option(query: SpecQuery, option: SpecQuery, owner: str | None) -> SpecQuery | None:
    """Return what both ask, where `owner` may stand for a provider; None if nothing can be both."""
    if option.name is not None and query.name == owner:
        query = replace(query, name=None)
    try:
        return constrained(query, option)
    except UnsatisfiableSpec:
        return None
