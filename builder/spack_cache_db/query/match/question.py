"""A question to a database: which binaries satisfy a spec?

The question for `HDF5@1.14: +mpi` in the release `develop` first respells the names
(`hdf5`), then turns the spec and the release into conditions, and finds the
configurations that satisfy them. A virtual package such as `mpi` stands for its
providers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from spack_cache_db.errors import counted
from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    ReadSpec,
    Verdict,
    Word,
    condition_value,
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
"""Maximum of questions that are kept with their results, for one database."""

_KINDS_OF_NAMES = {
    "name": "dependency",
    "target": "target",
    "os": "os",
    "platform": "platform",
    "hash": "hash",
}
"""The parts of a spec that are names, and the kinds of these names (`Spellings`)."""
RECORDED_PROVIDERS = """
SELECT DISTINCT packages.name FROM dependencies
JOIN specs ON specs.id = dependencies.dependency_id
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
WHERE dependencies.dependency_virtual_id IN (SELECT value FROM json_each(:sets))
ORDER BY packages.name
"""
"""The packages to which edges with some sets of virtual packages lead."""
OPTION = """
SELECT 1 FROM configurations
JOIN variant_set_members ON variant_set_members.variant_set_id = configurations.variant_set_id
JOIN variants ON variants.id = variant_set_members.variant_id
JOIN packages ON packages.id = configurations.package_id
WHERE packages.name = :package AND variants.text = :on LIMIT 1
"""
"""Whether a package has a variant, such as `+mpi`."""


@dataclass(frozen=True, eq=False)
class Question:
    """Which binaries of a database satisfy a spec, in a scope?

    Everything is read at first use. `check`, and all that needs the conditions, raises
    UnsupportedQuery if the database cannot answer the question. Other answers are
    functions of a question, such as `find.found_part`, `history.history_of` and
    `why_not.why_not` in `query.answers`.

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
        return self._respelled.spec

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
        """Return a part of the configurations, each with the number of its binaries
        that satisfy the conditions.
        """
        return counted_part(self.lookups, self.results, part)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the spec was read, and what the database does not know about binaries."""
        read_spec = self._read_spec
        notes = [*self._respelled.notes, *read_spec.notes]
        # Records answered a part of the spec.
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
    def _respelled(self) -> Respelled:
        return respelled(self.lookups, self.spec)

    @cached_property
    def _read_spec(self) -> ReadSpec:
        return read_query(self._records, self.canonical_spec)

    @cached_property
    def _records(self) -> SpecRecords:
        """The records that are given, or else those of the package of the spec."""
        if self.records is not None:
            return self.records
        package = self.canonical_spec.name
        if package is None:
            # The scope may have one, as on the page of a package.
            of_scope = condition_value(self.scope, "package")
            package = of_scope.text if isinstance(of_scope, Word) else None
        return SpecRecords(self.lookups, package)

    def _unknown_note(self) -> tuple[str, ...]:
        """Return a note on the binaries for which the database lacks the data."""
        verdict = condition_value(self.conditions, "specs")
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
    """Return a question; the last few are kept with their results.

    A visitor who asks for the next page of an answer asks the same question again.
    """

    # The cache belongs to the database, and is made for its first question.
    def new_cache() -> Callable[[SpecQuery, Conditions], Question]:
        return lru_cache(maxsize=MOST_RECENT)(partial(Question, lookups))

    recent = lookups.once(Question, new_cache)
    return recent(spec, scope)


def verdict_on(records: SpecRecords, query: SpecQuery) -> Verdict:
    """Return the specs of a database that satisfy a query, whether they are binaries or
    not; all are unknown if the database cannot answer it.

    Args:
        records: the records of all packages.
        query: the query, with names in any spelling.
    """
    question = Question(records.lookups, query, records=records)
    try:
        return records.satisfying(question.conditions)
    except UnsupportedQuery:
        return Verdict(frozenset(), records.every)


class Respelled(NamedTuple):
    """A spec with the names of a database, and a note on each name that was
    replaced.
    """

    spec: SpecQuery
    notes: tuple[str, ...] = ()


def respelled(lookups: Lookups, query: SpecQuery) -> Respelled:
    """Return a spec with the names of the database, also in its dependencies.

    A name that the database does not have stays as it is. `HDF5 target=ZEN3` is `hdf5
    target=zen3`, with the notes `HDF5 is read as hdf5` and `ZEN3 is read as zen3`.
    """
    # Respell the names of the spec itself.
    spellings = read_spellings(lookups)
    changes: dict[str, Any] = {}
    notes: list[str] = []
    for part, kind in _KINDS_OF_NAMES.items():
        text = getattr(query, part)
        if text is None:
            continue
        name = spellings.canonical(kind, text)
        if name != text:
            changes[part] = name
            notes.append(f"{text} is read as {name}")
    # Respell those of its dependencies.
    dependencies = []
    for edge in query.dependencies:
        node = respelled(lookups, edge.node)
        notes += node.notes
        dependencies.append(replace(edge, node=node.spec))
    if not notes:
        return Respelled(query)
    spec = replace(query, dependencies=tuple(dependencies), **changes)
    return Respelled(spec, tuple(notes))


def read_query(records: SpecRecords, query: SpecQuery) -> ReadSpec:
    """Return the conditions of a query, without notes on its records.

    A virtual name is a package like any other if the database has a package of that
    name.

    Args:
        records: the records of the database, or of the package of the query.
        query: the query, with the names of the database.

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    # A virtual package stands for its providers.
    name = query.name
    is_package = name in records.lookups.packages
    if name is not None and not is_package:
        providers = _providers(records, query, name)
        if providers:
            return _read_virtual(records, query, name, providers)
    # Records answer what pages do not show.
    if beyond_configurations(query) and has_records(records.lookups.conn):
        conditions = conditions_beside_records(query, records.is_virtual)
        return ReadSpec((*conditions, *records.conditions(query)))
    hint = partial(_instead, records, query)
    return read_for_pages(query, hint, is_package=is_package)


