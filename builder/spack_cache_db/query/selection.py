"""Conditions → the configurations that meet them: the predicates of `spack` over SQL.

Each condition is decided in Python on its small table (the versions of one package, the compilers,
the targets, …), so the large tables only ever see lists of ids. Statements are put together from
the fixed fragments below, never from input.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import IDS_AT_ONCE, json_pieces, select, select_in
from spack_cache_db.spack.compilers import compiler_matches
from spack_cache_db.spack.constraints import VariantConstraint, variant_matches, version_matches
from spack_cache_db.spack.targets import runs_on, target_matches

PACKAGE = "SELECT id FROM packages WHERE name = :name"
VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = "SELECT id, name FROM versions WHERE package = :package"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:ids))
"""
WITH_SETS = """
SELECT id FROM configurations WHERE variants IN (SELECT value FROM json_each(:ids))
"""
# The ids of packages are in the order of their names, those of versions in Spack's.
ORDER = "package, -version, id"
_FILTERS = {
    "package": "package = :package",
    "version": "version IN (SELECT value FROM json_each(:version))",
    "compiler": "compiler IN (SELECT value FROM json_each(:compiler))",
    "os": "os IN (SELECT value FROM json_each(:os))",
    "platform": "platform IN (SELECT value FROM json_each(:platform))",
    "target": "target IN (SELECT value FROM json_each(:target))",
    "variants": "variants IN (SELECT value FROM json_each(:variants))",
    "release": """id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": "id IN (SELECT configuration FROM configuration_stacks WHERE stack = :stack)",
    "hash": """id IN (
  SELECT configuration FROM specs
  WHERE hash >= :hash AND hash < :hash || '{' AND release_count > 0)""",
    "listed_hash": """id IN (
  SELECT configuration FROM specs WHERE hash >= :listed_hash AND hash < :listed_hash || '{'
  UNION ALL
  SELECT listed.configuration
  FROM listings AS listed CROSS JOIN specs ON specs.id = listed.spec
  WHERE listed.configuration IS NOT NULL
    AND hash >= :listed_hash AND hash < :listed_hash || '{')""",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What narrows an answer besides the query: ids of a release and a stack, a machine.

    Attributes:
        release: the release that must list the configuration.
        stack: the stack that must hold it; in that release, where one is given.
        host: the CPU target on which it must run.
        os: the operating system that it must be built for.
        platform: the platform that it must be built for.
    """

    release: int | None = None
    stack: int | None = None
    host: str | None = None
    os: str | None = None
    platform: str | None = None


ANYWHERE = Scope()


def package_id(conn: sqlite3.Connection, name: str) -> int | None:
    """Return the id of a package, None where the file has none of that name."""
    return next((row[0] for row in select(conn, PACKAGE, name=name)), None)


def configurations_meeting(
    conn: sqlite3.Connection,
    lookups: Lookups,
    asked: Conditions,
    scope: Scope,
    single: dict[str, Any],
    more: tuple[str, ...] = (),
) -> list[int]:
    """Return what satisfies the query, the machine of the scope, and the filters of one value."""
    package = None if asked.name is None else package_id(conn, asked.name)
    if package is None and asked.name is not None:
        return []
    single = {
        key: value for key, value in (single | {"package": package}).items() if value is not None
    }
    lists = {column: set(ids) for column, ids in _lists(conn, lookups, asked, scope, package)}
    if not all(lists.values()):
        return []
    # SQLite is asked with lists that fit into one value; what is longer is looked at here.
    short = {column: ids for column, ids in lists.items() if len(ids) <= IDS_AT_ONCE}
    texts = {column: next(json_pieces(ids)) for column, ids in short.items()}
    long = [column for column in lists if column not in short]
    filters = [*(_FILTERS[name] for name in (*single, *short)), *more] or ["1"]
    columns, conditions = ", ".join(["id", *long]), "\n  AND ".join(filters)
    sql = f"SELECT {columns} FROM configurations WHERE {conditions} ORDER BY {ORDER}"  # noqa: S608
    rows = select(conn, sql, **single, **texts)
    for place, column in enumerate(long, start=1):
        rows = _among(rows, place, lists[column])
    return [row[0] for row in rows]


def configurations_with_other(
    conn: sqlite3.Connection, lookups: Lookups, constraint: VariantConstraint
) -> list[int]:
    """Return the configurations that have a variant of this name, and not as asked."""
    candidates = lookups.variants(conn, constraint.name)
    members = [key for key, variant in candidates if not variant_matches(constraint, variant)]
    sets = {row[0] for row in select_in(conn, SETS_WITH, members)}
    return [row[0] for row in select_in(conn, WITH_SETS, sets)]


def _among(rows: Iterator[tuple[Any, ...]], place: int, ids: set[int]) -> Iterator[tuple[Any, ...]]:
    return (row for row in rows if row[place] in ids)


def _lists(
    conn: sqlite3.Connection,
    lookups: Lookups,
    asked: Conditions,
    scope: Scope,
    package: int | None,
) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield each column of which something is asked, and the ids there that satisfy it."""
    if asked.versions is not None:
        yield "version", _versions(conn, asked, package)
    words = lookups.words
    if asked.compilers:
        yield "compiler", (key for key, name in words["compiler"].items() if _is_by(asked, name))
    for column in ("os", "platform"):
        wanted = {getattr(asked, column), getattr(scope, column)} - {None}
        if wanted:
            yield column, (key for key, name in words[column].items() if wanted == {name})
    if asked.target is not None or scope.host is not None:
        yield "target", (key for key, name in words["target"].items() if _runs(asked, scope, name))
    if asked.variants:
        yield "variants", _variant_sets(conn, lookups, asked.variants)


def _versions(conn: sqlite3.Connection, asked: Conditions, package: int | None) -> Iterator[int]:
    if package is None:
        named = select(conn, VERSIONS)
    else:
        named = select(conn, VERSIONS_OF_PACKAGE, package=package)
    # Many packages share a version such as 1.0.0.
    lies_within = lru_cache(maxsize=None)(lambda name: version_matches(asked.versions, name))
    return (key for key, name in named if lies_within(name))


def _is_by(asked: Conditions, compiler: str) -> bool:
    return all(compiler_matches(constraint, compiler) for constraint in asked.compilers)


def _runs(asked: Conditions, scope: Scope, target: str) -> bool:
    return target_matches(asked.target, target) and (
        scope.host is None or runs_on(target, scope.host)
    )


def _variant_sets(
    conn: sqlite3.Connection, lookups: Lookups, constraints: tuple[VariantConstraint, ...]
) -> set[int]:
    """Return the variant sets in which each constraint is met by a member."""
    found: set[int] | None = None
    # The column is where a constraint stands, which says nothing of what it asks.
    for constraint in dict.fromkeys(replace(each, column=0) for each in constraints):
        candidates = lookups.variants(conn, constraint.name)
        members = [key for key, variant in candidates if variant_matches(constraint, variant)]
        sets = {row[0] for row in select_in(conn, SETS_WITH, members)}
        found = sets if found is None else found & sets
        if not found:
            break
    return found or set()
