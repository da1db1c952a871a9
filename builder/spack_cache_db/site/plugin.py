"""Our pages and safety limits, as Datasette hooks.

Datasette finds this module by its entry point. If it serves a catalogue, which is a
database that `build` made, the hooks add the pages of `own_pages` and limit the cost of
requests. Only documented hooks of Datasette 0.65 and 1.0 are used.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from typing import Any

from datasette.utils.asgi import asgi_static
from jinja2.ext import Extension
from markupsafe import Markup
from pluggy import HookimplMarker

from spack_cache_db.model import ROOT
from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.addresses import KINDS, NAMES
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogue import (
    add_view_counts,
    fault_of,
    is_site,
    name_of,
    require_addresses,
)
from spack_cache_db.site.charts.of_rows import of_rows
from spack_cache_db.site.folder import asset_version, site_folder
from spack_cache_db.site.http import middleware
from spack_cache_db.site.http.asgi import App, Receive, Scope, Send
from spack_cache_db.site.http.download import open_files
from spack_cache_db.site.http.error_pages import answer_error
from spack_cache_db.site.http.health import HEALTH, health
from spack_cache_db.site.http.own_pages import PAGES
from spack_cache_db.site.http.whole_answers import whole
from spack_cache_db.site.links import link_to, links_to
from spack_cache_db.site.metadata import describe, metadata_of
from spack_cache_db.site.names_for_people import date_words
from spack_cache_db.site.sql import execution
from spack_cache_db.site.sql import functions as sql_functions
from spack_cache_db.site.sql.authorizer import authorize
from spack_cache_db.site.sql.limits import restrict
from spack_cache_db.site.sql.numbers import readable_rows
from spack_cache_db.site.stack_facet import StackFacet
from spack_cache_db.site.table_actions import Action, actions_of
from spack_cache_db.spack.lexer import is_hash

hook = HookimplMarker("datasette")
"""Marks a function as a hook: Datasette's own `hookimpl`, with types.

A hook may leave out arguments that it does not need.
"""

STATIC = r"^/static/(?P<path>.*)$"
"""The pattern of the addresses of style sheets and scripts."""
STATIC_BYTES = 1 << 16
"""Style sheets and scripts are shorter, so each is sent in one piece."""

WRAPPERS: tuple[Callable[..., Awaitable[None]], ...] = (
    # Rows of a table are complete, and errors in CSV get an error status.
    whole,
    # Unknown fields and names in addresses of tables and canned queries are refused.
    middleware.check_addresses,
    # Requests are checked before their bodies are read; headers are added.
    middleware.guard,
    # The base is cut off the path.
    middleware.below_base,
)
"""The wrappers of each request, from the innermost to the outermost."""

_DATASETTE_ERRORS = "datasette.handle_exception"
"""The module of Datasette's own handler of exceptions."""
_PAGES = {"hash": "spec", "package": "package", "release": "release", "stack": "stack"}
"""Kinds of names that have a page, and the first part of its address."""
_DATASETTE_STYLES = ("tokens", "parts", "datasette")
"""Our style sheets of Datasette's own pages, behind that of Datasette."""
_ORDER = [*VIEWS, *(table.name for table in TABLES)]
"""Names of tables and views, in the order in which pages list them."""


class Language(Extension):
    """Adds the language, which screen readers need, to Datasette's base template."""

    def preprocess(
        self, source: str, name: str | None, filename: str | None = None
    ) -> str:
        """Return the source of a template before Jinja compiles it."""
        return source.replace("<html>", '<html lang="en">', 1)


@hook
def prepare_jinja2_environment(env: Any, datasette: Any) -> None:
    """Add our metadata and templates: Datasette calls this hook before it reads its
    metadata.
    """
    if not is_site(datasette):
        return
    # Raises StartupError if the owner's configuration is wrong.
    allowances_of(datasette)
    patterns = [pattern for pattern, _handler in PAGES]
    require_addresses(datasette, [STATIC, *patterns])

    # What templates use.
    site_facts = describe(datasette)
    env.add_extension(Language)
    env.globals |= {
        **site_facts.variables,
        "asset_version": asset_version(),
        "catalogue": name_of(datasette),
        "date_words": date_words,
        "metadata_of": partial(metadata_of, datasette),
        "in_order": in_order,
        "query_chart": partial(of_rows, datasette.urls.path),
        "links_to": links_to(datasette.urls),
        "readable_rows": readable_rows,
    }

    # Our templates come just before Datasette's own, which are the last.
    folder = str(site_folder() / "templates")
    paths = env.loader.loaders[0].searchpath
    if folder not in paths:
        paths.insert(len(paths) - 1, folder)


def in_order(records: Iterable[Any], names: Iterable[str] = _ORDER) -> list[Any]:
    """Return Datasette's records of tables, views or queries in the order of names,
    others last.
    """
    positions = {name: position for position, name in enumerate(names)}

    def position_of(record: Any) -> int:
        # They are mappings, or objects in Datasette 1.0.
        name = record["name"] if isinstance(record, dict) else record.name
        return positions.get(name, len(positions))

    return sorted(records, key=position_of)


@hook(tryfirst=True)
def extra_css_urls(datasette: Any) -> list[str]:
    """Add our styles to Datasette's pages and those of plugins, before the plugins'
    styles.
    """
    if not is_site(datasette):
        return []
    version = asset_version()
    return [f"/static/{name}.css?v={version}" for name in _DATASETTE_STYLES]


