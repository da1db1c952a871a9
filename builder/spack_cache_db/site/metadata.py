"""The metadata of a Datasette, completed with what `build` knows about its database.

Metadata are Datasette's titles, descriptions, licenses, canned queries and options of
tables. `metadata.yml` of the site has those of every database; each database describes
itself and its columns; and the owner's own take precedence.
"""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from spack_cache_db.bounded_yaml import METADATA_BOUNDS, load
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.open.lookups import descriptions, filled_tables, read_lookups
from spack_cache_db.query.open.sql import connected
from spack_cache_db.site import versions
from spack_cache_db.site.catalogue import catalogues, name_of
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.site_facts import NO_FACTS, SiteFacts, read_site_facts

INHERITED = frozenset(("source", "source_url", "license", "license_url"))
"""The facts of a database that its tables show as well."""


class Metadata(dict[str, Any]):
    """The metadata of a database, which are large, and copied in no time.

    Datasette 0.65 copies them whenever it checks a permission.
    """

    def __deepcopy__(self, _: object) -> Metadata:
        """Return the same object, because Datasette does not change the copy."""
        return self


def describe(datasette: Any) -> SiteFacts:
    """Complete the metadata of a Datasette; return the facts that its pages show."""
    # What every database of ours has.
    text = (site_folder() / "metadata.yml").read_text(encoding="utf-8")
    (shipped,) = load(text, METADATA_BOUNDS)["databases"].values()

    site_metadata = datasette._metadata_local
    site_facts = NO_FACTS
    for database in catalogues(datasette):
        # What the database says about itself. Our pages show the facts of the first.
        is_published = database.name == name_of(datasette)
        content = _read_content(database, site_metadata, has_facts=is_published)
        if is_published:
            site_facts = content.facts

        # The whole site gets the facts that its metadata lack, such as the title. In
        # Datasette 1.0, databases do not inherit them, so each gets them as well.
        new_facts = {
            key: text
            for key, text in content.facts.metadata.items()
            if key not in site_metadata
        }
        site_metadata |= new_facts
        ours = {**new_facts, **overlaid(shipped, {"tables": content.tables})}
        for target in versions.metadata_targets(datasette):
            _add_database(target, database.name, ours, content.filled, site_metadata)
    return site_facts


def _add_database(
    target: dict[str, Any],
    name: str,
    ours: dict[str, Any],
    filled: Set[str],
    site_metadata: dict[str, Any],
) -> None:
    """Add the metadata of a database to those of a Datasette.

    Args:
        target: a mapping with the keys of a metadata file, which is changed.
        name: the name of the database.
        ours: what we know of the database; what `target` has already takes precedence.
        filled: the names of its tables with rows.
        site_metadata: the metadata of the whole site.
    """
    databases = dict(target.get("databases") or {})
    merged = overlaid(ours, databases.get(name) or {})
    merged["queries"] = _possible_queries(merged["queries"], filled)
    _add_inherited(merged, site_metadata)
    databases[name] = Metadata(merged)
    target["databases"] = databases


class _Content(NamedTuple):
    """What a database says about itself.

    Attributes:
        tables: the descriptions of its tables, with Datasette's keys: `{"builds":
            {"description": "…", "columns": {"hash": "…"}}}`.
        filled: the names of the tables with rows.
        facts: the facts that pages show.
    """

    tables: dict[str, dict[str, Any]]
    filled: Set[str]
    facts: SiteFacts


def _read_content(
    database: Any, metadata: dict[str, Any], *, has_facts: bool
) -> _Content:
    """Return what a database says about itself, as far as it can be read.

    Args:
        database: one of Datasette's databases.
        metadata: the owner's metadata of the whole site.
        has_facts: whether our pages show the facts of this database, so that they have
            to be read.
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


def _possible_queries(queries: dict[str, Any], filled: Set[str]) -> dict[str, Any]:
    """Return canned queries without those that need a table which has no rows.

    The key `needs` of a query names that table; all others need releases.
    """
    possible = {}
    for name, query in queries.items():
        # The owner's queries may be plain texts.
        is_plain = isinstance(query, str)
        if is_plain or query.get("needs", "releases") in filled:
            possible[name] = query
    return possible


def _add_inherited(description: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Add the source and license of a database to its tables.

    Datasette 0.65 adds these when it shows the page of a table, and then the pages of
    its rows have them, too. All processes should show the same.

    Args:
        description: the metadata of the database, which are changed.
        metadata: those of the whole site.
    """
    for key in INHERITED:
        value = description.get(key) or metadata.get(key)
        if value:
            for table in description["tables"].values():
                table.setdefault(key, value)


def metadata_of(datasette: Any, database: str) -> dict[str, Any]:
    """Return the metadata of a database."""
    databases: dict[str, Any] = datasette._metadata_local.get("databases") or {}
    return databases.get(database) or {}
