"""A built file as a whole: what is in it, its binaries, which of them are needed, and `Cache`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from spack_cache_db import schema
from spack_cache_db.arguments import AnyPath, checked_file, checked_texts
from spack_cache_db.environment_files import read_environment_file
from spack_cache_db.environments import Environment
from spack_cache_db.query.answers import find, history
from spack_cache_db.query.catalogue import configurations_by_id, found_specs, specs_in_scope
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.connection import Database, Lookups, OpenFile, connected, opened, select
from spack_cache_db.query.coverage import cover, cover_environment
from spack_cache_db.query.dependency_graph import read_nodes, read_run_time
from spack_cache_db.query.difference import diff
from spack_cache_db.query.package_data import behind, package_data
from spack_cache_db.query.questions import scope_of
from spack_cache_db.query.selection import configuration_ids

CONFIGURATIONS_AT_ONCE = 1_000


_BESIDE_SPACK = """
SELECT
  (SELECT count(*) FROM package_status WHERE versions_behind > 0) AS packages_behind,
  (SELECT count(*) FROM package_status WHERE spec_count = 0) AS packages_missing,
  count(*) FILTER (WHERE is_known) AS versions_deprecated,
  count(*) FILTER (WHERE NOT is_known) AS versions_unknown
FROM (
  SELECT DISTINCT configurations.version, known_versions.version IS NOT NULL AS is_known
  FROM known_packages JOIN packages ON packages.name = known_packages.name
  JOIN configurations ON configurations.package = packages.id AND configurations.spec_count > 0
  JOIN versions ON versions.id = configurations.version
  LEFT JOIN known_versions ON known_versions.package = known_packages.name
    AND known_versions.version = versions.name
  WHERE coalesce(known_versions.deprecated, known_versions.version IS NULL)
    AND known_packages.versions <> '[]')
"""
WITH_HASHES = "SELECT id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"
P = ParamSpec("P")
T = TypeVar("T")


def info(file: AnyPath) -> dict[str, Any]:
    """Return what is in a file and where it came from, as plain values.

    Raises:
        ArgumentError: the file is no path.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    path = checked_file("file", file)
    with connected(path) as conn:
        counts = {
            name: conn.execute(f"SELECT count(*) FROM {counted}").fetchone()[0]
            for name, counted in schema.COUNTED.items()
        }
        formats = {
            f"{name}_by_format": dict(
                conn.execute(
                    f"SELECT format, count(*) FROM {schema.COUNTED[name]} GROUP BY 1 ORDER BY 1"
                )
            )
            for name in ("pages", "indexes")
        }
        beside_spack = {}
        if counts["known_packages"]:
            found = conn.execute(_BESIDE_SPACK)
            beside_spack = dict(zip((each[0] for each in found.description), *found, strict=True))
        kinds = dict(conn.execute("SELECT kind, count(*) FROM releases GROUP BY kind"))
        first, last = conn.execute("SELECT min(date), max(date) FROM releases").fetchone()
        origin = dict(conn.execute("SELECT name, value FROM origin ORDER BY name"))
    return {
        "file": str(path),
        "size": path.stat().st_size,
        "schema_version": schema.SCHEMA_VERSION,
        **counts,
        **formats,
        "compared_with_spack": beside_spack,
        "releases_by_kind": kinds,
        "first_snapshot": first,
        "last_snapshot": last,
        "origin": origin,
    }


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary, and where it is.

    Attributes:
        hash: its hash.
        package: its package; `version` to `variants` are what can be seen of it, in normal form.
        releases: all releases that list it, in the file's order.
        stacks: all stacks that hold it in some release, sorted, without `root`.
        first_seen: the day of the first snapshot that lists it, None if none does.
        last_seen: the day of the last.
    """

    hash: str
    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the binary as an object of JSON."""
        return asdict(self)


