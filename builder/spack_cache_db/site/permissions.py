"""Datasette's permissions for our own pages and the file: `allow` holds for them as for its tables.

Our pages show the catalogue as a whole, so they ask whether a visitor may view the database. What
`allow` says of a single table holds for Datasette's pages of it, and not for ours or for the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

Handler = Callable[..., Awaitable[Any]]


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Ask whether a visitor may do something with a database.

    Args:
        datasette: either version of it.
        actor: who asks, as Datasette knows them; None for anybody.
        action: `view-database` or `view-database-download`.
        database: the name of the database.

    Raises:
        Forbidden: they may not.
    """
    if hasattr(datasette, "ensure_permissions"):
        # Datasette 0.65: the first that has an opinion decides, as on its own pages.
        asked = dict.fromkeys(((action, database), ("view-database", database), "view-instance"))
        await datasette.ensure_permissions(actor, [*asked])
        return
    resource = import_module("datasette.resources").DatabaseResource(database=database)
    await datasette.ensure_permission(action=action, resource=resource, actor=actor)


def guard(handler: Handler, database_of: Callable[[Any], Any]) -> Handler:
    """Return a route's handler that answers only who may view the database.

    Args:
        handler: it takes some of `datasette`, `request` and `send`.
        database_of: returns the database that a Datasette's pages read.
    """
    taken = inspect.signature(handler).parameters

    async def guarded(datasette: Any, request: Any, send: Any) -> Any:
        name = request.url_vars.get("database") or database_of(datasette).name
        await ensure(datasette, request.actor, "view-database", name)
        given = {"datasette": datasette, "request": request, "send": send}
        return await handler(**{key: value for key, value in given.items() if key in taken})

    return guarded
