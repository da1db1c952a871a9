"""What only Datasette 0.65 needs: a plugin of its own, which `site/plugin.py` registers.

1.0 does all of this itself, or has no place for it: with 0.65 this room can go, and its tests and
`settings.json`. Datasette finds `templates/` here because it looks for them in plugins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from datasette.facets import ColumnFacet
from datasette.plugins import pm
from datasette.utils import to_css_class
from markupsafe import Markup, escape

from spack_cache_db.site.catalogues import is_site
from spack_cache_db.site.datasettes import Recent, hook
from spack_cache_db.site.identity import metadata_of
from spack_cache_db.site.middleware import (
    READING_POSTS,
    App,
    Message,
    Receive,
    Scope,
    Send,
    path_of,
)

ROWS_OF = {"builds": "specs", "release_specs": "listings", "build_listings": "listings"}
"""Each view has one row for each row of a table (`schema`: its other joins find one row).

Of `builds` that is so without indexes, which know of specs that are no binaries.
"""

MOST_KEPT = 500

TABLE_SPELLING = (
    "select name from sqlite_master where type in ('table', 'view') and name = ? collate nocase"
)
"""Datasette's statement (`Datasette.permission_allowed`)."""

_SILENT, _SAID = b"<html>", b'<html lang="en">'


@partial(hook, trylast=True)
def startup(datasette: Any) -> None:
    """Count facets once and the large views never; look up once who may see a table.

    It is called last, because statements are remembered outside of the sandbox.
    """
    if not is_site(datasette):
        return
    tell_view_counts(datasette)
    databases = datasette.metadata("databases") or {}
    take_over(databases)
    if all(_is_ours(each.plugin) for each in pm.hook.get_metadata.get_hookimpls()):
        remember_permissions(datasette)


@hook
def get_metadata(datasette: Any) -> dict[str, str]:
    """Say whose data the site shows, where its metadata does not."""
    return metadata_of(datasette)


@hook
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool:
    """Take environments from a form without a token: the page only reads, and sets no cookie."""
    if not is_site(datasette):
        return False
    return READING_POSTS.fullmatch(path_of(scope, datasette.setting("base_url"))) is not None


@hook
def register_facet_classes() -> list[type]:
    """Count the facets that metadata.yml asks for once."""
    return [KeptFacet]


@hook
def extra_template_vars() -> dict[str, object]:
    """Give `_table.html` its rows in one piece."""
    return {"table_body": table_body}


@partial(hook, tryfirst=True)
def asgi_wrapper(datasette: Any) -> Callable[[App], App]:
    """Say the language of Datasette's pages, before the site's own wrapper compresses them."""
    return lambda app: say_language(app) if is_site(datasette) else app


def tell_view_counts(datasette: Any) -> None:
    """Add the counts of two views to the inspect data, where there is some.

    Counting them joins whole tables. 0.65 takes the count of a page without filters from the
    inspect data, for a view as for a table.
    """
    for name, inspected in (datasette.inspect_data or {}).items():
        if name not in datasette.databases:
            continue
        # Asked for now, so that it remembers the counts of tables before there are those of views.
        if datasette.get_database(name).cached_table_counts is None:
            continue
        tables = inspected["tables"]
        has_indexes = tables.get("mirrors", {"count": 0})["count"] > 0
        views = {view for view in ROWS_OF if view != "builds" or not has_indexes}
        tables.update({view: tables[ROWS_OF[view]] for view in views if ROWS_OF[view] in tables})


def remember_permissions(datasette: Any) -> None:
    """Look up once what the metadata allows for each table, and how a table's name is spelt.

    Datasette does both for every table that a page names, and for the lookup puts all metadata
    together anew: nine tenths of what the page of a database costs. What the metadata says does not
    change while there is no plugin but ours that adds to it.
    """
    allows = lru_cache(maxsize=MOST_KEPT)(datasette._table_permission_allows)
    datasette._table_permission_allows = allows
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            database.execute = _Spelling(database).execute


class _Spelling:
    """What replaces the `execute` of a database: the spelling of a table's name is asked once."""

    def __init__(self, database: Any) -> None:
        self._inner: Callable[..., Awaitable[Any]] = database.execute
        self._recent = Recent(MOST_KEPT)

    async def execute(self, sql: str, params: Any = None, *more: Any, **named: Any) -> Any:
        """Run a statement as `Database.execute` does."""
        read = partial(self._inner, sql, params, *more, **named)
        if sql != TABLE_SPELLING:
            return await read()
        return await self._recent.once(tuple(params), read, lambda found: bool(found.rows))


