"""All binaries of a file, one after the other, without holding all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from spack_cache_db.arguments import checked_texts
from spack_cache_db.query.answers import scope_of
from spack_cache_db.query.catalogue import configurations_by_id, found_specs, specs_in_scope
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.lookups import Database, OpenFile, opened
from spack_cache_db.query.selection import configuration_ids

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
