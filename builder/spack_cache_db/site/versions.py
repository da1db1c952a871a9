"""What differs between Datasette 0.65 and 1.0; the site runs on both."""

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
    """Return the mappings of a Datasette that descriptions are added to.

    Both have the keys of a metadata file, such as `databases`.
    """
    if IS_065:
        return [datasette._metadata_local]
    # It is None without a configuration file.
    datasette.config = datasette.config or {}
    return [datasette._metadata_local, datasette.config]


def environment_of(datasette: Any) -> Any:
    """Return the Jinja environment of Datasette's own pages."""
    if IS_065:
        return datasette.jinja_env
    return datasette.get_jinja_environment()


async def ensure_permission(
    datasette: Any, actor: Any, action: str, database: str
) -> None:
    """Raise `Forbidden` if a visitor may not do something with a database.

    Args:
        datasette: the Datasette.
        actor: the visitor, as a plugin for logins describes them; None if unknown.
        action: Datasette's name of the permission, such as `view-database`.
        database: the name of the database.
    """
    if IS_065:
        # The first permission that has a rule decides, as on Datasette's own pages.
        checks = [(action, database), ("view-database", database), "view-instance"]
        # The action may be "view-database" itself.
        without_duplicates = list(dict.fromkeys(checks))
        await datasette.ensure_permissions(actor, without_duplicates)
        return
    # mypy reads Datasette 0.65, which has no such module.
    resources = import_module("datasette.resources")
    resource = resources.DatabaseResource(database=database)
    await datasette.ensure_permission(action=action, resource=resource, actor=actor)


def keep_internal_in_memory(datasette: Any) -> None:
    """Keep Datasette's own tables in memory, so that a killed process leaves no file of
    them.

    Datasette 0.65 does so; 1.0 has a temporary file, which a forked process would
    share.
    """
    if IS_065:
        return
    # Delete the temporary file that this Datasette has made.
    in_file = datasette.get_internal_database()
    with suppress(OSError):
        Path(in_file.path).unlink()

    # Put a database in memory in its place, under its name.
    in_memory = Database(datasette, memory_name="_internal_of_the_site")
    in_memory.name = in_file.name
    datasette._internal_database = in_memory
