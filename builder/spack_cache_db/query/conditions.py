"""A spec query → what it asks of a file, and the configurations that satisfy it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from spack_cache_db.query.answerable import VIRTUALS
from spack_cache_db.query.asked import (
    Conditions,
    asks_more,
    beyond_configurations,
    conditions,
    of_configurations,
)
from spack_cache_db.query.dependencies.graph import Graph
from spack_cache_db.query.dependencies.recorded import has_records
from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.query.open import select_in
from spack_cache_db.query.selection import ANYWHERE, Scope, configurations_meeting, package_id
from spack_cache_db.spack.constraints import SpecQuery, spec_text

__all__ = [
    "ANYWHERE",
    "Scope",
    "asked_of",
    "configuration_ids",
    "every_configuration_id",
    "package_id",
]

# No spec's own: only a release that is not the foremost of its specs shows it.
OWN = "spec_count > 0"
OWN_CONFIGURATIONS = """
SELECT specs.configuration FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.id = wanted.value AND specs.release_count > 0
"""
EVERY_CONFIGURATION = f"""
{OWN_CONFIGURATIONS}UNION ALL
SELECT listed.configuration FROM json_each(:ids) AS wanted CROSS JOIN releases
CROSS JOIN listings AS listed
  ON listed.release = releases.id AND listed.spec = wanted.value
    AND listed.configuration IS NOT NULL
"""  # noqa: S608 - our own statement


def asked_of(conn: sqlite3.Connection, query: SpecQuery, graph: Graph | None = None) -> Conditions:
    """Return what a query asks of a file.

    A name that is virtual in Spack is a package like any other where the file has one. What is
    asked beyond configurations is answered here, as `specs`, where the file has records.

    Args:
        conn: a connection to the file.
        query: what is asked.
        graph: the records of the file, where they are asked more than once.

    Raises:
        QuerySyntaxError: the condition of a dependency (`when=`) is no spec.
        UnsupportedQuery: the file cannot answer the query.
    """
    is_package = query.name in VIRTUALS and package_id(conn, query.name) is not None
    if not asks_more(query) or not has_records(conn):
        unnamed = replace(query, name=None) if is_package else query
        return replace(conditions(unnamed), name=query.name)
    graph = graph or Graph(conn, read_lookups(conn)).about(query.name)
    specs = graph.verdict(query)
    beyond = spec_text(beyond_configurations(query))
    return replace(of_configurations(query), specs=specs, beyond=beyond, notes=graph.notes(query))


def configuration_ids(
    conn: sqlite3.Connection, lookups: Lookups, asked: Conditions, scope: Scope = ANYWHERE
) -> list[int]:
    """Return the configurations that satisfy a query, by package, newest version first.

    Each has a spec that counts (see `specs`). Where more than one of release, stack and hash is
    given, some may have none that is in all of them, which `specs_in_scope` finds out.
    """
    if scope.release is None:
        single = {"stack": scope.stack, "hash": asked.hash}
        ids = configurations_meeting(conn, lookups, asked, scope, single, (OWN,))
        return _holding(conn, ids, asked, OWN_CONFIGURATIONS)
    single = {"release": scope.release, "listed_hash": asked.hash}
    ids = configurations_meeting(conn, lookups, asked, scope, single)
    return _holding(conn, ids, asked, EVERY_CONFIGURATION)


def every_configuration_id(
    conn: sqlite3.Connection, lookups: Lookups, asked: Conditions
) -> list[int]:
    """Return all configurations that satisfy a query, those as well that are no spec's own.

    A hash is satisfied by the configurations that some release shows of it.
    """
    ids = configurations_meeting(conn, lookups, asked, ANYWHERE, {"listed_hash": asked.hash})
    return _holding(conn, ids, asked, EVERY_CONFIGURATION)


def _holding(conn: sqlite3.Connection, ids: list[int], asked: Conditions, sql: str) -> list[int]:
    """Return the configurations of which the statement gives one for some spec that satisfies."""
    if asked.specs is None:
        return ids
    found = {row[0] for row in select_in(conn, sql, asked.specs.holds)}
    return [each for each in ids if each in found]
