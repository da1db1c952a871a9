"""What a mirror has to keep for some environments, and what it could lose."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Set
from dataclasses import asdict, dataclass, replace
from typing import Any

from spack_cache_db.arguments import AnyPath, checked_file, checked_texts
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments import Environment, Lock
from spack_cache_db.query.answers import scope_of
from spack_cache_db.query.catalogue import specs_in_scope
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.connection import select
from spack_cache_db.query.coverage import cover_environment
from spack_cache_db.query.dependency_graph import read_nodes, read_run_time
from spack_cache_db.query.lookups import Database, Lookups, opened
from spack_cache_db.query.selection import configuration_ids

WITH_HASHES = "SELECT id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"


@dataclass(frozen=True, slots=True)
class Retention:
    """The binaries of a file, by whether some environments need them; hashes, sorted.

    Attributes:
        keep: what they need.
        prune: what they do not need.
        missing: what they name, or would need to run, and the file has no binary of.
    """

    keep: tuple[str, ...]
    prune: tuple[str, ...]
    missing: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the lists as an object of JSON."""
        return asdict(self)


def retention(
    db: Database,
    environments: Iterable[AnyPath],
    *,
    release: str | None = None,
    stack: str | None = None,
) -> Retention:
    """Return what a mirror has to keep for some environments, and what it could lose.

    Of a `spack.lock` every node is kept. Of a `spack.yaml` or a list, it is the binary of each spec
    that `cover` names. With these is kept whatever they need to run, as far as the file tells.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        environments: the paths of the environments; of an empty list nothing is kept.
        release: the mirror's release, if the file has others.
        stack: the mirror's stack.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnreadableEnvironment: an environment cannot be read.
        UnknownNameError: the file has no such release or stack.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(release=release, stack=stack)
    read = [read_environment_file(checked_file("environments", each)) for each in environments]
    with opened(db) as (conn, lookups):
        return retained(conn, lookups, read, scope_of(lookups, release, stack))


def retained(
    conn: sqlite3.Connection,
    lookups: Lookups,
    environments: Iterable[Environment],
    scope: Conditions,
) -> Retention:
    """Return what environments need of the binaries in a scope; see `retention`."""
    named = {each for one in environments for each in _named(conn, lookups, one, scope)}
    needed = named | _run_time(conn, lookups, named)
    every = _binaries(conn, lookups, scope)
    keep, prune, missing = needed & every, every - needed, needed - every
    return Retention(*(tuple(sorted(each)) for each in (keep, prune, missing)))


def _named(
    conn: sqlite3.Connection, lookups: Lookups, environment: Environment, scope: Conditions
) -> Iterator[str]:
    """Yield the hashes that an environment locks, or that answer its specs."""
    if isinstance(environment, Lock):
        yield from (each.hash for each in environment.specs)
        return
    yield from (each.hash for each in environment.locked)
    specs = replace(environment, locked=())
    for each in cover_environment(conn, lookups, specs, scope).specs:
        if each.hash:
            yield each.hash


def _run_time(conn: sqlite3.Connection, lookups: Lookups, hashes: Set[str]) -> set[str]:
    """Return the hashes of some specs and of what they need to run, without externals."""
    given = json.dumps(sorted(hashes))
    ids = [spec for (spec,) in select(conn, WITH_HASHES, hashes=given)]
    nodes = read_nodes(conn, read_run_time(conn, lookups, ids).edges)
    return {each.hash for each in nodes.values() if each.kind != "external"}


def _binaries(conn: sqlite3.Connection, lookups: Lookups, scope: Conditions) -> set[str]:
    ids = configuration_ids(conn, lookups, scope)
    return {each.hash for some in specs_in_scope(conn, ids, scope).values() for each in some}
