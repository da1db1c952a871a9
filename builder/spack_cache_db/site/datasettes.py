"""What Datasette 0.65 and 1.0 do in different ways, or no way that suits this site.

Hooks with types, permissions for our own pages and the file, canned queries for 1.0, and the order
of tables on Datasette's own page of a database.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from datasette import hookimpl

from spack_cache_db.schema import TABLES, VIEWS

Function = TypeVar("Function", bound=Callable[..., object])
Handler = Callable[..., Awaitable[Any]]

_ORDER = {name: place for place, name in enumerate((*VIEWS, *(table.name for table in TABLES)))}


def hook(function: Function, *, tryfirst: bool = False) -> Function:
    """Mark a function as a hook; `tryfirst` has it called before those of other plugins."""
    return cast("Function", hookimpl(function, tryfirst=tryfirst))


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


def permitted(handler: Handler, database_of: Callable[[Any], Any]) -> Handler:
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


async def add_queries(datasette: Any, metadata: Path) -> None:
    """Add the canned queries of a metadata file to each database that Datasette 1.0 serves.

    0.65 reads them from the metadata, 1.0 from its configuration alone. They are trusted: where
    visitors may not send SQL, these still answer.
    """
    described = yaml.safe_load(metadata.read_text(encoding="utf-8"))
    for database, content in (described.get("databases") or {}).items():
        if database not in datasette.databases:
            continue
        for name, query in (content.get("queries") or {}).items():
            await datasette.add_query(
                database,
                name,
                query["sql"],
                title=query.get("title"),
                description=query.get("description"),
                parameters=query.get("params"),
                is_trusted=True,
            )


def in_order(found: Iterable[Any]) -> list[Any]:
    """Return tables or views in the schema's order, those that are not ours last.

    Args:
        found: what Datasette tells of each; 0.65 has dictionaries, 1.0 may have records.
    """
    return sorted(found, key=lambda each: _ORDER.get(_name(each), len(_ORDER)))


def _name(each: Any) -> str:
    return str(each["name"] if isinstance(each, dict) else each.name)
