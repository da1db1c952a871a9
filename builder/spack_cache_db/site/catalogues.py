"""The databases of a Datasette that are catalogues (made by `build`), and their metadata.

One Datasette can serve several databases. Our pages show the first that is a catalogue; all other
databases have Datasette's own pages. A Datasette without a catalogue stays as it is, unless it was
started with the site's folder.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils import StartupError, tilde_encode
from datasette.utils.asgi import Forbidden
from datasette.version import __version__

from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.database_file import check_header
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.database import connected, descriptions, filled_tables, read_lookups
from spack_cache_db.site import site_folder
from spack_cache_db.site.answers import BadAddress, SiteSettings
from spack_cache_db.site.pages.site_facts import NO_FACTS, SiteFacts, read_site_facts

_TEXTS = ("title", "license", "license_url", "source", "source_url", "about", "about_url")
"""Metadata of the whole site that pages show."""


@dataclass
class _Description:
    """The metadata of a Datasette: of its databases, and of the whole site as its owner wrote it.

    Attributes:
        groups: the group of each canned query of metadata.yml, by database and query.
    """

    databases: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    facts: SiteFacts = NO_FACTS


_faults: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
_descriptions: WeakKeyDictionary[Any, _Description] = WeakKeyDictionary()


def _of(datasette: Any) -> _Description:
    return _descriptions.setdefault(datasette, _Description())


def fault_of(database: Any) -> str | None:
    """Return why one of Datasette's databases is not a catalogue; None if it is one."""
    if not database.path:
        return "is in memory"
    if database not in _faults:
        try:
            check_header(Path(database.path))
            _faults[database] = None
        except DatabaseError as error:
            _faults[database] = str(error)
    return _faults[database]


def catalogues(datasette: Any) -> list[Any]:
    """Return the databases that are catalogues, in the order of the command line."""
    # Copied first, because Datasette may add a database in another thread.
    return [item for item in [*datasette.databases.values()] if fault_of(item) is None]


def published(datasette: Any) -> Any:
    """Return the database that our pages read.

    Raises:
        BadAddress: no database is a catalogue.
    """
    for database in catalogues(datasette):
        return database
    # Not Datasette's NotFound: for that it would look for another page.
    raise BadAddress("No database on this server was made by spack-cache-db build.", 404)


def name_of(datasette: Any) -> str | None:
    """Return the name of the database that our pages read; None if there is none."""
    return next((database.name for database in catalogues(datasette)), None)


def others(datasette: Any) -> list[str]:
    """Return the names of the databases that our pages do not read."""
    hidden = {name_of(datasette), "_internal"}
    return [name for name in datasette.databases if name not in hidden]


def is_site(datasette: Any) -> bool:
    """Return whether a Datasette shows our pages."""
    folder = datasette.plugins_dir
    is_ours = folder is not None and Path(folder).resolve() == site_folder() / "plugins"
    return is_ours or bool(catalogues(datasette))


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Raise `Forbidden` if a visitor may not view or download a database.

    Our pages show the catalogue as a whole: the `allow` of a single table does not apply to them.
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
    with suppress(Forbidden):
        await ensure(datasette, actor, "view-database", database)
        return True
    return False


def require_addresses(datasette: Any, pages: Iterable[str]) -> None:
    """Raise `StartupError` for a database or base whose addresses match those of our pages."""
    patterns, base = [*map(re.compile, pages)], datasette.setting("base_url")
    routes = {name: f"/{tilde_encode(name)}" for name in datasette.databases}

    def has_page(*paths: str) -> bool:
        return any(pattern.match(path) for pattern in patterns for path in paths)

    if has_page(f"{base}x") or base.startswith(tuple(f"{path}/" for path in routes.values())):
        raise StartupError(f"base_url: pages of the site begin with {base}; choose another path")
    for name, route in routes.items():
        if has_page(route, f"{route}/table"):
            raise StartupError(
                f"the database {name!r} has the address of one of the site's pages: "
                "rename the file, or link it under another name"
            )


def describe(datasette: Any) -> None:
    """Add queries, table options and column descriptions to the metadata of each catalogue.

    `metadata.yml` has queries and options of tables; the database describes its own columns. The
    owner's metadata takes precedence. Datasette 1.0 reads columns and descriptions in its metadata,
    and canned queries, facets and sorting in its configuration.
    """
    text = (site_folder() / "metadata.yml").read_text(encoding="utf-8")
    (ours,) = load(text, METADATA_BOUNDS)["databases"].values()
    state, targets = _of(datasette), [datasette._metadata_local]
    described = {item.name: _described(item, ours) for item in catalogues(datasette)}
    state.groups = {name: groups for name, (_, groups) in described.items()}
    if hasattr(datasette, "config"):
        datasette.config = datasette.config or {}
        targets.append(datasette.config)
    for metadata in targets:
        databases = {**(metadata.get("databases") or {})}
        for name, (description, groups) in described.items():
            theirs = databases.get(name) or {}
            if "queries" in theirs:
                # If it was started in our folder, Datasette has read metadata.yml itself.
                queries = {
                    query: content
                    for query, content in theirs["queries"].items()
                    if query not in ours["queries"]
                    or (query in groups and content != ours["queries"][query])
                }
                theirs = {**theirs, "queries": queries}
            databases[name] = overlaid(description, theirs)
        metadata["databases"] = state.databases = databases