@hook(tryfirst=True)
def extra_js_urls(datasette: Any) -> list[dict[str, Any]]:
    """Add our script to Datasette's pages and those of plugins.

    Browsers run a module after they have read the page, which the script needs.
    """
    if not is_site(datasette):
        return []
    return [{"url": f"/static/site.js?v={asset_version()}", "module": True}]


@hook
def startup(datasette: Any) -> None:
    """Limit the results of statements, and report databases that have no pages."""
    if not is_site(datasette):
        return
    for database in datasette.databases.values():
        fault = fault_of(str(database.path)) if database.path else None
        if fault is not None:
            print(f"Not shown by the site's pages: {fault}", file=sys.stderr)
    add_view_counts(datasette)
    execution.limit_statements(datasette)
    open_files(datasette)


@hook
def register_routes(datasette: Any) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Add our pages before Datasette's own, so that `/` is ours."""
    if not is_site(datasette):
        return ()
    return (
        (STATIC, asgi_static(site_folder() / "static", chunk_size=STATIC_BYTES)),
        (HEALTH, health),
        *PAGES,
    )


@hook
def render_cell(
    value: object, column: str, table: str | None, database: str, datasette: Any
) -> Markup | None:
    """Link hashes, and names of packages, releases and stacks, to their pages.

    None leaves the cell to Datasette. It is called for every cell of Datasette's pages.
    """
    page = _PAGES.get(_kind_of(column, table))
    if page is None or not isinstance(value, str):
        return None
    if page == "stack" and value == ROOT:
        return None

    if page == "spec" and not is_hash(value):
        return None
    # Tables have ids in columns that are called like a kind; views have names.
    if page != "spec" and column != "name" and table not in VIEWS:
        return None
    # The database is compared last, because it costs most and nearly all cells have no
    # page.
    if database != name_of(datasette):
        return None
    return link_to(datasette.urls, page, value)


def _kind_of(column: str, table: str | None) -> str:
    """Return the kind of the names in a column, such as `package`; empty if it has
    none.

    The table is None for the result of a query.
    """
    if column == "name":
        return NAMES.get(table or "", "")
    first_kind, *_others = KINDS.get(column, ("",))
    return first_kind


@hook
def register_facet_classes() -> list[type[StackFacet]]:
    """Add the facet of stacks."""
    return [StackFacet]


@hook
def table_actions(
    datasette: Any, database: str, table: str, request: Any
) -> list[Action]:
    """Add our links to the menu of a table; Datasette 0.65 calls this hook for views,
    too.
    """
    if not is_site(datasette) or database != name_of(datasette):
        return []
    return actions_of(datasette, database, table, request)


@hook(optionalhook=True)
def view_actions(
    datasette: Any, database: str, view: str, request: Any
) -> list[Action]:
    """Add our links to the menu of a view, in Datasette 1.0."""
    return table_actions(datasette, database, view, request)


@hook(optionalhook=True)
def register_mcp_tools(datasette: Any, mcp: Any) -> None:
    """Add our tools for assistants, if the plugin datasette-mcp is installed.

    That plugin calls this hook with its server, `mcp`.
    """
    if is_site(datasette):
        # It imports the package mcp, which is there only beside the plugin.
        from spack_cache_db.site import mcp_tools

        mcp_tools.register(datasette, mcp)


@hook(trylast=True)
def prepare_connection(conn: sqlite3.Connection, database: str, datasette: Any) -> None:
    """Add our SQL functions, limits and authorizer to a connection.

    Databases in memory, whose names begin with `_`, get no functions of ours: these
    refer to their connection, and Python cannot free that cycle. Datasette opens such a
    database whenever it reads its versions. Its own tables, in `_internal`, are no
    visitor's to read, and are not limited.
    """
    if not is_site(datasette):
        return
    if not database.startswith("_internal"):
        # With --crossdb Datasette attaches all databases to this one.
        restrict(conn, may_attach=database == "_memory" and datasette.crossdb)
    if not database.startswith("_"):
        sql_functions.register(conn)
        authorize(conn)


@hook(optionalhook=True)
def skip_csrf(datasette: Any, scope: Scope) -> bool:
    """Accept forms without a token on pages that only read and set no cookie."""
    is_reading = middleware.READING_POSTS.fullmatch(scope["path"]) is not None
    return is_reading and is_site(datasette)


@hook(trylast=True)
def asgi_wrapper(datasette: Any) -> Callable[[App], App]:
    """Wrap Datasette's application in `WRAPPERS`, around those of all plugins.

    So limits and headers hold for responses of plugins, and errors are not cached.
    """

    def wrap(app: App) -> App:
        # uvicorn recognizes an application by its being a coroutine function.
        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            layers = app
            # Servers also call an application when they start and end.
            if scope["type"] == "http":
                for wrapper in WRAPPERS:
                    layers = partial(wrapper, datasette, layers)
            await layers(scope, receive, send)

        return wrapped if is_site(datasette) else app

    return wrap


@hook(hookwrapper=True)
def handle_exception(
    datasette: Any, request: Any, exception: Exception
) -> Generator[None, Any, None]:
    """Answer a failed request instead of Datasette's own handler, if this is our site.

    Datasette takes the first response, but makes those of all handlers. Its own would
    render a second page and, if `rich` is installed, print the variables of every
    frame: a second of processor time for each error. Handlers of other plugins come
    before ours.
    """
    # A hook wrapper runs around the hooks of all plugins; this calls them.
    outcome = yield
    if not is_site(datasette):
        return
    answers = [
        answer
        for answer in outcome.get_result()
        if getattr(answer, "__module__", "") != _DATASETTE_ERRORS
    ]
    answers.append(partial(answer_error, datasette, request, exception))
    outcome.force_result(answers)
