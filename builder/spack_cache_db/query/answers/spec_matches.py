"""Finds what satisfies a spec of an environment together with its requirements.

For `hdf5 +mpi` with `packages: {all: {require: '%gcc'}}`, these are the configurations
that satisfy `hdf5 +mpi`, with specs that satisfy `%gcc` together with all that they
need.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from spack_cache_db.environments.rules import NO_RULES, PackageRules
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.candidates import Candidate, Candidates
from spack_cache_db.query.match.misses import misses_of
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.match.requirements import CheckedRules
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.binary import HASH_BEGINS
from spack_cache_db.spack.queries import SpecQuery

PACKAGE_OF_HASH = f"""
SELECT DISTINCT packages.name FROM specs
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
WHERE {HASH_BEGINS} LIMIT 2
"""
"""The packages of the specs whose hashes begin with a text; two are too many."""


class Match(NamedTuple):
    """What satisfies a spec with its requirements.

    Attributes:
        query: the spec, with the name of its package.
        conditions: those of the spec, of the scope of the answers, and of the
            requirements.
        rows: the configurations that satisfy them, with the number of their specs that
            do; empty if none does.
    """

    query: SpecQuery
    conditions: Conditions
    rows: Mapping[Candidate, int]


class Matcher:
    """Matches the specs of one environment; rows and records are read once.

    Args:
        candidates: the database and the scope of the answers.
        roots: the names of the packages of all specs of the environment.
    """

    def __init__(self, candidates: Candidates, roots: Set[str]) -> None:
        self.candidates = candidates
        self.lookups = candidates.lookups
        self.scope = candidates.scope
        self.records = SpecRecords(candidates.lookups)
        self._roots = roots

    def match(self, query: SpecQuery, rules: PackageRules) -> Match:
        """Return what satisfies a query with the requirements `rules`.

        Raises UnsupportedQuery if the database cannot answer the query, or if it names
        no package.
        """
        if query.name is None:
            query = replace(query, name=self._package_of(query.hash))
        question = Question(self.lookups, query, self.scope, self.records)
        conditions = question.conditions
        if rules is not NO_RULES:
            # The preferences that the query contradicts do not count for it.
            checked = self._checked(rules)
            dropped = checked.dropped_for(question.canonical_spec)
            # Queries of one package share the conditions.
            ids = self.specs_of_package(query.name)
            key = (rules, query.name, dropped)
            conditions += self.candidates.once(
                key, lambda: checked.conditions(ids, dropped)
            )
        rows = misses_of(self.candidates, conditions).fitting()
        return Match(query, conditions, rows)

    def _checked(self, rules: PackageRules) -> CheckedRules:
        """Return requirements, checked once for all specs of the database."""
        return self.candidates.once(
            rules, lambda: CheckedRules(self.records, rules, self._roots)
        )

    def _package_of(self, dag_hash: str | None) -> str:
        """Return the package of the specs whose hashes begin with `dag_hash`.

        Raises UnsupportedQuery if there is none, or if there are several.
        """
        if dag_hash is None:
            raise UnsupportedQuery(
                "names no package, and an environment asks for packages by name"
            )
        rows = select(self.lookups.conn, PACKAGE_OF_HASH, hash=dag_hash)
        names = [name for (name,) in rows]
        if len(names) != 1:
            number = "several packages" if names else "nothing here"
            raise UnsupportedQuery(f"/{dag_hash} stands for {number}: name the package")
        return str(names[0])

    def specs_of_package(self, package: str | None) -> Set[int]:
        """Return the ids of the specs of a package in the scope."""
        rows = self.candidates.rows(package)
        specs_of_row = self.candidates.specs_of(self.scope, rows)
        ids: set[int] = set()
        for specs in specs_of_row.values():
            ids.update(spec.id for spec in specs)
        return ids
