"""Which nodes of a lockfile have a binary, and which have another of the same configuration."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from spack_cache_db.environments.environment import LockedSpec
from spack_cache_db.query.conditions import Scope
from spack_cache_db.query.cover.records import CoveredNode
from spack_cache_db.query.open import select
from spack_cache_db.query.specs import specs_in_scope
from spack_cache_db.query.why_not.candidates import Candidates, Row
from spack_cache_db.records import Configuration

HASHES_AT_ONCE = 4_000
"""So many hashes make a text of less than 200 kB, the longest value that the site allows."""

MOST_OTHERS = 5
BINARIES = """
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
WHERE specs.release_count > 0
  AND (:stack IS NULL OR specs.stacks IN (
    SELECT stack_set FROM stack_set_members WHERE stack = :stack))
"""
LISTED_BINARIES = """
SELECT hash FROM json_each(:hashes) AS wanted CROSS JOIN specs ON specs.hash = wanted.value
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE :stack IS NULL OR listings.stacks IN (
  SELECT stack_set FROM stack_set_members WHERE stack = :stack)
"""


def cover_lock(
    conn: sqlite3.Connection, candidates: Candidates, locked: tuple[LockedSpec, ...], scope: Scope
) -> tuple[CoveredNode, ...]:
    """Return the answers for the nodes of a lockfile, in their order.

    Args:
        conn: a connection to the file.
        candidates: the configurations of the file.
        locked: the nodes.
        scope: a release and a stack that must have the binaries; a machine is not looked at.
    """
    place = Scope(scope.release, scope.stack)
    binaries = _binaries(conn, [each.hash for each in locked], place)
    lacking = [each.configuration for each in locked if each.hash not in binaries]
    rows = _rows(candidates, lacking)
    others = specs_in_scope(conn, {row.id for row in rows.values()}, place)
    found = []
    for each in locked:
        words = each.configuration
        spec = f"{words.package}@{words.version}"
        if each.hash in binaries:
            found.append(CoveredNode(spec, "binary", each.hash, each.is_root, words))
            continue
        row = rows.get(words)
        hashes = [other.hash for other in others.get(row.id, ())] if row else []
        status = "rebuilt" if hashes else "missing"
        few = tuple(hashes[:MOST_OTHERS])
        found.append(CoveredNode(spec, status, each.hash, each.is_root, words, few, len(hashes)))
    return tuple(found)


def _binaries(conn: sqlite3.Connection, hashes: list[str], scope: Scope) -> set[str]:
    sql = BINARIES if scope.release is None else LISTED_BINARIES
    found: set[str] = set()
    for start in range(0, len(hashes), HASHES_AT_ONCE):
        some = json.dumps(hashes[start : start + HASHES_AT_ONCE])
        given = {"hashes": some, "release": scope.release, "stack": scope.stack}
        found.update(row[0] for row in select(conn, sql, **given))
    return found


def _rows(candidates: Candidates, wanted: Iterable[Configuration]) -> dict[Configuration, Row]:
    """Return the configurations of the file that are the same as those wanted."""
    asked = {*wanted}
    names = {each.package for each in asked}
    candidates.prepare(names)
    rows = (row for name in names for row in candidates.rows(name))
    words = ((candidates.configuration(row), row) for row in rows)
    return {configuration: row for configuration, row in words if configuration in asked}
