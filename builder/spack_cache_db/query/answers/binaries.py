"""All binaries of a database, one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from spack_cache_db.arguments import checked
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.find import PRESENCE, where_of
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, OpenFile, opened
from spack_cache_db.query.stored.binary import specs_in_scope
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.graph import externals
from spack_cache_db.query.stored.presence import Presence, found_specs

CONFIGURATIONS_AT_ONCE = 1_000
"""How many configurations are read while the database is held."""


@dataclass(frozen=True, slots=True)
class Binary(Presence):
    """A binary, and the releases and stacks that have it.

    Attributes:
        hash: its hash.
        configuration: package, version, compiler, os, platform, target and variants.
    """

    hash: str
    configuration: Configuration

    def as_dict(self) -> dict[str, Any]:
        """Return the binary as an object of JSON."""
        fields = {"hash": self.hash, **self.configuration._asdict()}
        # Then releases, stacks and days.
        return fields | where_of(self, PRESENCE)


@checked
def binaries(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> Iterator[Binary]:
    """Return an iterator over all binaries in a database, in the order of `find`.

    They are read in pieces, between which other queries can run. `release` and `stack`
    narrow the answer: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(release=release, stack=stack)
    # The ids are read now, so that wrong names are reported at the call.
    with opened(db) as lookups:
        conditions = scope.conditions(lookups)
        ids = configuration_ids(lookups, conditions)
    return _read_binaries(db, ids, conditions)


def _read_binaries(
    db: Database, ids: list[int], conditions: Conditions
) -> Iterator[Binary]:
    # A file that the caller has opened stays open; a `Cache` is an `OpenFile`.
    is_open = isinstance(db, OpenFile | sqlite3.Connection)
    context: AbstractContextManager[Database] = (
        nullcontext(db) if is_open else OpenFile(str(db))
    )
    with context as file:
        for start in range(0, len(ids), CONFIGURATIONS_AT_ONCE):
            piece = ids[start : start + CONFIGURATIONS_AT_ONCE]
            yield from _read_piece(file, piece, conditions)


def _read_piece(file: Database, ids: list[int], conditions: Conditions) -> list[Binary]:
    """Return the binaries of some configurations, without specs that the system
    provides: they are not binaries.
    """
    configurations = []
    specs = []
    with opened(file) as lookups:
        external_specs = externals(lookups)
        in_scope = specs_in_scope(lookups.conn, ids, conditions)
        for row in configurations_by_id(lookups, ids):
            for spec in in_scope.get(row.id, ()):
                if spec.id not in external_specs:
                    configurations.append(row.configuration)
                    specs.append(spec)
        specs_with_places = list(found_specs(lookups, specs))
    result = []
    for configuration, found in zip(configurations, specs_with_places, strict=True):
        where = where_of(found, PRESENCE)
        result.append(Binary(**where, hash=found.hash, configuration=configuration))
    return result
