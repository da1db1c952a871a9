"""Asks Datasette, 0.65 or 1.0, what a visitor may see."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from datasette.utils.asgi import Forbidden


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Ask whether a visitor may do something with a database.

    Our pages show the catalogue as a whole, so they ask whether a visitor may view the database.
    What `allow` says of a single table holds for Datasette's pages of it, and not for ours.

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


async def may_view(datasette: Any, actor: Any, database: str) -> bool:
    """Return whether a visitor may view a database."""
    try:
        await ensure(datasette, actor, "view-database", database)
    except Forbidden:
        return False
    return True
