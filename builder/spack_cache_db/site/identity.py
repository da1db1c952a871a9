"""What the site says of itself, from the file that it shows: its title, and whose data it is.

What a metadata file says of the site comes first, so that who serves it may say something else.
"""

from __future__ import annotations

import sqlite3
from typing import Any
from weakref import WeakKeyDictionary

from spack_cache_db.query.summary import Origin, read_origin

TITLE = "Spack build cache"
"""What a site is called that shows no file."""
LICENSE = {"license": "Apache-2.0", "license_url": "https://www.apache.org/licenses/LICENSE-2.0"}
"""That of Spack's public build cache."""

_origins: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()


async def learn(datasette: Any, database: Any) -> None:
    """Read whose build cache a database holds; Datasette 1.0 is told, 0.65 asks (`metadata_of`)."""
    try:
        _origins[datasette] = await database.execute_fn(read_origin)
    except sqlite3.Error:
        # No file of ours: Datasette shows its tables, and our pages say what is wrong.
        return
    if hasattr(datasette, "set_instance_metadata"):
        await _tell(datasette, database.name, described(_origins[datasette]))


async def _tell(datasette: Any, database: str, told: dict[str, str]) -> None:
    """Tell Datasette 1.0, whose databases take nothing over from what is said of the whole site."""
    known = await datasette.get_instance_metadata()
    known |= await datasette.get_database_metadata(database)
    for key, value in told.items():
        if key in known:
            continue
        await datasette.set_instance_metadata(key, value)
        if key not in ("title", "description"):
            await datasette.set_database_metadata(database, key, value)


def title_of(datasette: Any) -> str:
    """Return what the site is called."""
    origin = _origins.get(datasette)
    return origin.title if origin else TITLE


def metadata_of(datasette: Any) -> dict[str, str]:
    """Return what Datasette shows of the whole site, by its keys."""
    origin = _origins.get(datasette)
    return described(origin) if origin else {}


def described(origin: Origin) -> dict[str, str]:
    """Return title, description, source and license of a site, as far as they are known."""
    told = {
        "title": origin.title,
        "description": (
            f"Every binary that {origin.owner} lists, release by release: search it, filter it, "
            "ask it in SQL, or download the whole file."
        ),
        "source": origin.owner,
        "source_url": origin.url or "",
        **(LICENSE if origin.is_public else {}),
    }
    return {key: value for key, value in told.items() if value}
