"""The databases of a Datasette that are catalogues, which means that `build` made them.

One Datasette can serve several databases. Our pages show the first that is a catalogue;
all other databases have Datasette's own pages. A Datasette without a catalogue stays as
it is, unless it was started with the site's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from datasette.utils import StartupError, tilde_encode
from datasette.utils.asgi import Forbidden
from datasette.version import __version__

from spack_cache_db.database_file import check_header
from spack_cache_db.errors import DatabaseError
from spack_cache_db.site import versions
from spack_cache_db.site.folder import asset_version, site_folder
from spack_cache_db.site.refusals import BadAddress
from spack_cache_db.site.settings import SiteSettings


def catalogues(datasette: Any) -> list[Any]:
    """Return the databases that are catalogues, in the order of the command line."""
    # Copied first, because Datasette may add a database in another thread.
    databases = list(datasette.databases.values())
    # A database in memory has no path.
    return [
        database
        for database in databases
        if database.path and fault_of(str(database.path)) is None
    ]


@cache
def fault_of(path: str) -> str | None:
    """Return why a file is not a catalogue; None if it is one."""
    try:
        check_header(Path(path))
    except DatabaseError as error:
        return str(error)
    return None


def published(datasette: Any) -> Any:
    """Return the database that our pages read.

    Raises:
        BadAddress: no database is a catalogue.
    """
    databases = catalogues(datasette)
    if not databases:
        # Not Datasette's NotFound: for that it would look for another page.
        raise BadAddress(
            "No database on this server was made by spack-cache-db build.", 404
        )
    return databases[0]


def name_of(datasette: Any) -> str | None:
    """Return the name of the database that our pages read; None if there is none."""
    databases = catalogues(datasette)
    return databases[0].name if databases else None


def name_of_route(datasette: Any, route: str) -> str | None:
    """Return the name of the database that our pages read if a route leads to it.

    A route is the first part of Datasette's addresses of a database. A plugin may add a
    hash to it; otherwise it is the name.
    """
    name = name_of(datasette)
    if name is None or datasette.get_database(name).route != route:
        return None
    return name


def is_site(datasette: Any) -> bool:
    """Return whether a Datasette shows our pages."""
    folder = datasette.plugins_dir
    has_our_folder = (
        folder is not None and Path(folder).resolve() == site_folder() / "plugins"
    )
    return has_our_folder or bool(catalogues(datasette))


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Raise `Forbidden` if a visitor may not view or download a database.

    Our pages show the catalogue as a whole: the `allow` of a single table does not
    apply to them. The arguments are those of `versions.ensure_permission`.
    """
    await versions.ensure_permission(datasette, actor, action, database)


async def may_view(datasette: Any, actor: Any, database: str) -> bool:
    """Return whether a visitor may view a database."""
    with suppress(Forbidden):
        await ensure(datasette, actor, "view-database", database)
        return True
    return False


def require_addresses(datasette: Any, pages: Iterable[str]) -> None:
    """Raise `StartupError` for a database or base whose addresses match those of our
    pages.

    For example a database `about.db`, whose address would be `/about`.

    Args:
        datasette: the Datasette.
        pages: the patterns of the pages' addresses.
    """
    base = datasette.setting("base_url")
    routes = {f"/{tilde_encode(name)}": name for name in datasette.databases}
    for route in routes:
        if base.startswith(f"{route}/"):
            raise StartupError(
                f"base_url: {base} is the address of a database; choose another path"
            )
    for pattern in pages:
        # Some path below the base.
        if re.match(pattern, f"{base}x"):
            raise StartupError(
                f"base_url: {base} is the address of a page; choose another path"
            )
        for route, name in routes.items():
            if re.match(pattern, route) or re.match(pattern, f"{route}/table"):
                advice = "rename the file, or link it under another name"
                raise StartupError(
                    f"the database {name!r} has the address of a page: {advice}"
                )


def add_view_counts(datasette: Any) -> None:
    """Have Datasette know how many rows the largest views have, which are slow to
    count.

    An inspect file of `build` has the counts of views apart from those of tables,
    because the page of a database lists every name that has a count as a table.
    """
    inspected = datasette.inspect_data or {}
    for database in catalogues(datasette):
        content = inspected.get(database.name)
        # For its lists of tables, Datasette keeps a copy of the counts, which it makes
        # now. For the page of a table, it reads `inspect_data` later.
        if content is not None and database.cached_table_counts is not None:
            content["tables"] = {**content["tables"], **content.get("views", {})}


def settings_of(datasette: Any, database: Any) -> SiteSettings:
    """Return what pages about a database need besides it."""
    # The owner's templates come first; there may be none.
    folders = (datasette.template_dir, site_folder() / "templates")
    metadata = datasette._metadata_local
    texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
    return SiteSettings(
        name=database.name,
        route=str(tilde_encode(database.route)),
        base_url=datasette.setting("base_url"),
        templates=tuple(str(folder) for folder in folders if folder),
        metadata=texts,
        size=database.size,
        sha256=database.hash,
        version=__version__,
        styles=asset_version(),
        file=str(database.path or ""),
    )
