"""What a spec query finds in a built file, as records: the Python side of `find`.

`find_sql` decides which configurations satisfy the query; here they are counted within a
release, a stack or a hash, and told with the releases and stacks that hold them.
"""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from builder.errors import BuilderError, DatabaseError
from builder.find_sql import Scope, asked_of, configuration_ids, read_dictionaries, rows
from builder.info import open_database
from builder.spack.query import parse_query
from builder.spack.targets import is_known

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
_NAMES = {
    "release": ("SELECT name, id FROM releases ORDER BY position", "releases"),
    "stack": ("SELECT name, id FROM stacks WHERE NOT is_root ORDER BY name", "stacks"),
}


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


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


def find(
    db: str | Path | sqlite3.Connection,
    query: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    limit: int | None = None,
    with_hashes: bool = False,
) -> list[Found]:
    """Find the configurations in a built file that satisfy a spec in Spack's syntax.

    Args:
        db: a file made by `build`, or a connection to one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`; `*` is any package.
        release: only specs that this release lists.
        stack: only specs in this stack; in that release, where one is given.
        host: only what runs on a machine of this CPU target, such as `zen3`.
        os: only what was built for this operating system, such as `ubuntu24.04`.
        platform: only what was built for this platform, such as `linux`.
        limit: at most so many records.
        with_hashes: give the hashes as well.

    Returns:
        By package, newest version first, then in the file's order.

    Raises:
        QuerySyntaxError: the query is no spec; its text has a caret under the place.
        UnsupportedQuery: pages cannot answer the query; its text says why.
        UnknownNameError: the file has no such release or stack, archspec no such host.
        DatabaseError: the file is not one of this builder.
    """
    parsed = parse_query(query)
    with connection(db) as conn:
        asked = asked_of(conn, parsed)
        known = read_dictionaries(conn)
        if host is not None and host not in known.targets and not is_known(host):
            raise UnknownNameError(f"archspec knows no target {host!r}")
        scope = Scope(_id(conn, "release", release), _id(conn, "stack", stack), host, os, platform)
        ids = configuration_ids(conn, known, asked, scope)
        return _records(conn, ids, scope, asked.hash, limit, with_hashes)


@contextmanager
def connection(db: str | Path | sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Give a connection to a built file; one that was given stays open."""
    if isinstance(db, sqlite3.Connection):
        yield db
        return
    conn = open_database(Path(db))
    try:
        yield conn
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{db}: is damaged: {error}; build it anew") from None
    finally:
        conn.close()


def close_names(conn: sqlite3.Connection, package: str) -> list[str]:
    """Give the packages of a file whose names are close to one that it does not have."""
    names = [row[0] for row in rows(conn, "SELECT name FROM packages")]
    return difflib.get_close_matches(package, names, cutoff=0.7)


def _id(conn: sqlite3.Connection, kind: str, name: str | None) -> int | None:
    """Give the id of a release or stack.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if name is None:
        return None
    sql, plural = _NAMES[kind]
    ids: dict[str, int] = dict(rows(conn, sql))
    if name not in ids:
        close = difflib.get_close_matches(name, ids, cutoff=0.4)
        hint = f"close: {', '.join(close)}" if close else f"see {plural} in the file"
        raise UnknownNameError(f"no {kind} is called {name!r}; {hint}")
    return ids[name]


def _records(
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
