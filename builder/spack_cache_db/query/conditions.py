"""A spec query → the configurations that satisfy it: the predicates of `spack` over SQL.

Each condition is decided in Python on its small dictionary table (the versions of one package,
the compilers, the targets, …), so the large tables only ever see lists of ids, as one bound JSON
parameter each. Statements are put together from the fixed fragments below, never from input.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from spack_cache_db.query.answerable import VIRTUALS
from spack_cache_db.query.asked import Conditions, conditions
from spack_cache_db.spack.match import (
    compiler_matches,
    target_matches,
    variant_matches,
    version_matches,
)
from spack_cache_db.spack.query import SpecQuery, VariantConstraint
from spack_cache_db.spack.targets import runs_on
from spack_cache_db.spack.variants import Variant, parse_variant

PACKAGE = "SELECT id FROM packages WHERE name = :name"
VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = "SELECT id, name FROM versions WHERE package = :package"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:variants))
"""
CONFIGURATIONS = """
SELECT configurations.id FROM configurations
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
WHERE """
IN_ORDER = " ORDER BY packages.name, versions.position DESC, configurations.id"
_FILTERS = {
    "package": "configurations.package = :package",
    "version": "configurations.version IN (SELECT value FROM json_each(:version))",
    "compiler": "configurations.compiler IN (SELECT value FROM json_each(:compiler))",
    "os": "configurations.os = :os",
    "platform": "configurations.platform = :platform",
    "target": "configurations.target IN (SELECT value FROM json_each(:target))",
    "variants": "configurations.variants IN (SELECT value FROM json_each(:variants))",
    "hash": """configurations.id IN (
  SELECT configuration FROM specs WHERE hash >= :hash AND hash < :hash || '{')""",
    "release": """configurations.id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": """configurations.id IN (
  SELECT configuration FROM configuration_stacks WHERE stack = :stack)""",
}


@dataclass(frozen=True)
class Dictionaries:
    """The small tables of one file, as name or parsed text and id."""

    compilers: dict[str, int]
    systems: dict[str, int]
    platforms: dict[str, int]
    targets: dict[str, int]
    variants: dict[str, list[tuple[int, Variant]]]
    versions: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scope:
    """What narrows an answer besides the query: ids of a release and a stack, a machine.

    Attributes:
        release: the release that must list the configuration.
        stack: the stack that must hold it, in any release.
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


def rows(
    conn: sqlite3.Connection, sql: str, parameters: dict[str, Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Give the rows of a statement as tuples, whatever the connection makes of rows."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return iter(cursor.execute(sql, parameters or {}))


def read_dictionaries(conn: sqlite3.Connection) -> Dictionaries:
    """Read the small tables: a few milliseconds, worth keeping where a file is asked often."""
    variants: dict[str, list[tuple[int, Variant]]] = {}
    for key, text in rows(conn, "SELECT id, text FROM variants"):
        try:
            variant = parse_variant(text)
        except ValueError:
            # Pages may print what Spack would not read as a variant: no query can ask for it.
            continue
        variants.setdefault(variant.name, []).append((key, variant))
    return Dictionaries(
        compilers=dict(rows(conn, "SELECT name, id FROM compilers")),
        systems=dict(rows(conn, "SELECT name, id FROM operating_systems")),
        platforms=dict(rows(conn, "SELECT name, id FROM platforms")),
        targets=dict(rows(conn, "SELECT name, id FROM targets")),
        variants=variants,
    )


def package_id(conn: sqlite3.Connection, name: str) -> int | None:
    """Give the id of a package, None where the file has none of that name."""
    return next((row[0] for row in rows(conn, PACKAGE, {"name": name})), None)


def asked_of(conn: sqlite3.Connection, query: SpecQuery) -> Conditions:
    """Give what a query asks, as `conditions` does.

    A name that is virtual in Spack is a package like any other where the file has one.

    Raises:
        UnsupportedQuery: pages cannot answer the query.
    """
    if query.name in VIRTUALS and package_id(conn, query.name) is not None:
        return replace(conditions(replace(query, name=None)), name=query.name)
    return conditions(query)


def configuration_ids(
    conn: sqlite3.Connection, known: Dictionaries, asked: Conditions, scope: Scope = ANYWHERE
) -> list[int]:
    """Give the configurations that satisfy a query, by package, newest version first."""
    parameters = _resolve(conn, known, asked, scope)
    if parameters is None:
        return []
    filters = [_FILTERS[name] for name in parameters] or ["1"]
    sql = CONFIGURATIONS + "\n  AND ".join(filters) + IN_ORDER
    return [row[0] for row in rows(conn, sql, parameters)]


def _resolve(
    conn: sqlite3.Connection, known: Dictionaries, asked: Conditions, scope: Scope
) -> dict[str, int | str] | None:
    """Give the parameter of each filter, None where nothing can satisfy one of them."""
    found: dict[str, int | str | None] = {}
    if asked.name is not None:
        found["package"] = package_id(conn, asked.name)
        if found["package"] is None:
            return None
    if asked.versions is not None:
        found["version"] = _ids(_versions(conn, known, asked, found.get("package")))
    if asked.compilers:
        found["compiler"] = _ids(_compilers(known, asked))
    if asked.target is not None or scope.host is not None:
        found["target"] = _ids(_targets(known, asked.target, scope.host))
    for name, table in (("os", known.systems), ("platform", known.platforms)):
        wanted = {getattr(asked, name), getattr(scope, name)} - {None}
        if wanted:
            found[name] = table.get(min(wanted)) if len(wanted) == 1 else None
    if asked.variants:
        found["variants"] = _ids(_variant_sets(conn, known, asked.variants))
    for name, value in (("hash", asked.hash), ("release", scope.release), ("stack", scope.stack)):
        if value is not None:
            found[name] = value
    parameters = {name: value for name, value in found.items() if value is not None}
    return parameters if len(parameters) == len(found) else None


def _ids(ids: Iterable[int]) -> str | None:
    """Give ids as one parameter, None where there are none."""
    listed = sorted(ids)
    return json.dumps(listed) if listed else None


def _versions(
    conn: sqlite3.Connection, known: Dictionaries, asked: Conditions, package: int | str | None
) -> Iterator[int]:
    if package is not None:
        named: Iterable[tuple[Any, ...]] = rows(conn, VERSIONS_OF_PACKAGE, {"package": package})
    else:
        if not known.versions:
            known.versions.extend((key, name) for key, name in rows(conn, VERSIONS))
        named = known.versions
    # Many packages share a version such as 1.0.0.
    lies_within = lru_cache(maxsize=None)(lambda name: version_matches(asked.versions, name))
    return (key for key, name in named if lies_within(name))


def _compilers(known: Dictionaries, asked: Conditions) -> Iterator[int]:
    for name, key in known.compilers.items():
        if all(compiler_matches(constraint, name) for constraint in asked.compilers):
            yield key


def _targets(known: Dictionaries, constraint: str | None, host: str | None) -> Iterator[int]:
    for name, key in known.targets.items():
        if target_matches(constraint, name) and (host is None or runs_on(name, host)):
            yield key


def _variant_sets(
    conn: sqlite3.Connection, known: Dictionaries, constraints: tuple[VariantConstraint, ...]
) -> set[int]:
    """Give the variant sets in which each constraint is met by a member."""
    found: set[int] | None = None
    # The column is where a constraint stands, which says nothing of what it asks.
    for constraint in dict.fromkeys(replace(each, column=0) for each in constraints):
        candidates = known.variants.get(constraint.name, ())
        members = [key for key, variant in candidates if variant_matches(constraint, variant)]
        sets = {row[0] for row in rows(conn, SETS_WITH, {"variants": json.dumps(members)})}
        found = sets if found is None else found & sets
        if not found:
            break
    return found or set()
