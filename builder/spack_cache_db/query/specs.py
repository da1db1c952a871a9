"""The specs of configurations: which of them count for an answer, and where each of them is.

Releases may contradict each other: the same hash with one configuration here and another there.
One rule decides which counts. In an answer about a release, a spec has the configuration that this
release shows. In every other answer it has its own: that of the foremost release that lists it
(`specs.configuration`). A spec that no release lists counts nowhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import IDS_AT_ONCE, json_pieces, select, select_in
from spack_cache_db.query.selection import Scope

_COLUMNS = "specs.id, specs.hash, specs.stacks, specs.first_seen, specs.last_seen"
BEGINNING = "(:prefix = '' OR (specs.hash >= :prefix AND specs.hash < :prefix || '{'))"
IN_STACK = """
(:stack IS NULL OR {}.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack))
"""
# The ids of a configuration's own specs are in the order in which they count: what is current
# first. Those of what a release shows otherwise lie elsewhere.
_IN_ORDER = "\nORDER BY 2 LIMIT :limit"
_PLACE = """\
CASE WHEN EXISTS (
    SELECT 1 FROM listings AS odd
    WHERE odd.release = :release AND odd.configuration = wanted.value)
  THEN (SELECT printf('%08d', releases.id) || specs.hash FROM releases
    CROSS JOIN listings AS every ON every.release = releases.id AND every.spec = specs.id
    ORDER BY releases.id LIMIT 1)
  ELSE specs.id END"""

OWN_SPECS = f"""
SELECT specs.configuration, specs.id, {_COLUMNS}
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
WHERE specs.release_count > 0
  AND {IN_STACK.format("specs")} AND {BEGINNING}{_IN_ORDER}
"""  # noqa: S608 - our own columns
LISTED_SPECS = f"""
SELECT shown.configuration, {_PLACE}, {_COLUMNS}
FROM json_each(:ids) AS wanted
CROSS JOIN release_specs AS shown
  ON shown.configuration = wanted.value AND shown.release = :release
CROSS JOIN specs ON specs.id = shown.spec
WHERE {IN_STACK.format("shown")} AND {BEGINNING}{_IN_ORDER}
"""  # noqa: S608 - our own columns

# Only (release, spec) is a key of listings, and the specs of a configuration lie side by side.
RELEASES = """
SELECT listings.spec, listings.release
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN listings
  ON listings.release = releases.id
  AND listings.spec BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
"""
BY_PREFIX = """
SELECT hash FROM specs WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""


class Spec(NamedTuple):
    """A spec of a file; `stacks` is the id of the set of stacks that have it in any release."""

    id: int
    hash: str
    stacks: int
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class Presence:
    """Where something is: releases in the file's order, stacks sorted, first and last day."""

    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class FoundSpec(Presence):
    """A spec that satisfies a query, and where it is in any release."""

    hash: str


def specs_in_scope(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    scope: Scope,
    prefix: str | None = None,
    limit: int = -1,
    among: Set[int] | None = None,
) -> dict[int, list[Spec]]:
    """Return the specs that count, by the id of the configuration that they count for.

    Args:
        ids: the configurations.
        scope: a release and a stack narrow them: to that stack in that release, if both are given.
        prefix: what their hashes begin with.
        limit: at most so many, where one configuration is asked for; -1 for all.
        among: only these, by their ids.

    Returns:
        Of each configuration those first whose foremost release is first in the file's order, then
        by hash. Configurations without a spec in the scope are left out.
    """
    sql = OWN_SPECS if scope.release is None else LISTED_SPECS
    wanted = {"release": scope.release, "stack": scope.stack, "prefix": prefix or ""}
    rows = select_in(conn, sql, ids, limit=limit if among is None else -1, **wanted)
    if among is not None:
        rows = islice((row for row in rows if row[2] in among), limit if limit >= 0 else None)
    found: dict[int, list[Spec]] = {}
    for configuration, _, *spec in rows:
        found.setdefault(configuration, []).append(Spec._make(spec))
    return found


def found_specs(
    conn: sqlite3.Connection, lookups: Lookups, specs: Iterable[Spec]
) -> Iterator[FoundSpec]:
    """Yield the specs with all that there is to tell of them, in their order."""
    specs = [*specs]
    releases: dict[int, list[int]] = {spec.id: [] for spec in specs}
    # Very many specs are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    for runs in json_pieces(_runs(sorted(releases)), IDS_AT_ONCE // 4):
        for spec, release in select(conn, RELEASES, runs=runs):
            releases[spec].append(release)
    stack_sets = lookups.stack_sets(conn)
    for spec in specs:
        yield FoundSpec(
            names(tuple(releases[spec.id])),
            stack_sets[spec.stacks],
            spec.first_seen,
            spec.last_seen,
            spec.hash,
        )


def joined(lookups: Lookups, parts: Iterable[Presence]) -> Presence:
    """Return where any of several things is."""
    parts = [*parts]
    releases = {name for part in parts for name in part.releases}
    return Presence(
        tuple(each.name for each in lookups.releases.values() if each.name in releases),
        tuple(sorted({name for part in parts for name in part.stacks})),
        min((part.first_seen for part in parts if part.first_seen), default=None),
        max((part.last_seen for part in parts if part.last_seen), default=None),
    )


def hashes_beginning(conn: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    """Return the first hashes that begin with `prefix`, in order."""
    return tuple(row[0] for row in select(conn, BY_PREFIX, prefix=prefix, limit=limit))


def _runs(ids: Iterable[int]) -> list[list[int]]:
    """Return first and last of the ids that follow each other; the ids are sorted."""
    runs: list[list[int]] = []
    for each in ids:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return runs