def _is_ours(plugin: Any) -> bool:
    return getattr(plugin, "__name__", "").startswith("spack_cache_db.")


def say_language(app: App) -> App:
    """Return the application with the language in the first piece of each page: screen readers ask.

    The first line of Datasette's base template is fixed; only its blocks can be filled.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = False

        async def say(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                headers = [(key.lower(), value) for key, value in message.get("headers", ())]
                is_page = dict(headers).get(b"content-type", b"").startswith(b"text/html")
                if is_page:
                    headers = [each for each in headers if each[0] != b"content-length"]
                message = {**message, "headers": headers}
            elif is_page and message.get("body"):
                message = {**message, "body": message["body"].replace(_SILENT, _SAID, 1)}
                is_page = False
            await send(message)

        await app(scope, receive, say)

    return wrapped


def table_body(rows: Iterable[Iterable[Mapping[str, Any]]]) -> Markup:
    """Return the rows of `display_rows` as Datasette's `_table.html` writes them, in one piece.

    A page of a table has six hundred cells. Datasette's template writes each as four pieces that
    climb one by one through every template the page extends, a third of what the page costs.
    """
    classes: dict[str, str] = {}
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            column = cell["column"]
            if column not in classes:
                classes[column] = to_css_class(column)
            kind, value = cell["value_type"], escape(cell["value"])
            cells.append(f'<td class="col-{classes[column]} type-{kind}">{value}</td>')
        lines.append("<tr>" + "\n".join(cells) + "</tr>")
    # Values are escaped above; classes and names of Python's types need no escaping.
    return Markup("\n".join(lines))


MOST_ROWS = 50
LONGEST = 1_000
"""Characters of a query with its parameters; visitors choose these."""

_NAME = "kept_facets"

_recent: WeakKeyDictionary[Any, Recent] = WeakKeyDictionary()


def take_over(databases: dict[str, Any]) -> None:
    """Rename the `facets` of each table, so that Datasette's own class does not see them."""
    for described in databases.values():
        for table in ((described or {}).get("tables") or {}).values():
            if "facets" in table:
                table[_NAME] = table.pop("facets")


class KeptFacet(ColumnFacet):  # type: ignore[misc]
    """The facet of a column that the metadata asks for."""

    def __init__(self, ds: Any, *args: Any, **named: Any) -> None:
        super().__init__(ds, *args, **named)
        database = ds.get_database(self.database)
        if not database.is_mutable:
            self.ds = Remembering(ds, _recent.setdefault(database, Recent(MOST_KEPT)))

    def get_configs(self) -> list[dict[str, Any]]:
        """Return what the metadata asks for, without what the address asks for as well."""
        asked = self.request.args.getlist("_facet")
        return [
            {"source": "metadata", "config": {"simple": column}}
            for column in (self.metadata or {}).get(_NAME, [])
            if column not in asked
        ]

    async def suggest(self) -> list[dict[str, Any]]:
        """Suggest nothing: Datasette's own facets of columns do."""
        return []


class Remembering:
    """Datasette as a facet sees it: what it has read once, it does not read again."""

    def __init__(self, datasette: Any, recent: Recent) -> None:
        self._datasette = datasette
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._datasette, name)

    async def execute(self, database: str, sql: str, params: Any = None, **options: Any) -> Any:
        """Run a query, or return what it gave before."""
        given = tuple(params.items()) if isinstance(params, dict) else tuple(params or ())
        return await self._once(
            (sql, given), lambda: self._datasette.execute(database, sql, params, **options)
        )

    async def expand_foreign_keys(
        self, database: str, table: str, column: str, values: Sequence[Any]
    ) -> dict[tuple[str, Any], Any]:
        """Return the labels of values, looked up or as before."""
        labels = await self._once(
            (table, column, tuple(values)),
            lambda: self._datasette.expand_foreign_keys(database, table, column, values),
        )
        return cast("dict[tuple[str, Any], Any]", labels)

    async def _once(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
        is_short = len(repr(key)) <= LONGEST
        return await self._recent.once(
            key, read, lambda answer: is_short and len(answer) <= MOST_ROWS
        )