def _read_virtual(
    records: SpecRecords, query: SpecQuery, virtual: str, providers: Sequence[str]
) -> ReadSpec:
    """Return the conditions of a query on a virtual package: one of its providers
    satisfies the rest of the query.
    """
    # The records are those of all providers.
    of_all_packages = replace(records, package=None)
    rest = read_query(of_all_packages, replace(query, name=None))
    condition = Condition("package", virtual, OneOf(frozenset(providers)))
    names = ", ".join(providers)
    note = f"the virtual package {virtual} is known to be provided by {names}"
    return ReadSpec((condition, *rest.conditions), (note, *rest.notes))


def _providers(records: SpecRecords, query: SpecQuery, name: str) -> list[str]:
    """Return the packages that provide a name, sorted; none if it is not a virtual
    package.

    Raises UnsupportedQuery if package data has no provider, or for versions and
    variants, which providers do not share.
    """
    # Find the packages that provide it in records, and those that package data lists.
    recorded: list[str] = []
    virtuals = records.edges.of_virtuals({name})
    if virtuals:
        sets = json.dumps(virtuals)
        rows = select(records.lookups.conn, RECORDED_PROVIDERS, sets=sets)
        recorded = [provider for (provider,) in rows]
    listed = records.lookups.providers.get(name, ())
    if recorded and not listed:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided in this database by "
            f"{', '.join(recorded)}: ask for a provider by name"
        )
    providers = sorted({*listed, *recorded})
    has_details = query.versions is not None or bool(query.variants)
    if providers and has_details:
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(providers)}"
        )
    return providers


def _instead(records: SpecRecords, query: SpecQuery, dependency: str | None) -> str:
    """Return advice for a query on a dependency, if the database has none: the
    providers of a virtual package, and the variant of that name.

    For example `; 'hdf5+mpi' requires its variant` for `hdf5 ^mpi`.
    """
    advice = ""
    if dependency is not None:
        providers = records.lookups.providers.get(dependency)
        if providers:
            advice += (
                f"; {dependency} is known to be provided by {', '.join(providers)}"
            )
    parameters = {"package": query.name, "on": f"+{dependency}"}
    if any(select(records.lookups.conn, OPTION, **parameters)):
        spec = f"{query.name}+{dependency}"
        advice += f"; {spec!r} requires its variant"
    return advice
