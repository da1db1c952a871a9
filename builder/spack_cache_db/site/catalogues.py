"""Which databases of a Datasette are catalogues (files made by `build`), and what it shows of them.

One Datasette can serve several files. Our pages show the first file that is a catalogue; all other
files have Datasette's own pages. A Datasette that serves no catalogue stays as it is, unless it was
started with the site's folder.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils import StartupError, tilde_encode
from datasette.version import __version__

from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.database_file import check_header
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.database import connected, descriptions, filled_tables, read_lookups
from spack_cache_db.site import site_folder
from spack_cache_db.site.answers import SiteSettings
from spack_cache_db.site.pages.site_facts import NO_FACTS, SiteFacts, read_site_facts

_groups: WeakKeyDictionary[Any, dict[str, dict[str, str]]] = WeakKeyDictionary()
"""The group of each canned query of metadata.yml, by database and query."""
_described: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_faults: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
_facts: WeakKeyDictionary[Any, SiteFacts] = WeakKeyDictionary()
_given: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
_TEXTS = ("title", "license", "license_url", "source", "source_url", "about", "about_url")
"""Metadata that pages show."""


class NoCatalogue(Exception):
    """No database is a catalogue, so there is nothing that our pages could show."""

    # Not Datasette's NotFound, at which it looks for another page.
    status = 404

    def __init__(self) -> None:
        super().__init__("No file that is served here was made by spack-cache-db build.")


def fault_of(database: Any) -> str | None:
    """Return why one of Datasette's databases is no catalogue; None if it is one."""
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
    """Return the databases that are catalogues, in the order in which they were given."""
    # Datasette may add a database meanwhile, in another thread.
    return [each for each in [*datasette.databases.values()] if fault_of(each) is None]


def published(datasette: Any) -> Any:
    """Return the database that our pages read.

    Raises:
        NoCatalogue: there is none.
    """
    found = next(iter(catalogues(datasette)), None)
    if found is None:
        raise NoCatalogue
    return found


def name_of(datasette: Any) -> str | None:
    """Return the name of the database that our pages read; None if there is none."""
    return next((each.name for each in catalogues(datasette)), None)


def others(datasette: Any) -> list[str]:
    """Return the names of all databases but the one that our pages read."""
    hidden = {name_of(datasette), "_internal"}
    return [name for name in datasette.databases if name not in hidden]


def is_site(datasette: Any) -> bool:
    """Return whether a Datasette shows our pages."""
    folder = datasette.plugins_dir
    is_ours = folder is not None and Path(folder).resolve() == site_folder() / "plugins"
    return is_ours or bool(catalogues(datasette))


def require_addresses(datasette: Any, own: Iterable[str]) -> None:
    """Refuse a database whose addresses are those of our pages.

    Args:
        datasette: either version of it.
        own: regular expressions for the paths of our pages.

    Raises:
        StartupError: there is one, or the site's base begins as its pages do; Datasette prints the
            message and ends.
    """
    patterns, base = [re.compile(each) for each in own], datasette.setting("base_url")
    routes = [f"/{tilde_encode(name)}/" for name in datasette.databases]
    if any(each.match(f"{base}x") for each in patterns) or base.startswith(tuple(routes)):
        raise StartupError(f"base_url: pages of the site begin with {base}; choose another path")
    for name in datasette.databases:
        paths = (f"/{tilde_encode(name)}", f"/{tilde_encode(name)}/table")
        if any(each.match(path) for each in patterns for path in paths):
            raise StartupError(
                f"the database {name!r} has the address of one of the site's pages: "
                "rename the file, or link it under another name"
            )


def describe(datasette: Any) -> None:
    """Add what is known of a catalogue to the metadata, under the name of each catalogue.

    `metadata.yml` has queries and options of tables, the catalogue itself describes its columns.
    What the metadata says already comes first. Datasette 1.0 reads columns and descriptions in its
    metadata, and canned queries, facets and sorting in its configuration.
    """
    text = (site_folder() / "metadata.yml").read_text(encoding="utf-8")
    (ours,) = load(text, METADATA_BOUNDS)["databases"].values()
    found = {each.name: _described_by(each, ours) for each in catalogues(datasette)}
    _groups[datasette] = {name: groups for name, (_, groups) in found.items()}
    told = [datasette._metadata_local]
    if hasattr(datasette, "config"):
        datasette.config = datasette.config or {}
        told.append(datasette.config)
    for metadata in told:
        databases = metadata.get("databases") or {}
        merged = {name: overlaid(of, databases.get(name)) for name, (of, _) in found.items()}
        for name, (_, groups) in found.items():
            # Started in our folder, Datasette has read metadata.yml itself.
            queries = merged[name].get("queries") or {}
            for query in ours["queries"].keys() & queries.keys():
                if query in groups:
                    queries[query] = _without(queries[query], "group", "needs")
                else:
                    del queries[query]
        metadata["databases"] = _described[datasette] = databases | merged


