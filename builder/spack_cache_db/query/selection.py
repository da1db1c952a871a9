"""Conditions → the configurations that satisfy them.

Each condition is decided on the small table of its words (the versions of one package, the
compilers, the targets, …), so that large tables are only searched for ids. Statements are put
together from the fixed fragments below, never from input.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from typing import Any

from spack_cache_db.query.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    OneOf,
    asked,
    readable_variants,
)
from spack_cache_db.query.connection import IDS_AT_ONCE, json_pieces, select, select_in
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.spack.constraints import VariantConstraint, variant_matches
from spack_cache_db.spack.targets import ancestors

PACKAGE = "SELECT id FROM packages WHERE name = :name"
_PROVIDERS = """
SELECT virtual, known_packages.name FROM providers
JOIN known_packages ON known_packages.id = providers.package
ORDER BY virtual, known_packages.name
"""
VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = "SELECT id, name FROM versions WHERE package = :package"
VARIANTS = "SELECT id, text FROM variants WHERE name = :name OR text = :text"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:ids))
"""
_INSTALLED_FIRST = """
id NOT IN (
  SELECT specs.configuration FROM installations JOIN specs ON specs.hash = installations.hash
  WHERE installations.explicit),
id NOT IN (
  SELECT configuration FROM configuration_releases
  WHERE release IN (SELECT value FROM json_each(:trees))),
"""
"""What somebody asked to have installed comes first, then what else is installed."""

# The ids of packages are in the order of their names, those of versions in Spack's.
_ORDER = """
platform <> (SELECT id FROM platforms WHERE name = 'linux'),
platform,
(SELECT iif(family = 'x86_64', '', family) FROM targets WHERE targets.id = configurations.target),
package,
version IN (SELECT value FROM json_each(:branches)),
version IN (SELECT value FROM json_each(:prereleases)),
-version,
(SELECT key FROM json_each(:nearest) WHERE value = target),
(SELECT min(release) FROM configuration_releases WHERE configuration = configurations.id),
id
"""
"""What one would install first: by system and family of CPUs, what most machines run first; of a
package the version that Spack takes, what was built for the nearest target, and what is current."""

