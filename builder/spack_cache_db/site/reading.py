"""Reading for a page: one hop to Datasette's threads, a time limit, and answers that are kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from datasette.utils import sqlite_timelimit
from datasette.utils.asgi import NotFound

from spack_cache_db.query.lookups import Lookups, read_lookups

T = TypeVar("T")
Load = Callable[[sqlite3.Connection, Lookups], T]

DATABASE = "spack-cache"
TIME_LIMIT_MS = 2_000
MOST_CACHED = 200

_lookups: WeakKeyDictionary[Any, Lookups] = WeakKeyDictionary()
_pages: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def published(datasette: Any) -> Any:
    """Return the database that the pages read: the published file."""
    if DATABASE in datasette.databases:
        return datasette.databases[DATABASE]
    files = (each for each in datasette.databases.values() if each.path)
    found = next(files, None)
    if found is None:
        raise NotFound("No database is served here.")
    return found


async def read(datasette: Any, load: Load[T]) -> T:
    """Run `load` in one of Datasette's threads, within a time limit."""
    database = published(datasette)

    def in_thread(conn: sqlite3.Connection) -> T:
        with sqlite_timelimit(conn, TIME_LIMIT_MS):
            if database not in _lookups:
                _lookups[database] = read_lookups(conn)
            return load(conn, _lookups[database])

    result: T = await database.execute_fn(in_thread)
    return result


async def read_once(datasette: Any, key: str, load: Load[T]) -> T:
    """Read like `read`, and keep the answer: the file does not change while it is served."""
    database = published(datasette)
    kept = _pages.setdefault(database, {})
    if key in kept and not database.is_mutable:
        found: T = kept[key]
        return found
    result = await read(datasette, load)
    if len(kept) < MOST_CACHED:
        kept[key] = result
    return result
