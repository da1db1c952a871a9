"""The line below every page: how old the data is, read once when the site starts."""

from __future__ import annotations

import sqlite3
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils.asgi import NotFound

from spack_cache_db.site.pages.home import newest_snapshot
from spack_cache_db.site.reading import read

_newest: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


async def learn(datasette: Any) -> None:
    """Read the day of the newest snapshot; a site without a file of ours has none."""
    try:
        _newest[datasette] = await read(datasette, lambda _, lookups: newest_snapshot(lookups))
    except (NotFound, sqlite3.Error):
        _newest[datasette] = None


def newest(datasette: Any) -> str | None:
    """Return the day of the newest snapshot, YYYY-MM-DD, once it is learned."""
    return _newest.get(datasette)