HASH_BEGINS = "hash >= :hash AND hash < :hash || '{'"
_PLACES = {
    "release": """id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": """id IN (
  SELECT configuration FROM configuration_stacks WHERE stack = :stack AND spec_count > 0)""",
    "words": "id IN (SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :words)",
    "hash": f"""id IN (
  SELECT configuration FROM specs WHERE {HASH_BEGINS}
  UNION ALL
  SELECT listings.configuration FROM listings CROSS JOIN specs ON specs.id = listings.spec
  WHERE listings.configuration IS NOT NULL AND {HASH_BEGINS})""",
}
# The others are no spec's own: only releases that are not the foremost of their specs show them.
_OWN = "spec_count > 0"


def package_id(conn: sqlite3.Connection, name: str) -> int | None:
    """Return the id of a package, None where the file has none of that name."""
    return next((row[0] for row in select(conn, PACKAGE, name=name)), None)


def providers_of(conn: sqlite3.Connection, virtual: str) -> tuple[str, ...]:
    """Return the packages that package data knows to provide a virtual one, sorted."""
    return read_providers(conn).get(virtual, ())


def read_providers(conn: sqlite3.Connection) -> Mapping[str, tuple[str, ...]]:
    """Return the packages that package data knows to provide each virtual one, sorted."""
    found: dict[str, tuple[str, ...]] = {}
    for virtual, name in select(conn, _PROVIDERS):
        found[virtual] = (*found.get(virtual, ()), name)
    return found


def satisfying(
    conn: sqlite3.Connection, lookups: Lookups, condition: Condition, package: int | None = None
) -> Set[int]:
    """Return the ids of the words in a condition's column that satisfy it.

    Args:
        package: of versions, only those of this package.
    """
    column = COLUMNS[condition.kind]
    if column == "package":
        several = isinstance(condition.asked, OneOf)
        names = condition.asked.words if several else (condition.asked.text,)
        return {key for name in names if (key := package_id(conn, name)) is not None}
    if column == "variants":
        named = select(conn, VARIANTS, name=_name(condition), text=condition.text)
        return _sets_with(conn, (key for key, text in named if condition.holds((text,))))
    if column == "version":
        sql = VERSIONS if package is None else VERSIONS_OF_PACKAGE
        used = {} if package is None else {"package": package}
        # Many packages share a version such as 1.0.0.
        holds = lru_cache(maxsize=None)(condition.holds)
        return {key for key, name in select(conn, sql, **used) if holds(name)}
    return {key for key, name in lookups.words[column].items() if condition.holds(name)}


def preference(
    conn: sqlite3.Connection, lookups: Lookups, conditions: Conditions = ()
) -> tuple[str, dict[str, str]]:
    """Return the order in which every answer lists configurations, as SQL with its parameters.

    What is installed comes first; then what most machines run.

    Args:
        conditions: of a machine that they choose (`--host zen4`, `target=:zen4`), what was built
            for the nearest target comes before what also runs on older ones.
    """
    used = {"nearest": _nearest(lookups, conditions), **lookups.late_versions(conn)}
    trees = lookups.trees()
    if not trees:
        return _ORDER, used
    return _INSTALLED_FIRST + _ORDER, {"trees": next(json_pieces(trees)), **used}


def chosen_machine(conditions: Conditions) -> str | None:
    """Return the CPU target of the machine on which it must run, None if it is not chosen."""
    host: str | None = asked(conditions, "host")
    target = asked(conditions, "target")
    is_bound = isinstance(target, str) and target.startswith(":")
    return target[1:] if host is None and is_bound else host


def _nearest(lookups: Lookups, conditions: Conditions) -> str:
    """Return the ids of the targets that run on the chosen machine, the nearest first, as JSON."""
    host = chosen_machine(conditions)
    ids = {name: key for key, name in lookups.words["target"].items()}
    names = (host, *ancestors(host)) if host else ()
    return json.dumps([ids[name] for name in names if name in ids])


def configuration_ids(
    conn: sqlite3.Connection, lookups: Lookups, conditions: Conditions, *, every: bool = False
) -> list[int]:
    """Return the configurations that satisfy conditions, in the order of `preference`.

    Each is in the release, or else in the stack that is asked for. Where a hash, what specs depend
    on, or more than one place is asked for, `specs_in_scope` says which of these have a spec that
    satisfies all of it.

    Args:
        every: also those that are no spec's own, where no release or stack is asked for.
    """
    places = {kind: asked(conditions, kind) for kind in _PLACES}
    if places["release"] is not None:
        places["stack"] = None
    used = {kind: value for kind, value in places.items() if value is not None}
    filters = [_PLACES[kind] for kind in used]
    if not every and not used.keys() & {"release", "stack"}:
        filters.append(_OWN)
    columns = column_ids(conn, lookups, conditions)

    def read() -> list[int]:
        order, late = preference(conn, lookups, conditions)
        return _having(conn, columns, filters, used | late, order)

    if columns or used or chosen_machine(conditions) is not None:
        return read()
    # Whatever is asked of specs alone begins with all of them.
    return lookups.once(("configurations in order", every), read)


def with_other_variant(conn: sqlite3.Connection, constraint: VariantConstraint) -> list[int]:
    """Return the configurations that have a variant of this name, and not as asked."""
    members = (
        key
        for key, text in select(conn, VARIANTS, name=constraint.name, text="")
        for variant in readable_variants((text,), constraint.name)
        if not variant_matches(constraint, variant)
    )
    return _having(conn, {"variants": _sets_with(conn, members)}, [], {})


def _name(condition: Condition) -> str | None:
    return getattr(condition.asked, "name", None)


def _sets_with(conn: sqlite3.Connection, variants: Iterable[int]) -> set[int]:
    return {row[0] for row in select_in(conn, SETS_WITH, variants)}


def column_ids(
    conn: sqlite3.Connection, lookups: Lookups, conditions: Conditions
) -> dict[str, Set[int]]:
    """Return the ids that satisfy the conditions on each column, up to one that none satisfies."""
    found: dict[str, Set[int]] = {}
    for each in conditions:
        if each.kind not in COLUMNS:
            continue
        column = COLUMNS[each.kind]
        packages = found.get("package", ())
        package = next(iter(packages)) if len(packages) == 1 else None
        ids = satisfying(conn, lookups, each, package)
        found[column] = found[column] & ids if column in found else ids
        if not found[column]:
            break
    return found


def _having(
    conn: sqlite3.Connection,
    columns: Mapping[str, Set[int]],
    filters: Iterable[str],
    parameters: Mapping[str, Any],
    order: str = "id",
) -> list[int]:
    """Return the configurations whose columns have one of these ids, and that pass the filters."""
    if not all(columns.values()):
        return []
    # SQLite is asked with lists that fit into one value; what is longer is looked at here.
    short = {column: ids for column, ids in columns.items() if len(ids) <= IDS_AT_ONCE}
    long = [column for column in columns if column not in short]
    texts = {column: next(json_pieces(ids)) for column, ids in short.items()}
    tests = [_test(column, len(ids)) for column, ids in short.items()]
    selected, where = ", ".join(["id", *long]), "\n  AND ".join([*tests, *filters]) or "1"
    sql = f"SELECT {selected} FROM configurations WHERE {where} ORDER BY {order}"
    rows = select(conn, sql, **texts, **parameters)
    for place, column in enumerate(long, start=1):
        rows = _among(rows, place, columns[column])
    return [row[0] for row in rows]


def _test(column: str, count: int) -> str:
    """Return the condition in SQL that a column has one of so many ids, given as JSON."""
    if count == 1:
        return f"{column} = json_extract(:{column}, '$[0]')"
    return f"{column} IN (SELECT value FROM json_each(:{column}))"


def _among(rows: Iterator[tuple[Any, ...]], place: int, ids: Set[int]) -> Iterator[tuple[Any, ...]]:
    return (row for row in rows if row[place] in ids)
