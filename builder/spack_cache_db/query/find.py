"""What a spec query finds in a built file: the Python side of `find`."""

from __future__ import annotations

import difflib
import sqlite3
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.conditions import (
    ANYWHERE,
    Scope,
    asked_of,
    configuration_ids,
)
from spack_cache_db.query.configurations import (
    Counted,
    configurations_by_id,
    presence_of_configurations,
)
from spack_cache_db.query.lookups import Lookups, Release, Stack, read_lookups
from spack_cache_db.query.open import connected
from spack_cache_db.query.specs import (
    FoundSpec,
    Presence,
    Spec,
    found_specs,
    joined,
    specs_in_scope,
)
from spack_cache_db.records import Configuration
from spack_cache_db.spack.query import SpecQuery, parse_query
from spack_cache_db.spack.targets import is_known


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


@dataclass(frozen=True, slots=True)
class Found(Presence):
    """A configuration that satisfies a query; its own fields can be read here as well.

    Attributes:
        releases: all releases that show the configuration, in the file's order: branches, then
            releases and snapshots from new to old.
        stacks: all stacks that hold it in some release, sorted, without `root`.
        first_seen: the day of the first snapshot that shows it.
        last_seen: the day of the last. Where a hash is asked, these four are of its specs.
        configuration: package, version, compiler, os, platform, target and variants.
        spec_count: how many specs satisfy query, release and stack.
        specs: those specs, what is current first; None unless asked for.
    """

    configuration: Configuration
    spec_count: int
    specs: tuple[FoundSpec, ...] | None = None

    @property
    def hashes(self) -> tuple[str, ...] | None:
        """The hashes of the specs; None unless asked for."""
        return None if self.specs is None else tuple(spec.hash for spec in self.specs)

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
        with_hashes: tell of each spec as well.

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
        scope = scope_of(lookups, release, stack, host, os, platform)
        return _found(conn, lookups, asked, scope, slice(limit), with_hashes)


def found_part(
    conn: sqlite3.Connection, lookups: Lookups, query: SpecQuery, start: int, count: int
) -> list[Found]:
    """Return what `find` finds of a query, at most `count` records from place `start` on.

    Raises:
        UnsupportedQuery: pages cannot answer the query; its text says why.
    """
    part = slice(start, start + count)
    return _found(conn, lookups, asked_of(conn, query), ANYWHERE, part, with_hashes=False)


def scope_of(
    lookups: Lookups,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
) -> Scope:
    """Return what narrows an answer, by names.

    Raises:
        UnknownNameError: the file has no such release or stack, archspec no such host.
    """
    if host is not None and host not in lookups.families and not is_known(host):
        raise UnknownNameError(f"archspec knows no target {host!r}")
    return Scope(
        _id("release", release, lookups.releases),
        _id("stack", stack, lookups.stacks),
        host,
        os,
        platform,
    )


def _found(
    conn: sqlite3.Connection,
    lookups: Lookups,
    asked: Conditions,
    scope: Scope,
    part: slice,
    with_hashes: bool,
) -> list[Found]:
    """Return the configurations that satisfy a query, as far as specs of them are in the scope."""
    ids = configuration_ids(conn, lookups, asked, scope)
    narrowed = not (asked.hash is None and scope.release is None and scope.stack is None)
    specs: dict[int, list[Spec]] = {}
    if narrowed:
        specs = specs_in_scope(conn, ids, scope, asked.hash)
        ids = [key for key in ids if key in specs][part]
    else:
        ids = ids[part]
        specs = specs_in_scope(conn, ids, scope) if with_hashes else {}
    found = configurations_by_id(conn, lookups, ids)
    if narrowed:
        found = [each._replace(spec_count=len(specs[each.id])) for each in found]
    told: dict[int, tuple[FoundSpec, ...]] = {}
    if with_hashes or asked.hash is not None:
        told = _told(conn, lookups, {key: specs[key] for key in ids})
    if asked.hash is None:
        presence = presence_of_configurations(conn, lookups, ids)
    else:
        presence = {key: joined(lookups, each) for key, each in told.items()}
    return [_record(each, presence[each.id], told if with_hashes else {}) for each in found]


def _told(
    conn: sqlite3.Connection, lookups: Lookups, specs: dict[int, list[Spec]]
) -> dict[int, tuple[FoundSpec, ...]]:
    """Return what there is to tell of the specs of each configuration."""
    told = found_specs(conn, lookups, [spec for some in specs.values() for spec in some])
    return {key: tuple(islice(told, len(some))) for key, some in specs.items()}


def _record(each: Counted, presence: Presence, told: dict[int, tuple[FoundSpec, ...]]) -> Found:
    return Found(
        presence.releases,
        presence.stacks,
        presence.first_seen,
        presence.last_seen,
        each.configuration,
        each.spec_count,
        told.get(each.id),
    )


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
