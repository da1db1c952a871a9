"""The databases of a Datasette that are catalogues (made by `build`), and their
metadata.

One Datasette can serve several databases. Our pages show the first that is a catalogue;
all other databases have Datasette's own pages. A Datasette without a catalogue stays as
it is, unless it was started with the site's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from datasette.utils import StartupError, tilde_encode
from datasette.utils.asgi import Forbidden
from datasette.version import __version__

from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.database_file import check_header
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open.lookups import descriptions, filled_tables, read_lookups
from spack_cache_db.query.open.sql import connected
from spack_cache_db.site import versions
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.refusals import BadAddress
from spack_cache_db.site.settings import SiteSettings
from spack_cache_db.site.site_facts import NO_FACTS, SiteFacts, read_site_facts

INHERITED = frozenset(("source", "source_url", "license", "license_url"))
"""The facts of a database that its tables show as well."""


class Metadata(dict[str, Any]):
    """The metadata of a database, which Datasette 0.65 copies when it checks a
    permission.
    """

    def __deepcopy__(self, _: object) -> Metadata:
        """Return the same object, because Datasette does not change the copy."""
        return self


@cache
def fault_of(path: str) -> str | None:
    """Return why a file is not a catalogue; None if it is one."""
    try:
        check_header(Path(path))
    except DatabaseError as error:
        return str(error)
    return None


def catalogues(datasette: Any) -> list[Any]:
    """Return the databases that are catalogues, in the order of the command line."""
    # Copied first, because Datasette may add a database in another thread.
    databases = list(datasette.databases.values())
    return [
        database
        for database in databases
        if database.path and fault_of(str(database.path)) is None
    ]


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
    """Return the name of the database that our pages read if this is its part of
    addresses.

    A plugin may add a hash to that part, which is otherwise the name.
    """
    name = name_of(datasette)
    if name is None or datasette.get_database(name).route != route:
        return None
    return name


def is_site(datasette: Any) -> bool:
    """Return whether a Datasette shows our pages."""
    folder = datasette.plugins_dir
    is_ours = folder is not None and Path(folder).resolve() == site_folder() / "plugins"
    return is_ours or bool(catalogues(datasette))


async def ensure(datasette: Any, actor: Any, action: str, database: str) -> None:
    """Raise `Forbidden` if a visitor may not view or download a database.

    Our pages show the catalogue as a whole: the `allow` of a single table does not
    apply to them.
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
    """
    base = datasette.setting("base_url")
    routes = {f"/{tilde_encode(name)}": name for name in datasette.databases}
    for route in routes:
        if base.startswith(f"{route}/"):
            raise StartupError(
                f"base_url: {base} is the address of a database; choose another path"
            )
    for pattern in pages:
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
        entry = inspected.get(database.name)
        # Datasette keeps these counts for its lists of tables. A table's page reads
        # `inspect_data`.
        if entry is not None and database.cached_table_counts is not None:
            entry["tables"] = {**entry["tables"], **entry.get("views", {})}


def describe(datasette: Any) -> SiteFacts:
    """Complete the metadata of a Datasette, and return the facts that its pages show.

    `metadata.yml` has queries and options of tables; the database describes itself and
    its columns. The owner's metadata takes precedence. Datasette 1.0 reads columns and
    descriptions in its metadata, and canned queries, facets and sorting in its
    configuration.
    """
    # What every database of ours has.
    text = (site_folder() / "metadata.yml").read_text(encoding="utf-8")
    (shipped,) = load(text, METADATA_BOUNDS)["databases"].values()

    metadata = datasette._metadata_local
    targets = versions.metadata_targets(datasette)
    site_facts = NO_FACTS
    for database in catalogues(datasette):
        # What the database says about itself. Our pages show the facts of the first.
        is_published = database.name == name_of(datasette)
        content = _read_content(database, metadata, has_facts=is_published)
        if is_published:
            site_facts = content.facts
        origin = {
            key: text
            for key, text in content.facts.described.items()
            if key not in metadata
        }

        # In Datasette 1.0, databases do not inherit the metadata of the whole site.
        described = origin | overlaid(shipped, {"tables": content.tables})
        metadata |= origin
        for target in targets:
            databases = dict(target.get("databases") or {})
            owners = databases.get(database.name) or {}
            merged = overlaid(described, owners)
            merged["queries"] = _possible_queries(merged["queries"], content.filled)
            _add_inherited(merged, metadata)
            databases[database.name] = Metadata(merged)
            target["databases"] = databases
    return site_facts


class _Content(NamedTuple):
    """What a database says about itself.

    `tables` are the descriptions of its tables, and `filled` the names of those with
    rows.
    """

    tables: dict[str, dict[str, Any]]
    filled: Set[str]
    facts: SiteFacts


def _read_content(
    database: Any, metadata: dict[str, Any], *, has_facts: bool
) -> _Content:
    """Return what a database says about itself, as far as it can be read.

    The facts are read if the database `has_facts` that our pages show.
    """
    tables: dict[str, dict[str, Any]] = {}
    filled: Set[str] = frozenset()
    facts = NO_FACTS
    # The pages of a damaged database report the error.
    with suppress(DatabaseError), connected(Path(database.path)) as conn:
        filled = filled_tables(conn)
        for name, columns in descriptions(conn).items():
            # The description of the table itself has no column.
            description = columns.pop(None, "")
            tables[name] = {"description": description, "columns": columns}
        if has_facts:
            facts = read_site_facts(read_lookups(conn), metadata)
    return _Content(tables, filled, facts)


def _possible_queries(queries: dict[str, Any], filled: Set[str]) -> dict[str, Any]:
    """Return canned queries without those that need a table which has no rows.

    The key `needs` of our own queries names that table. The owner's queries may be
    plain texts.
    """
    possible = {}
    for name, query in queries.items():
        needed = query.get("needs", "releases") if isinstance(query, dict) else None
        if needed is None or needed in filled:
            possible[name] = query
    return possible


def _add_inherited(description: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Add the source and license of a database to its tables.

    Datasette 0.65 adds these when it shows the page of a table, and then the pages of
    its rows have them, too. All processes should show the same.
    """
    for key in INHERITED:
        value = description.get(key) or metadata.get(key)
        if value:
            for table in description["tables"].values():
                table.setdefault(key, value)


def settings_of(datasette: Any, database: Any) -> SiteSettings:
    """Return what pages about a database need besides it."""
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


@cache
def asset_version() -> str:
    """Return a text that changes with every style sheet and script; read once per
    process.
    """
    digest = sha256()
    for path in sorted((site_folder() / "static").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def metadata_of(datasette: Any, database: str) -> dict[str, Any]:
    """Return the metadata of a database."""
    databases: dict[str, Any] = datasette._metadata_local.get("databases") or {}
    return databases.get(database) or {}


def overlaid(ours: Any, theirs: Any) -> Any:
    """Return two descriptions merged key by key; the second takes precedence.

    >>> overlaid({"a": {"x": 1, "y": 1}}, {"a": {"y": 2}, "b": 3})
    {'a': {'x': 1, 'y': 2}, 'b': 3}
    """
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ours if theirs is None else theirs
    merged = {key: overlaid(value, theirs.get(key)) for key, value in ours.items()}
    for key, value in theirs.items():
        if key not in ours:
            merged[key] = value
    return merged
