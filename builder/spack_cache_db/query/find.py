"""What a spec query finds in a built file: the Python side of `find`."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from spack_cache_db.arguments import (
    AnyPath,
    checked_database,
    checked_limit,
    checked_text,
    checked_texts,
)
from spack_cache_db.errors import BuilderError
from spack_cache_db.query.asked import Conditions
from spack_cache_db.query.conditions import (
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
from spack_cache_db.query.verdicts import Verdict
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import is_known, known_targets


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
        last_seen: the day of the last. Where a hash, or what a spec depends on, is asked, these
            four are of the specs that satisfy the query.
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


class Question(NamedTuple):
    """What is asked of a file."""

    lookups: Lookups
    asked: Conditions
    scope: Scope


def find(
    db: AnyPath | sqlite3.Connection,
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
        db: a file made by `build`, as text or `Path`, or a connection to one.
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
        ArgumentError: an argument has a wrong type or value.
        QuerySyntaxError: the query is no spec; its text has a caret under the place.
        UnsupportedQuery: the file cannot answer the query; its text says why.
        UnknownNameError: the file has no such release or stack, archspec no such host.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(release=release, stack=stack, host=host, os=os, platform=platform)
    checked_limit(limit)
    asked = parse_query(checked_text("query", query))
    with connected(checked_database(db)) as conn:
        question = ask(conn, asked, release, stack, host, os, platform)
        return found_by(conn, question, slice(limit), with_hashes=with_hashes)


def ask(
    conn: sqlite3.Connection,
    query: SpecQuery,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
) -> Question:
    """Return what `find` is asked: see there for the arguments and the errors."""
    asked = asked_of(conn, query)
    lookups = read_lookups(conn)
    return Question(lookups, asked, scope_of(lookups, release, stack, host, os, platform))


def found_part(
    conn: sqlite3.Connection,
    lookups: Lookups,
    query: SpecQuery,
    scope: Scope,
    start: int,
    count: int,
) -> list[Found]:
    """Return what `find` finds of a query, at most `count` records from place `start` on.

    Raises:
        UnsupportedQuery: the file cannot answer the query; its text says why.
    """
    question = Question(lookups, asked_of(conn, query), scope)
    return found_by(conn, question, slice(start, start + count), with_hashes=False)


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
        close = hint(host, known_targets(), "expected a name such as zen3 or neoverse_v2")
        raise UnknownNameError(f"archspec knows no target {host!r}; {close}")
    return Scope(
        _id("release", release, lookups.releases),
        _id("stack", stack, lookups.stacks),
        host,
        os,
        platform,
    )


def notes_on(conn: sqlite3.Connection, question: Question) -> tuple[str, ...]:
    """Return what a user should know of an answer: how it was read, and what it leaves out."""
    lookups, asked, scope = question
    if asked.specs is None or not asked.specs.unknown:
        return asked.notes
    unknown = replace(asked, specs=Verdict(asked.specs.unknown))
    ids = configuration_ids(conn, lookups, unknown, scope)
    found = specs_in_scope(conn, ids, scope, asked.hash, among=asked.specs.unknown)
    count = sum(map(len, found.values()))
    if not count:
        return asked.notes
    specs = "1 more spec" if count == 1 else f"{count:,} more specs"
    return (*asked.notes, f"{specs} may satisfy this, but nothing in this file shows it")


def found_by(
    conn: sqlite3.Connection, question: Question, part: slice, *, with_hashes: bool
) -> list[Found]:
    """Return the configurations that satisfy a query, as far as specs of them are in the scope."""
    lookups, asked, scope = question
    ids = configuration_ids(conn, lookups, asked, scope)
    among = asked.specs.holds if asked.specs else None
    narrowed = asked.is_of_specs or scope.release is not None or scope.stack is not None
    specs: dict[int, list[Spec]] = {}
    if narrowed:
        specs = specs_in_scope(conn, ids, scope, asked.hash, among=among)
        ids = [key for key in ids if key in specs][part]
    else:
        ids = ids[part]
        specs = specs_in_scope(conn, ids, scope) if with_hashes else {}
    found = configurations_by_id(conn, lookups, ids)
    if narrowed:
        found = [each._replace(spec_count=len(specs[each.id])) for each in found]
    told: dict[int, tuple[FoundSpec, ...]] = {}
    if with_hashes or asked.is_of_specs:
        told = _told(conn, lookups, {key: specs[key] for key in ids})
    if asked.is_of_specs:
        presence = {key: joined(lookups, each) for key, each in told.items()}
    else:
        presence = presence_of_configurations(conn, lookups, ids)
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
        close = hint(name, ids, f"see {kind}s in the file")
        raise UnknownNameError(f"no {kind} is called {name!r}; {close}")
    return ids[name]


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return which names are close to one that is not known, or what to do where none is."""
    close = difflib.get_close_matches(name, [*known], cutoff=0.4)
    return f"close: {', '.join(close)}" if close else otherwise
