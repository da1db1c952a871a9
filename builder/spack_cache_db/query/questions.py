"""Turns a spec and the names of releases, stacks and machines into conditions on a database.

Pages show the name, the version, one compiler, the architecture and the variants of a spec. Records
of indexes add dependencies, flags and namespaces. A query that the database cannot answer is
refused with the reason, never guessed.
"""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions import (
    ANYWHERE,
    VIRTUALS,
    Asked,
    Condition,
    Conditions,
    OneOf,
    Question,
    UnsupportedQuery,
    Verdict,
    Word,
    asked,
    beyond_configurations,
    check_answerable,
    check_recorded,
    compiler_condition,
    compiler_of_pages,
    configuration_conditions,
    needs_whole_patches,
    notes_on_pages,
)
from spack_cache_db.query.connection import Lookups, select
from spack_cache_db.query.dependency_graph import read_virtuals
from spack_cache_db.query.package_names import known_name
from spack_cache_db.query.spec_records import SpecRecords, has_records
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.targets import is_known, known_targets

_NAMED_IN_SPECS = {
    "name": "dependency",
    "target": "target",
    "os": "os",
    "platform": "platform",
    "hash": "hash",
}
"""The parts of a spec that are names, and their kinds (`Spellings`)."""
_FEW = 5
"""Names in the message if none is similar to the unknown one."""
EXPLICIT = "SELECT spec FROM installs WHERE explicit"
PROVIDERS = """
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


def question_of(lookups: Lookups, query: SpecQuery, scope: Conditions = ANYWHERE) -> Question:
    """Return what a query asks of a database.

    Args:
        lookups: the small tables of the database.
        query: what is asked.
        scope: what narrows it; what the records of its release and stack say counts.

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    query, spelled = respelled(lookups, query)
    package = asked(scope, "package")
    name = query.name or (package.text if isinstance(package, Word) else None)
    records = SpecRecords(lookups, name)
    question = _read_query(records, query)
    is_recorded = any(condition.kind == "specs" for condition in question.conditions)
    notes = records.notes(query) if is_recorded else ()
    return Question((*question.conditions, *scope), (*spelled, *question.notes, *notes))


