"""Describes a database, iterates over its binaries, and keeps it open as a `Cache`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from spack_cache_db import schema
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.query import NotebookTable, Rows
from spack_cache_db.query.answers import find, history
from spack_cache_db.query.changes import diff
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.configurations import (
    Presence,
    configuration_ids,
    configurations_by_id,
    found_specs,
    specs_in_scope,
)
from spack_cache_db.query.coverage import cover
from spack_cache_db.query.database import Database, OpenFile, connected, opened
from spack_cache_db.query.graph import externals
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.packages import behind, package_data
from spack_cache_db.query.retention import retention
from spack_cache_db.records import Configuration

CONFIGURATIONS_AT_ONCE = 1_000


_BESIDE_SPACK = """
SELECT
  (SELECT count(*) FROM package_status WHERE versions_behind > 0) AS packages_behind,
  (SELECT count(*) FROM package_status WHERE spec_count = 0) AS packages_missing,
  count(*) FILTER (WHERE status = 'deprecated') AS versions_deprecated,
  count(*) FILTER (WHERE status = 'unknown') AS versions_unknown
FROM dropped_versions
"""


class Info(dict[str, Any], NotebookTable):
    """The content and origin of a database, as plain values by name."""

    @property
    def rows(self) -> Rows:
        """A row for each value."""
        return Rows(("name", "value"), [{"name": name, "value": self[name]} for name in self])


def info(file: AnyPath) -> Info:
    """Return the content and origin of a database, as plain values.

    Raises:
        ArgumentError: the file is not a path.
        DatabaseError: see `open_database`; or the database is damaged.
    """
    path = checked_file("file", file)
    with connected(path) as conn:
        counts = {
            name: conn.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            for name, rows in schema.COUNTED.items()
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
            cursor = conn.execute(_BESIDE_SPACK)
            names = (column[0] for column in cursor.description)
            beside_spack = dict(zip(names, *cursor, strict=True))
        kinds = dict(conn.execute("SELECT kind, count(*) FROM releases GROUP BY kind"))
        first, last = conn.execute("SELECT min(date), max(date) FROM releases").fetchone()
        origin = dict(conn.execute("SELECT name, value FROM origin ORDER BY name"))
    return Info(
        file=str(path),
        size=path.stat().st_size,
        schema_version=schema.SCHEMA_VERSION,
        **counts,
        **formats,
        compared_with_spack=beside_spack,
        releases_by_kind=kinds,
        first_snapshot=first,
        last_snapshot=last,
        as_of=origin.pop(schema.AS_OF, None),
        origin=origin,
    )


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
        where = {name: getattr(self, name) for name in Presence.__dataclass_fields__}
        return {"hash": self.hash, **self.configuration._asdict(), **where}


def binaries(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> Iterator[Binary]:
    """Return an iterator over all binaries in a database, in the order of `find`.

    Memory use does not depend on the size of the database, because `CONFIGURATIONS_AT_ONCE` are
    read at a time. Other queries can run meanwhile.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        release: only binaries that this release lists.
        stack: only binaries in this stack; with `release`, in this stack of the release.

    Raises:
        ArgumentError: a path or limit has a wrong type.
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database was not made by this builder.
    """
    with opened(db) as lookups:
        scope = scope_of(lookups, release, stack)
        ids = configuration_ids(lookups, scope)
    return _read(db, ids, scope)


def _read(db: Database, ids: list[int], scope: Conditions) -> Iterator[Binary]:
    is_open = isinstance(db, OpenFile | sqlite3.Connection)
    context: AbstractContextManager[Database] = nullcontext(db) if is_open else OpenFile(str(db))
    with context as file:
        for start in range(0, len(ids), CONFIGURATIONS_AT_ONCE):
            with opened(file) as lookups:
                piece = ids[start : start + CONFIGURATIONS_AT_ONCE]
                provided = externals(lookups)
                specs = {
                    key: [spec for spec in listed_specs if spec.id not in provided]
                    for key, listed_specs in specs_in_scope(lookups.conn, piece, scope).items()
                }
                configurations = configurations_by_id(
                    lookups, [key for key in piece if specs.get(key)]
                )
                rows = [(row, spec) for row in configurations for spec in specs[row.id]]
                answers = [*found_specs(lookups, (spec for _, spec in rows))]
            for (row, _), spec in zip(rows, answers, strict=True):
                where = spec.releases, spec.stacks, spec.first_seen, spec.last_seen
                yield Binary(*where, spec.hash, row.configuration)


class Cache(OpenFile):
    """A database that stays open and caches its small tables: `Cache("x.db").find(…)`.

    Its methods are the functions of the same names without their first argument. It can be shared
    by threads, sent to other processes, and closed by `with`.

    Args:
        file: the database, as text or `Path`.

    Raises:
        ArgumentError: the file is not a path.
        DatabaseError: the database was not made by this builder, or is damaged.
    """

    binaries = binaries
    find = find
    cover = cover
    diff = diff
    history = history
    behind = behind
    package_data = package_data
    retention = retention

    def info(self) -> Info:
        """Return the content and origin of the database (see `info`)."""
        return info(self.path)