def binaries(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> Iterator[Binary]:
    """Return an iterator over all binaries in a built file.

    Some thousands are read at a time, so that it takes no more memory for a larger file. Other
    questions can be asked meanwhile.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        release: only what this release lists.
        stack: only what is in this stack; in that release, where one is given.

    Returns:
        In the order of `find`.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the file has no such release or stack.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(release=release, stack=stack)
    with opened(db) as lookups:
        scope = scope_of(lookups, release, stack)
        ids = configuration_ids(lookups, scope)
    return _read(db, ids, scope)


def _read(db: Database, ids: list[int], scope: Conditions) -> Iterator[Binary]:
    is_open = isinstance(db, OpenFile | sqlite3.Connection)
    whole: AbstractContextManager[Database] = nullcontext(db) if is_open else OpenFile(str(db))
    with whole as file:
        for start in range(0, len(ids), CONFIGURATIONS_AT_ONCE):
            yield from _some(file, ids[start : start + CONFIGURATIONS_AT_ONCE], scope)


def _some(db: Database, ids: list[int], scope: Conditions) -> list[Binary]:
    with opened(db) as lookups:
        specs = specs_in_scope(lookups.conn, ids, scope)
        counted = configurations_by_id(lookups, [each for each in ids if each in specs])
        words = [each.configuration for each in counted for _ in specs[each.id]]
        told = found_specs(lookups, (spec for each in counted for spec in specs[each.id]))
        return [
            Binary(one.hash, *known, one.releases, one.stacks, one.first_seen, one.last_seen)
            for known, one in zip(words, told, strict=True)
        ]


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
    with opened(db) as lookups:
        return retained(lookups, read, scope_of(lookups, release, stack))


def retained(lookups: Lookups, environments: Iterable[Environment], scope: Conditions) -> Retention:
    """Return what environments need of the binaries in a scope; see `retention`."""
    named = {each for one in environments for each in _named(lookups, one, scope)}
    needed = named | _run_time(lookups, named)
    specs = specs_in_scope(lookups.conn, configuration_ids(lookups, scope), scope)
    every = {each.hash for some in specs.values() for each in some}
    keep, prune, missing = needed & every, every - needed, needed - every
    return Retention(*(tuple(sorted(each)) for each in (keep, prune, missing)))


def _named(lookups: Lookups, environment: Environment, scope: Conditions) -> Iterator[str]:
    """Yield the hashes that an environment locks, and those that answer its specs."""
    yield from (each.hash for each in environment.locked)
    specs = replace(environment, locked=())
    for each in cover_environment(lookups, specs, scope).specs:
        if each.hash:
            yield each.hash


def _run_time(lookups: Lookups, hashes: Set[str]) -> set[str]:
    """Return the hashes of some specs and of what they need to run, without externals."""
    given = json.dumps(sorted(hashes))
    ids = [spec for (spec,) in select(lookups.conn, WITH_HASHES, hashes=given)]
    nodes = read_nodes(lookups.conn, read_run_time(lookups, ids).edges)
    return {each.hash for each in nodes.values() if each.kind != "external"}


def _method(
    function: Callable[Concatenate[Database, P], T],
) -> Callable[Concatenate[Cache, P], T]:
    """Return a function of a database as a method of an open one."""

    @wraps(function)
    def asked(self: Cache, /, *args: P.args, **named: P.kwargs) -> T:
        return function(self, *args, **named)

    return asked


class Cache(OpenFile):
    """A file made by `build` that stays open, with what was read of it: `Cache("x.db").find(…)`.

    Its methods are the functions of the same names without their first argument. It can be shared
    by threads, sent to other processes, and closed by `with`.

    Args:
        file: the file, as text or `Path`.

    Raises:
        ArgumentError: that is no path.
        DatabaseError: the file is not one of this builder, or is damaged.
    """

    binaries = _method(binaries)
    find = _method(find)
    cover = _method(cover)
    diff = _method(diff)
    history = _method(history)
    behind = _method(behind)
    package_data = _method(package_data)
    retention = _method(retention)

    def info(self) -> dict[str, Any]:
        """Return what is in the file and where it came from."""
        return info(self.path)