def read_query(records: SpecRecords, query: SpecQuery) -> Question:
    """Return what a query asks of a database, without notes on its records.

    A virtual name is a package like any other if the database has a package of that name. Names are
    read in any spelling (`spellings`).

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    query, notes = respelled(records.lookups, query)
    question = _read_query(records, query)
    return replace(question, notes=(*notes, *question.notes))


def respelled(lookups: Lookups, query: SpecQuery) -> tuple[SpecQuery, tuple[str, ...]]:
    """Return a query with the names that it means, and a note on each that it spells otherwise."""
    spellings, notes = read_spellings(lookups), []
    changes: dict[str, Any] = {}
    for field, kind in _NAMED_IN_SPECS.items():
        text = getattr(query, field)
        if text is not None and (name := spellings.canonical(kind, text)) != text:
            changes[field] = name
            notes.append(f"{text} is read as {name}")
    nodes = [respelled(lookups, each.node) for each in query.dependencies]
    notes += [note for _, some in nodes for note in some]
    if not notes:
        return query, ()
    edges = zip(query.dependencies, nodes, strict=True)
    dependencies = tuple(replace(edge, node=node) for edge, (node, _) in edges)
    return replace(query, dependencies=dependencies, **changes), tuple(notes)


def _read_query(records: SpecRecords, query: SpecQuery) -> Question:
    conn, name = records.lookups.conn, query.name
    if name is not None and not records.is_package(name):
        provided = _provided(records, query, name)
        if provided:
            found = _read_query(replace(records, package=None), replace(query, name=None))
            names = ", ".join(sorted(provided))
            note = f"the virtual package {name} is known to be provided by {names}"
            condition = Condition("package", name, OneOf(provided))
            return Question((condition, *found.conditions), (note, *found.notes))
    if beyond_configurations(query) and has_records(conn):
        check_recorded(query, records.is_virtual)
        shown = tuple(each for each in query.variants if not needs_whole_patches(each))
        conditions = configuration_conditions(replace(query, variants=shown))
        return Question((*conditions, *records.conditions(query)))
    is_package = name in VIRTUALS and name is not None and records.is_package(name)
    check_answerable(
        replace(query, name=None) if is_package else query,
        lambda dependency: _instead(records, query, dependency),
    )
    compilers = (compiler_condition(compiler_of_pages(each)) for each in query.dependencies)
    conditions = (*configuration_conditions(query), *dict.fromkeys(compilers))
    return Question(conditions, notes_on_pages(query))


def _provided(records: SpecRecords, query: SpecQuery, name: str) -> frozenset[str]:
    """Return the packages that provide a virtual one for which a query asks; none if it is none.

    Raises:
        UnsupportedQuery: package data does not say it, or the query asks for versions or variants,
            which are those of no provider.
    """
    sets = [key for key, names in read_virtuals(records.lookups.conn).items() if name in names]
    rows = select(records.lookups.conn, PROVIDERS, sets=json.dumps(sets)) if sets else ()
    recorded = [each for (each,) in rows]
    known = records.providers.get(name, ())
    if recorded and not known:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided here by {', '.join(recorded)}: ask for one by "
            "name"
        )
    providers = frozenset((*known, *recorded)) if known else frozenset()
    if providers and (query.versions is not None or query.variants):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(sorted(providers))}"
        )
    return providers


def _instead(records: SpecRecords, query: SpecQuery, dependency: str | None) -> str:
    """Return what can be said of a dependency where no binary's are known.

    That is what provides it, and the option of the package that is called so.
    """
    providers = records.providers.get(dependency or "", ())
    words = [f"{dependency} is known to be provided by {', '.join(providers)}"] if providers else []
    asked = {"package": query.name, "on": f"+{dependency}"}
    if any(select(records.lookups.conn, OPTION, **asked)):
        words.append(f"{f'{query.name}+{dependency}'!r} asks for its option")
    return "".join(f"; {each}" for each in words)


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


def explicitly(conn: sqlite3.Connection) -> Conditions:
    """Return the condition that somebody asked to have a spec installed."""
    specs = frozenset(spec for (spec,) in select(conn, EXPLICIT))
    return (Condition("specs", "asked for explicitly", Verdict(specs)),)


def scope_of(
    lookups: Lookups,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    *,
    package: str | None = None,
    target: str | None = None,
) -> Conditions:
    """Return the conditions that narrow an answer, by names in any spelling (`spellings`).

    Raises:
        UnknownNameError: the database has no such package, target, release or stack, or archspec
            no such host.
    """
    given = {"package": package, "target": target, "platform": platform, "os": os}
    given |= {"host": host, "release": release, "stack": stack}
    spellings = read_spellings(lookups)
    names = {
        kind: spellings.canonical(kind, name) for kind, name in given.items() if name is not None
    }
    ids = {
        kind: {each.name: key for key, each in known.items()}
        for kind, known in (("release", lookups.releases), ("stack", lookups.stacks))
    }
    ids["target"] = {name: key for key, name in lookups.words["target"].items()}
    for kind in ids:
        if kind in names and names[kind] not in ids[kind]:
            some = ", ".join(islice(ids[kind], _FEW)) + (", …" if len(ids[kind]) > _FEW else "")
            close = hint(names[kind], ids[kind], f"{kind}s in this database: {some or 'none'}")
            raise UnknownNameError(f"no {kind} is called {names[kind]!r}; {close}")
    if "package" in names and names["package"] not in lookups.packages:
        raise UnknownNameError(known_name(lookups, names["package"]).sentence)
    if "host" in names and not (names["host"] in lookups.families or is_known(names["host"])):
        close = hint(names["host"], known_targets(), "expected a name such as zen3 or neoverse_v2")
        raise UnknownNameError(f"archspec knows no target {names['host']!r}; {close}")
    found = []
    for kind, name in names.items():
        text = f"{kind}={name}" if kind in ("platform", "os") else name
        asks: Asked = ids[kind][name] if kind in ("release", "stack") else Word(name)
        found.append(Condition(kind, text, name if kind == "host" else asks))
    return tuple(found)


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return which names are close to one that is not known, or what to do where none is."""
    close = difflib.get_close_matches(name, [*known], cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise
