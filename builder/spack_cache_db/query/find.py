"""What a spec query finds in a built file: the Python side of `find`."""

from __future__ import annotations

import difflib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions import Scope, asked_of, configuration_ids
from spack_cache_db.query.configurations import configurations_by_id
from spack_cache_db.query.lookups import Lookups, Release, Stack, read_lookups
from spack_cache_db.query.open import connected, select
from spack_cache_db.query.specs import (
    presence_of_configurations,
    presence_of_specs,
    specs_in_scope,
)
from spack_cache_db.records import Configuration
from spack_cache_db.spack.query import parse_query
from spack_cache_db.spack.targets import is_known

PACKAGES = "SELECT name FROM packages"


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that satisfies a query; its own fields can be read here as well.

    Attributes:
        configuration: package, version, compiler, os, platform, target and variants.
        spec_count: how many specs satisfy query, release and stack.
        releases: all releases that list the configuration, in the file's order: branches, then
            releases and snapshots from new to old.
        stacks: all stacks that hold it in some release, sorted, without `root`.
        first_seen: the day of the first snapshot that lists it.
        last_seen: the day of the last. These four are those of the spec where a hash is asked.
        hashes: the specs that `spec_count` counts, last seen first; None unless asked for.
    """

    configuration: Configuration
    spec_count: int
    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    hashes: tuple[str, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a field of the configuration: `found.version`."""
        if name in Configuration._fields:
            return getattr(self.configuration, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
    with connected(db) as conn:
        asked = asked_of(conn, parsed)
        lookups = read_lookups(conn)
        if host is not None and host not in lookups.families and not is_known(host):
            raise UnknownNameError(f"archspec knows no target {host!r}")
        scope = Scope(
            _id("release", release, lookups.releases),
            _id("stack", stack, lookups.stacks),
            host,
            os,
            platform,
        )
        ids = configuration_ids(conn, lookups, asked, scope)
        return _found(conn, lookups, ids, scope, asked.hash, limit, with_hashes)


def close_names(conn: sqlite3.Connection, package: str) -> list[str]:
    """Return the packages of a file whose names are close to one that it does not have."""
    names = [row[0] for row in select(conn, PACKAGES)]
    return difflib.get_close_matches(package, names, cutoff=0.7)


def _found(
    conn: sqlite3.Connection,
    lookups: Lookups,
    ids: list[int],
    scope: Scope,
    prefix: str | None,
    limit: int | None,
    with_hashes: bool,
) -> list[Found]:
    """Return the configurations `ids`, as far as specs of them are in the scope."""
    narrowed = not (prefix is None and scope.release is None and scope.stack is None)
    if not narrowed:
        ids = ids[:limit]
    specs = specs_in_scope(conn, ids, scope, prefix) if narrowed or with_hashes else {}
    if narrowed:
        # It may be in the release by one spec and in the stack by another, and by none in both.
        ids = [key for key in ids if key in specs][:limit]
    if prefix is None:
        presence = presence_of_configurations(conn, ids)
    else:
        presence = presence_of_specs(conn, (spec for key in ids for spec in specs[key]))
    return [
        Found(
            each.configuration,
            spec_count=len(specs[each.id]) if narrowed else each.spec_count,
            releases=presence.releases.get(each.id, ()),
            stacks=presence.stacks.get(each.id, ()),
            first_seen=presence.seen[each.id][0],
            last_seen=presence.seen[each.id][1],
            hashes=tuple(spec.hash for spec in specs[each.id]) if with_hashes else None,
        )
        for each in configurations_by_id(conn, lookups, ids)
    ]


def _id(kind: str, name: str | None, known: dict[int, Release] | dict[int, Stack]) -> int | None:
    """Return the id of a release or stack.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if name is None:
        return None
    ids = {each.name: key for key, each in known.items()}
    if name not in ids:
        close = difflib.get_close_matches(name, ids, cutoff=0.4)
        hint = f"close: {', '.join(close)}" if close else f"see {kind}s in the file"
        raise UnknownNameError(f"no {kind} is called {name!r}; {hint}")
    return ids[name]
