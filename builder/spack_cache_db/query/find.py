"""What a spec query finds in a built file: the Python side of `find`."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spack_cache_db.errors import BuilderError, DatabaseError
from spack_cache_db.query.conditions import (
    Scope,
    asked_of,
    configuration_ids,
    read_dictionaries,
    rows,
)
from spack_cache_db.query.configurations import Found, found_records
from spack_cache_db.query.open import open_database
from spack_cache_db.spack.query import parse_query
from spack_cache_db.spack.targets import is_known

__all__ = ["Found", "UnknownNameError", "close_names", "connection", "find"]

_NAMES = {
    "release": ("SELECT name, id FROM releases ORDER BY position", "releases"),
    "stack": ("SELECT name, id FROM stacks WHERE NOT is_root ORDER BY name", "stacks"),
}


class UnknownNameError(BuilderError):
    """A release, stack or machine that is not known; the message names those that are close."""


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
        return found_records(conn, ids, scope, asked.hash, limit, with_hashes)


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
