"""The configurations that a query found → records, in words, with counts and where they are.

Which configurations these are was decided in `find_sql`; here they are counted within a release,
a stack or a hash, and told with the releases and stacks that hold them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from spack_cache_db.query.conditions import Scope, rows

CONFIGURATIONS = """
SELECT configurations.id, packages.name, versions.name, compilers.name, operating_systems.name,
  platforms.name, targets.name, configurations.variants
FROM configurations
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN platforms ON platforms.id = configurations.platform
JOIN targets ON targets.id = configurations.target
WHERE configurations.id IN (SELECT value FROM json_each(:ids))
"""
VARIANTS = """
SELECT member.variant_set, variants.text
FROM variant_set_members AS member JOIN variants ON variants.id = member.variant
WHERE member.variant_set IN (SELECT value FROM json_each(:ids)) ORDER BY variants.text
"""
# Of all specs of a configuration: counted when the file was built.
ALL_SEEN = """
SELECT id, first_seen, last_seen, spec_count FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
ALL_RELEASES = """
SELECT configuration, releases.name FROM configuration_releases
JOIN releases ON releases.id = configuration_releases.release
WHERE configuration IN (SELECT value FROM json_each(:ids)) ORDER BY releases.position
"""
ALL_STACKS = """
SELECT configuration, stacks.name FROM configuration_stacks
JOIN stacks ON stacks.id = configuration_stacks.stack
WHERE configuration IN (SELECT value FROM json_each(:ids)) AND NOT is_root ORDER BY stacks.name
"""
_CHOSEN = "SELECT specs.configuration, specs.id, specs.hash FROM specs"
_LISTED = " JOIN listings ON listings.release = :release AND listings.spec = specs.id"
_OF_THESE = """
WHERE configuration IN (SELECT value FROM json_each(:ids))
  AND (:hash = '' OR (hash >= :hash AND hash < :hash || '{'))"""
_IN_STACK = " AND specs.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)"
_LAST_FIRST = " ORDER BY specs.last_seen DESC, specs.hash"
SPECS = {
    (False, False): _CHOSEN + _OF_THESE + _LAST_FIRST,
    (False, True): _CHOSEN + _OF_THESE + _IN_STACK + _LAST_FIRST,
    (True, False): _CHOSEN + _LISTED + _OF_THESE + _LAST_FIRST,
    (True, True): _CHOSEN
    + _LISTED
    + _OF_THESE
    + _IN_STACK.replace("specs.stacks", "listings.stacks")
    + _LAST_FIRST,
}
"""The specs that count, by whether a release and a stack narrow them."""

# Of single specs: those whose hash begins as asked.
SPECS_SEEN = """
SELECT configuration, min(first_seen), max(last_seen) FROM specs
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY configuration
"""
# Releases are few and specs many, and only (release, spec) is a key of listings.
SPEC_RELEASES = """
SELECT DISTINCT specs.configuration, releases.name
FROM releases CROSS JOIN specs CROSS JOIN listings
  ON listings.release = releases.id AND listings.spec = specs.id
WHERE specs.id IN (SELECT value FROM json_each(:ids)) ORDER BY releases.position
"""
SPEC_STACKS = """
SELECT DISTINCT specs.configuration, stacks.name
FROM specs JOIN stack_set_members AS member ON member.stack_set = specs.stacks
JOIN stacks ON stacks.id = member.stack
WHERE specs.id IN (SELECT value FROM json_each(:ids)) AND NOT is_root ORDER BY stacks.name
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that satisfies a query.

    Attributes:
        package: its name, as are the five that follow.
        variants: their texts, sorted.
        spec_count: how many specs satisfy query, release and stack.
        releases: all releases that list the configuration, in the file's order: branches, then
            releases and snapshots from new to old.
        stacks: all stacks that hold it in some release, sorted, without `root`.
        first_seen: the day of the first snapshot that lists it.
        last_seen: the day of the last. These four are those of the spec where a hash is asked.
        hashes: the specs that `spec_count` counts, last seen first; None unless asked for.
    """

    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    spec_count: int
    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    hashes: tuple[str, ...] | None = None


class _Spec(NamedTuple):
    id: int
    hash: str


def found_records(
    conn: sqlite3.Connection,
    ids: list[int],
    scope: Scope,
    dag_hash: str | None,
    limit: int | None,
    with_hashes: bool,
) -> list[Found]:
    """Tell of the configurations `ids`, as far as specs of them are in the scope."""
    narrowed = not (dag_hash is None and scope.release is None and scope.stack is None)
    if not narrowed:
        ids = ids[:limit]
    specs = _specs(conn, ids, scope, dag_hash) if narrowed or with_hashes else {}
    if narrowed:
        # It may be in the release by one spec and in the stack by another, and by none in both.
        ids = [key for key in ids if key in specs][:limit]
    if dag_hash is None:
        seen = {key: days for key, *days in rows(conn, ALL_SEEN, _ids(ids))}
        releases = _grouped(rows(conn, ALL_RELEASES, _ids(ids)))
        stacks = _grouped(rows(conn, ALL_STACKS, _ids(ids)))
    else:
        chosen = _ids(spec.id for key in ids for spec in specs[key])
        seen = {key: days for key, *days in rows(conn, SPECS_SEEN, chosen)}
        releases = _grouped(rows(conn, SPEC_RELEASES, chosen))
        stacks = _grouped(rows(conn, SPEC_STACKS, chosen))
    return [
        Found(
            *words[:6],
            variants=words[6],
            spec_count=len(specs[key]) if narrowed else seen[key][2],
            releases=releases.get(key, ()),
            stacks=stacks.get(key, ()),
            first_seen=seen[key][0],
            last_seen=seen[key][1],
            hashes=tuple(spec.hash for spec in specs[key]) if with_hashes else None,
        )
        for key, words in _words(conn, ids)
    ]


def _specs(
    conn: sqlite3.Connection, ids: list[int], scope: Scope, dag_hash: str | None
) -> dict[int, list[_Spec]]:
    """Give the specs of configurations that are in the scope, last seen first."""
    sql = SPECS[scope.release is not None, scope.stack is not None]
    wanted = {"release": scope.release, "stack": scope.stack, "hash": dag_hash or ""}
    found: dict[int, list[_Spec]] = {}
    for configuration, key, text in rows(conn, sql, _ids(ids) | wanted):
        found.setdefault(configuration, []).append(_Spec(key, text))
    return found


def _words(
    conn: sqlite3.Connection, ids: list[int]
) -> Iterator[tuple[int, tuple[str, str, str, str, str, str, tuple[str, ...]]]]:
    """Give each configuration with its six names and its variants, in the order of `ids`."""
    found = {row[0]: row[1:] for row in rows(conn, CONFIGURATIONS, _ids(ids))}
    sets = _ids({row[6] for row in found.values()})
    variants = _grouped(rows(conn, VARIANTS, sets))
    for key in ids:
        *names, variant_set = found[key]
        package, version, compiler, system, platform, target = names
        words = (package, version, compiler, system, platform, target)
        yield key, (*words, variants.get(variant_set, ()))


def _grouped(pairs: Iterable[tuple[Any, ...]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def _ids(ids: Iterable[int]) -> dict[str, Any]:
    """Give ids as the one parameter that the statements above read them from."""
    return {"ids": json.dumps(list(ids))}
