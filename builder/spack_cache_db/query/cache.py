"""A built file that stays open for many questions, and all of its binaries one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from spack_cache_db.arguments import checked_texts
from spack_cache_db.query.answers import find, scope_of
from spack_cache_db.query.catalogue import configurations_by_id, found_specs, specs_in_scope
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.difference import diff
from spack_cache_db.query.history import history
from spack_cache_db.query.lookups import Database, OpenFile, opened
from spack_cache_db.query.package_data import package_data
from spack_cache_db.query.package_status import behind
from spack_cache_db.query.retention import retention
from spack_cache_db.query.selection import configuration_ids
from spack_cache_db.query.summary import info

CONFIGURATIONS_AT_ONCE = 1_000


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
    with opened(db) as (conn, lookups):
        scope = scope_of(lookups, release, stack)
        ids = configuration_ids(conn, lookups, scope)
    return _read(db, ids, scope)


def _read(db: Database, ids: list[int], scope: Conditions) -> Iterator[Binary]:
    is_open = isinstance(db, OpenFile | sqlite3.Connection)
    whole: AbstractContextManager[Database] = nullcontext(db) if is_open else OpenFile(str(db))
    with whole as file:
        for start in range(0, len(ids), CONFIGURATIONS_AT_ONCE):
            yield from _some(file, ids[start : start + CONFIGURATIONS_AT_ONCE], scope)


def _some(db: Database, ids: list[int], scope: Conditions) -> list[Binary]:
    with opened(db) as (conn, lookups):
        specs = specs_in_scope(conn, ids, scope)
        counted = configurations_by_id(conn, lookups, [each for each in ids if each in specs])
        words = [each.configuration for each in counted for _ in specs[each.id]]
        told = found_specs(conn, lookups, (spec for each in counted for spec in specs[each.id]))
        return [
            Binary(one.hash, *known, one.releases, one.stacks, one.first_seen, one.last_seen)
            for known, one in zip(words, told, strict=True)
        ]


P = ParamSpec("P")
T = TypeVar("T")


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
