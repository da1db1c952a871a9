"""What differs between Datasette 0.65 and 1.0."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from datasette.database import Database
from datasette.version import __version__

IS_065 = __version__.startswith("0.")


def options_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Datasette()` for an owner's metadata.

    Datasette 1.0 reads columns and descriptions in its metadata, and canned queries,
    facets, sorting and plugins in its configuration.
    """
    if IS_065:
        return {"metadata": metadata}
    return {"metadata": metadata, "config": metadata}


def metadata_targets(datasette: Any) -> list[dict[str, Any]]:
    """Return the mappings of a Datasette that descriptions are added to."""
    if IS_065:
        return [datasette._metadata_local]
    datasette.config = datasette.config or {}
    return [datasette._metadata_local, datasette.config]


async def ensure_permission(
    datasette: Any, actor: Any, action: str, database: str
) -> None:
    """Raise `Forbidden` if a visitor may not do something with a database."""
    if IS_065:
        # The first rule that decides wins, as on Datasette's own pages.
        checks = [(action, database), ("view-database", database), "view-instance"]
        # The action may be "view-database" itself.
        without_duplicates = list(dict.fromkeys(checks))
        await datasette.ensure_permissions(actor, without_duplicates)
        return
    resource = import_module("datasette.resources").DatabaseResource(database=database)
    await datasette.ensure_permission(action=action, resource=resource, actor=actor)


def keep_internal_in_memory(datasette: Any) -> None:
    """Keep Datasette's own tables in memory, so that a killed process leaves no file of
    them.

    Datasette 0.65 does so; 1.0 has a temporary file, which a forked process would
    share.
    """
    if IS_065:
        return
    internal = datasette.get_internal_database()
    with suppress(OSError):
        Path(internal.path).unlink()
    datasette._internal_database = Database(
        datasette, memory_name="_internal_of_the_site"
    )
    datasette._internal_database.name = internal.name