def _described_by(database: Any, ours: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what metadata.yml and a catalogue say of it, and the groups of its queries.

    Queries for which the catalogue has no data have no group.

    Args:
        database: one of Datasette's databases.
        ours: the content of metadata.yml.
    """
    found, groups = deepcopy(ours), {}
    try:
        with connected(Path(database.path)) as conn:
            filled = filled_tables(conn)
            for table, columns in descriptions(conn).items():
                of = found["tables"].setdefault(table, {})
                of |= {"description": columns.pop(None, ""), "columns": columns}
            for name, query in ours["queries"].items():
                if query.get("needs", "releases") in filled:
                    groups[name] = query["group"]
    except DatabaseError:
        # Its pages say what is wrong with it.
        pass
    return found, groups


def _without(described: Any, *keys: str) -> Any:
    """Return a description without some keys, which Datasette does not know."""
    return {key: value for key, value in described.items() if key not in keys}


async def learn(datasette: Any) -> None:
    """Read what every page shows of the published database, and give Datasette 1.0 its metadata.

    Datasette 0.65 asks for its metadata by a hook.
    """
    is_told = hasattr(datasette, "set_instance_metadata")
    given = await datasette.get_instance_metadata() if is_told else datasette.metadata()
    _given[datasette] = {name: str(given[name]) for name in _TEXTS if given.get(name)}
    try:
        _facts[datasette] = await published(datasette).execute_fn(
            lambda conn: read_site_facts(read_lookups(conn), _given[datasette])
        )
    except (NoCatalogue, sqlite3.Error):
        # Datasette shows its tables, and our pages say what is wrong.
        return
    if is_told:
        await _tell(datasette, published(datasette).name, facts_of(datasette).described)


async def _tell(datasette: Any, database: str, described: dict[str, str]) -> None:
    """Tell Datasette 1.0, whose databases take nothing over from what is said of the whole site."""
    known = await datasette.get_instance_metadata()
    known |= await datasette.get_database_metadata(database)
    for key, value in described.items():
        if key in known:
            continue
        await datasette.set_instance_metadata(key, value)
        if key not in ("title", "description"):
            await datasette.set_database_metadata(database, key, value)


def facts_of(datasette: Any) -> SiteFacts:
    """Return what every page of a site shows; `NO_FACTS` without a database."""
    return _facts.get(datasette, NO_FACTS)


def has_facts(datasette: Any) -> bool:
    """Return whether there is a database of which every page shows something."""
    return datasette in _facts


def settings_of(datasette: Any, database: Any) -> SiteSettings:
    """Return what worker processes need to know to make pages about a database."""
    mode = "mode=ro" if database.is_mutable else "immutable=1"
    folders = (datasette.template_dir, site_folder() / "templates")
    return SiteSettings(
        uri=f"{Path(database.path).resolve().as_uri()}?{mode}",
        database=database.name,
        route=str(tilde_encode(database.route)),
        base_url=datasette.setting("base_url"),
        templates=tuple(str(folder) for folder in folders if folder),
        metadata=_given.get(datasette, {}),
        size=database.size,
        sha256=database.hash,
        version=__version__,
        styles=asset_version(),
    )


@cache
def asset_version() -> str:
    """Return a text that changes with a style sheet or script; an update restarts the server."""
    digest = sha256()
    for path in sorted((site_folder() / "static").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def parameters_of(datasette: Any, database: str, query: str) -> tuple[str, ...] | None:
    """Return the parameters of a canned query; None if there is none, or it does not list them."""
    described = _described.get(datasette, {}).get(database, {}).get("queries", {}).get(query)
    listed = described.get("params") if isinstance(described, dict) else None
    return None if listed is None else tuple(map(str, listed))


def description_of(datasette: Any, database: str, table: str) -> str:
    """Return what is said of a table or view; nothing if nobody says it."""
    described = _described.get(datasette, {}).get(database, {}).get("tables", {}).get(table)
    return str(described.get("description") or "") if isinstance(described, dict) else ""


def is_own_query(datasette: Any, database: str, query: str) -> bool:
    """Return whether a canned query is one of metadata.yml."""
    return query in _groups.get(datasette, {}).get(database, {})


def in_groups(datasette: Any, database: str, queries: Iterable[Any]) -> dict[str, list[Any]]:
    """Return canned queries by their group in metadata.yml; those of the site's owner come last.

    Args:
        datasette: the Datasette.
        database: the name of the database.
        queries: what Datasette says of each; 0.65 has dictionaries, 1.0 may have records.
    """
    groups = _groups.get(datasette, {}).get(database, {})
    found: dict[str, list[Any]] = {group: [] for group in groups.values()}
    known = {str(each["name"] if isinstance(each, dict) else each.name): each for each in queries}
    for name in sorted(known, key=[*groups, *known].index):
        found.setdefault(groups.get(name, "More"), []).append(known[name])
    return {group: some for group, some in found.items() if some}


def overlaid(ours: Any, theirs: Any) -> Any:
    """Return two descriptions as one: the second comes first, key by key."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ours if theirs is None else theirs
    return theirs | {key: overlaid(value, theirs.get(key)) for key, value in ours.items()}
