"""Asks Datasette, 0.65 or 1.0, what a visitor may see."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from datasette.utils.asgi import Forbidden


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Check that a visitor may view or download a database.

    Our pages show the catalogue as a whole, so they check the whole database. An `allow` of a
    single table applies to Datasette's pages of it, not to ours.

    Args:
        actor: the visitor, as Datasette knows them; None for anybody.
        action: `view-database` or `view-database-download`.

    Raises:
        Forbidden: the visitor may not.
    """
    if hasattr(datasette, "ensure_permissions"):
        # Datasette 0.65: the first rule that decides wins, as on its own pages.
        checks = dict.fromkeys(((action, database), ("view-database", database), "view-instance"))
        await datasette.ensure_permissions(actor, [*checks])
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
