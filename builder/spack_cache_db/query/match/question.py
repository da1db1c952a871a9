"""Reads a query as the question that a database can answer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from spack_cache_db.query.conditions.conditions import (
    Condition,
    Conditions,
    OneOf,
    Question,
    Word,
    asked,
    only,
)
from spack_cache_db.query.conditions.pages import (
    UnsupportedQuery,
    beyond_configurations,
    conditions_beside_records,
    question_of_pages,
)
from spack_cache_db.query.match.records import SpecRecords
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select
from spack_cache_db.spack.queries import SpecQuery

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


def question_of(lookups: Lookups, query: SpecQuery, scope: Conditions = ()) -> Question:
    """Return the conditions of a query in any spelling (`Spellings`) and its scope,
    with notes.

    Raises UnsupportedQuery if the database cannot answer the query.
    """
    query, spelled = respelled(lookups, query)
    package = asked(scope, "package")
    name = query.name or (package.text if isinstance(package, Word) else None)
    records = SpecRecords(lookups, name)
    question = read_query(records, query)
    notes = records.notes(query) if only(question.conditions, "specs") else ()
    notes = (*spelled, *question.notes, *notes)
    return Question((*question.conditions, *scope), notes, query)


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


def read_query(records: SpecRecords, query: SpecQuery) -> Question:
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
        question = read_query(replace(records, package=None), replace(query, name=None))
        names = ", ".join(sorted(provided))
        note = f"the virtual package {name} is known to be provided by {names}"
        condition = Condition("package", name, OneOf(provided))
        return Question((condition, *question.conditions), (note, *question.notes))
    if beyond_configurations(query) and has_records(records.lookups.conn):
        conditions = conditions_beside_records(query, records.is_virtual)
        return Question((*conditions, *records.conditions(query)))
    hint = partial(_instead, records, query)
    return question_of_pages(query, hint, is_package=is_package)


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
