"""A question: a spec that is asked of a database, and how it is read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any

from spack_cache_db.errors import counted
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    ReadSpec,
    Verdict,
    Word,
    asked,
    only,
    without,
)
from spack_cache_db.query.conditions.pages import (
    UnsupportedQuery,
    beyond_configurations,
    conditions_beside_records,
    read_for_pages,
)
from spack_cache_db.query.match.gone import gone_note
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.match.selection import ResultSet, counted_part, matching
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.configurations import Counted
from spack_cache_db.spack.queries import SpecQuery

MOST_RECENT = 4
"""Questions of a database that are kept with their results."""

_NAMED_IN_SPECS = {"name": "dependency"} | {
    name: name for name in ("target", "os", "platform", "hash")
}
"""The parts of a spec that are names, and their kinds (`Spellings`)."""
RECORDED_PROVIDERS = """
SELECT DISTINCT packages.name FROM dependencies
JOIN specs ON specs.id = dependencies.dependency
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
WHERE dependencies.virtuals IN (SELECT value FROM json_each(:sets))
ORDER BY packages.name
"""
OPTION = """
SELECT 1 FROM configurations
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN packages ON packages.id = configurations.package
WHERE packages.name = :package AND variants.text = :on LIMIT 1
"""


@dataclass(frozen=True, eq=False)
class Question:
    """A spec that is asked of one database: which binaries satisfy it, in a scope?

    Everything is read at first use. `check`, and whatever needs the conditions, raises
    UnsupportedQuery if the database cannot answer the question. The other answers need
    rooms that stand above this one, so they are functions of a question:
    `find.found_part`, `history.history_of`, `why_not.why_not` in `query.answers`.

    Args:
        lookups: the database.
        spec: the spec, with names in any spelling (`Spellings`).
        scope: other conditions: those of a `Scope`, a package, or words to search for.
        records: the records of all packages, if many questions share them; by default
            those of the package are read.
    """

    lookups: Lookups
    spec: SpecQuery
    scope: Conditions = ()
    records: SpecRecords | None = None

    def check(self) -> None:
        """Raise UnsupportedQuery if the database cannot answer the question."""
        _ = self._read_spec

    @property
    def canonical_spec(self) -> SpecQuery:
        """The spec with the names of the database."""
        return self._respelled[0]

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions of the spec, then those of the scope."""
        return (*self._read_spec.conditions, *self.scope)

    @cached_property
    def results(self) -> ResultSet:
        """The ids of the configurations that satisfy the conditions, in order."""
        return matching(self.lookups, self.conditions)

    def count(self) -> int:
        """Return the number of configurations that satisfy the conditions."""
        return len(self.results.ids)

    def configurations(self, part: slice = slice(None)) -> list[Counted]:
        """Return a part of the configurations, with how many of their binaries
        satisfy.
        """
        return counted_part(self.lookups, self.results, part)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the spec was read, and what the database does not know about binaries."""
        read_spec = self._read_spec
        notes = [*self._respelled[1], *read_spec.notes]
        if only(read_spec.conditions, "specs"):
            notes += self._records.notes(self.canonical_spec)
        notes += self._unknown_note()
        return tuple(notes)

    def lost_note(self) -> tuple[str, ...]:
        """Return a note on the binaries that mirrors have lost, if there are any; it
        belongs to an answer with others.
        """
        return gone_note(self.lookups, self.conditions)

    @cached_property
    def _respelled(self) -> tuple[SpecQuery, tuple[str, ...]]:
        return respelled(self.lookups, self.spec)

    @cached_property
    def _read_spec(self) -> ReadSpec:
        return read_query(self._records, self.canonical_spec)

    @cached_property
    def _records(self) -> SpecRecords:
        if self.records is not None:
            return self.records
        package = self.canonical_spec.name
        if package is None:
            # `+mpi` in the scope of a package.
            of_scope = asked(self.scope, "package")
            package = of_scope.text if isinstance(of_scope, Word) else None
        return SpecRecords(self.lookups, package)

    def _unknown_note(self) -> tuple[str, ...]:
        """Return a note on the binaries for which the database lacks the data."""
        verdict = asked(self.conditions, "specs")
        if verdict is None or not verdict.unknown:
            return ()
        unknown = Condition("specs", "", Verdict(verdict.unknown))
        conditions = (*without(self.conditions, "specs"), unknown)
        counts = matching(self.lookups, conditions).counts or {}
        count = sum(counts.values())
        if not count:
            return ()
        binaries = counted(count, "more binary", "more binaries")
        return (f"{binaries} may satisfy this, but this database lacks the data",)


def recent_question(
    lookups: Lookups, spec: SpecQuery, scope: Conditions = ()
) -> Question:
    """Return a question; the last few are kept with their results, for more pages of an
    answer.
    """
    recent = lookups.once(
        Question, lambda: lru_cache(maxsize=MOST_RECENT)(partial(Question, lookups))
    )
    return recent(spec, scope)


def respelled(lookups: Lookups, query: SpecQuery) -> tuple[SpecQuery, tuple[str, ...]]:
    """Return a query with canonical names, and a note on each name that was
    replaced.
    """
    spellings, notes = read_spellings(lookups), []
    changes: dict[str, Any] = {}
    for part, kind in _NAMED_IN_SPECS.items():
        text = getattr(query, part)
        if text is not None and (name := spellings.canonical(kind, text)) != text:
            changes[part] = name
            notes.append(f"{text} is read as {name}")
    nodes = [respelled(lookups, edge.node) for edge in query.dependencies]
    notes += chain.from_iterable(node_notes for _, node_notes in nodes)
    if not notes:
        return query, ()
    edges = zip(query.dependencies, nodes, strict=True)
    dependencies = tuple(replace(edge, node=node) for edge, (node, _) in edges)
    return replace(query, dependencies=dependencies, **changes), tuple(notes)


def read_query(records: SpecRecords, query: SpecQuery) -> ReadSpec:
    """Return the conditions of a query with canonical names, without notes on its
    records.

    A virtual name is a package like any other if the database has a package of that
    name. Raises UnsupportedQuery if the database cannot answer the query.
    """
    name, is_package = query.name, query.name in records.lookups.packages
    if (
        name is not None
        and not is_package
        and (provided := _provided(records, query, name))
    ):
        read_spec = read_query(
            replace(records, package=None), replace(query, name=None)
        )
        names = ", ".join(sorted(provided))
        note = f"the virtual package {name} is known to be provided by {names}"
        condition = Condition("package", name, OneOf(provided))
        return ReadSpec((condition, *read_spec.conditions), (note, *read_spec.notes))
    if beyond_configurations(query) and has_records(records.lookups.conn):
        conditions = conditions_beside_records(query, records.is_virtual)
        return ReadSpec((*conditions, *records.conditions(query)))
    hint = partial(_instead, records, query)
    return read_for_pages(query, hint, is_package=is_package)


def _provided(records: SpecRecords, query: SpecQuery, name: str) -> frozenset[str]:
    """Return the packages that provide a name; empty if it is not a virtual package.

    Raises UnsupportedQuery if package data has no provider, or for versions and
    variants, which providers do not share.
    """
    sets = records.edges.of_virtuals({name})
    rows = (
        select(records.lookups.conn, RECORDED_PROVIDERS, sets=json.dumps(sets))
        if sets
        else ()
    )
    recorded = [name for (name,) in rows]
    listed = records.lookups.providers.get(name, ())
    if recorded and not listed:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided in this database by "
            f"{', '.join(recorded)}: ask for a provider by name"
        )
    providers = sorted({*listed, *recorded})
    if providers and (query.versions is not None or query.variants):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(providers)}"
        )
    return frozenset(providers)


def _instead(records: SpecRecords, query: SpecQuery, dependency: str | None) -> str:
    """Return advice if dependencies are unknown: the providers, and the variant of that
    name.
    """
    providers = records.lookups.providers.get(dependency or "", ())
    words = (
        [f"{dependency} is known to be provided by {', '.join(providers)}"]
        if providers
        else []
    )
    parameters = {"package": query.name, "on": f"+{dependency}"}
    if any(select(records.lookups.conn, OPTION, **parameters)):
        words.append(f"{f'{query.name}+{dependency}'!r} requires its variant")
    return "".join(f"; {text}" for text in words)