def _described(database: Any, ours: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the metadata of a catalogue, and the groups of the queries that it has data for."""
    metadata, groups = deepcopy(ours), {}
    queries = metadata.pop("queries")
    # The pages of a damaged database report the error.
    with suppress(DatabaseError), connected(Path(database.path)) as conn:
        filled = filled_tables(conn)
        for name, columns in descriptions(conn).items():
            table = metadata["tables"].setdefault(name, {})
            table |= {"description": columns.pop(None, ""), "columns": columns}
        for name, query in queries.items():
            if query.pop("needs", "releases") in filled:
                groups[name] = query.pop("group")
    return {**metadata, "queries": {name: queries[name] for name in groups}}, groups


async def learn(datasette: Any) -> None:
    """Read the facts that every page shows, and give Datasette 1.0 its metadata.

    Datasette 0.65 reads its metadata from a hook.
    """
    has_setters, state = hasattr(datasette, "set_instance_metadata"), _of(datasette)
    metadata = await datasette.get_instance_metadata() if has_setters else datasette.metadata()
    texts = state.texts = {name: str(metadata[name]) for name in _TEXTS if metadata.get(name)}
    try:
        database = published(datasette)
        state.facts = await database.execute_fn(
            lambda conn: read_site_facts(read_lookups(conn), texts)
        )
    except (BadAddress, sqlite3.Error):
        # Datasette shows its tables, and our pages report the error.
        return
    if not has_setters:
        return
    metadata |= await datasette.get_database_metadata(database.name)
    for key, value in state.facts.described.items():
        if key in metadata:
            continue
        await datasette.set_instance_metadata(key, value)
        # In Datasette 1.0, databases do not inherit the metadata of the whole site.
        if key not in ("title", "description"):
            await datasette.set_database_metadata(database.name, key, value)


def facts_of(datasette: Any) -> SiteFacts:
    """Return the facts that every page of a site shows; `NO_FACTS` without a catalogue."""
    return _of(datasette).facts


def settings_of(datasette: Any, database: Any) -> SiteSettings:
    """Return the settings that worker processes need to make pages about a database."""
    mode = "mode=ro" if database.is_mutable else "immutable=1"
    folders = (datasette.template_dir, site_folder() / "templates")
    return SiteSettings(
        uri=f"{Path(database.path).resolve().as_uri()}?{mode}",
        database=database.name,
        route=str(tilde_encode(database.route)),
        base_url=datasette.setting("base_url"),
        templates=tuple(str(folder) for folder in folders if folder),
        metadata=_of(datasette).texts,
        size=database.size,
        sha256=database.hash,
        version=__version__,
        styles=asset_version(),
    )


@cache
def asset_version() -> str:
    """Return a text that changes with every style sheet and script; read once per process."""
    digest = sha256()
    for path in sorted((site_folder() / "static").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def metadata_of(datasette: Any, database: str, kind: str, name: str) -> dict[str, Any]:
    """Return the metadata of a table or query; `kind` is `tables` or `queries`."""
    metadata = _of(datasette).databases.get(database, {}).get(kind, {}).get(name)
    return metadata if isinstance(metadata, dict) else {}


def is_own_query(datasette: Any, database: str, query: str) -> bool:
    """Return whether a canned query comes from our metadata.yml."""
    return query in _of(datasette).groups.get(database, {})


def in_groups(datasette: Any, database: str, queries: Iterable[Any]) -> dict[str, list[Any]]:
    """Return Datasette's records of canned queries by their group; those of the owner come last."""
    groups = _of(datasette).groups.get(database, {})
    grouped: dict[str, list[Any]] = {group: [] for group in groups.values()}
    by_name = {name_in(item): item for item in queries}
    for name in sorted(by_name, key=[*groups, *by_name].index):
        grouped.setdefault(groups.get(name, "More"), []).append(by_name[name])
    return {group: items for group, items in grouped.items() if items}


def name_in(item: Any) -> str:
    """Return the name in one of Datasette's records, a dictionary in 0.65."""
    return str(item["name"] if isinstance(item, dict) else item.name)


def overlaid(ours: Any, theirs: Any) -> Any:
    """Return two descriptions merged key by key; the second takes precedence."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ours if theirs is None else theirs
    return theirs | {key: overlaid(value, theirs.get(key)) for key, value in ours.items()}
