"""Our pages and safety limits, as Datasette hooks.

Datasette finds this module by its entry point. The hooks add the pages of `own_pages` to
Datasette's own, and limit what a request can cost, where a catalogue is served. Only documented
hooks of Datasette 0.65 and 1.0 are used.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from datasette import hookimpl
from datasette.filters import FilterArguments
from datasette.plugins import pm
from datasette.utils.asgi import asgi_static
from markupsafe import Markup

from spack_cache_db.records import ROOT
from spack_cache_db.schema import TABLES, VIEWS
from spack_cache_db.site import catalogues, middleware, site_folder
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.answers import link_to, links_to
from spack_cache_db.site.catalogues import is_site
from spack_cache_db.site.download import note_state
from spack_cache_db.site.error_pages import answer_error, check_queries, guard_csv
from spack_cache_db.site.own_pages import PAGES, is_own_page
from spack_cache_db.site.pages.filters import options
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.site.sandbox.statements import authorize, restrict
from spack_cache_db.site.table_addresses import check_table, wheres
from spack_cache_db.site.visits import visited
from spack_cache_db.site.whole_answers import whole
from spack_cache_db.site.workers import execute
from spack_cache_db.spack.lexer import is_hash

Function = TypeVar("Function", bound=Callable[..., object])

STATIC = r"^/static/(?P<path>.*)$"
_OWN_ERRORS = "datasette.handle_exception"
_HASHES = ("hash", "dependency_hash")
_OF_VIEWS = {
    "package": "package",
    "dependency_package": "package",
    "release": "release",
    "previous": "release",
    "stack": "stack",
}
"""Columns of views whose texts are names, and the kind of their pages."""
_OF_TABLES = {"packages": "package", "releases": "release", "stacks": "stack"}
"""The same of tables with a column `name`."""
LINKED = {*_HASHES, *_OF_VIEWS, "name"}
_ORDER = {name: place for place, name in enumerate((*VIEWS, *(table.name for table in TABLES)))}


def hook(function: Function, *, trylast: bool = False, optionalhook: bool = False) -> Function:
    """Mark a function as a hook.

    Args:
        function: what Datasette calls.
        trylast: whether it is called after those of other plugins.
        optionalhook: whether there are versions of Datasette without this hook.
    """
    return cast("Function", hookimpl(function, trylast=trylast, optionalhook=optionalhook))


@hook
def prepare_jinja2_environment(env: Any, datasette: Any) -> None:
    """Add what a catalogue is shown with: this is the first hook, before metadata is read."""
    if not is_site(datasette):
        return
    if pm.has_plugin(_OWN_ERRORS):
        pm.unregister(name=_OWN_ERRORS)
    allowances_of(datasette)
    catalogues.require_addresses(datasette, [STATIC, *(pattern for pattern, _ in PAGES)])
    catalogues.describe(datasette)
    paths, folder = env.loader.loaders[0].searchpath, str(site_folder() / "templates")
    if folder not in paths:
        # Just before Datasette's own.
        paths.insert(len(paths) - 1, folder)


@hook
def startup(datasette: Any) -> Callable[[], Awaitable[None]] | None:
    """Send visitors' SQL to worker processes; read what all pages show."""
    if not is_site(datasette):
        return None
    for name in catalogues.others(datasette):
        if (fault := catalogues.fault_of(datasette.databases[name])) is not None:
            print(f"Not in the site's pages: {fault}", file=sys.stderr)
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            note_state(Path(database.path))
    if not allowances_of(datasette).sql_in_server:
        execute.use_workers(datasette)
    return partial(catalogues.learn, datasette)


@hook
def register_routes(datasette: Any) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Add our pages; they come before Datasette's own, so `/` is ours."""
    if not is_site(datasette):
        return ()
    static = (STATIC, asgi_static(_static()))
    return (static, *PAGES)


@partial(hook, trylast=True)
def filters_from_request(
    request: Any, database: str, table: str, datasette: Any
) -> Callable[[], Awaitable[FilterArguments]] | None:
    """Refuse columns that a table does not have, and redirect to the spelling of names.

    Datasette's own links that remove a `_where` lack the base.
    """
    if not is_site(datasette):
        return None

    async def checked() -> FilterArguments:
        await check_table(datasette, request, database, table)
        context = {"extra_wheres_for_ui": wheres(datasette, request)}
        return FilterArguments([], extra_context=context)

    return checked


@hook
def extra_template_vars(datasette: Any, database: str) -> dict[str, object]:
    """Tell the templates the version of style sheets and scripts, and what all pages show."""
    return {
        **catalogues.facts_of(datasette).words,
        "asset_version": catalogues.asset_version(),
        "catalogue": catalogues.name_of(datasette),
        "description_of": partial(catalogues.description_of, datasette, database),
        "in_groups": partial(catalogues.in_groups, datasette, database),
        "in_order": in_order,
        "is_cut": execute.is_cut(),
        "links_to": links_to(datasette.urls),
        "options": options,
    }


def in_order(found: Iterable[Any]) -> list[Any]:
    """Return tables or views in the schema's order, those that are not ours last.

    Args:
        found: what Datasette says of each; 0.65 has dictionaries, 1.0 may have records.
    """

    def place(item: Any) -> int:
        name = item["name"] if isinstance(item, dict) else item.name
        return _ORDER.get(str(name), len(_ORDER))

    return sorted(found, key=place)


def _static() -> Path:
    return site_folder() / "static"


@hook
def render_cell(
    value: object, column: str, table: str | None, database: str, datasette: Any
) -> Markup | None:
    """Link hashes, and names of packages, releases and stacks, to their pages."""
    shown = None
    if column in LINKED:
        shown = link(value, column, table, database, datasette)
    elif table is None and isinstance(value, bytes) and datasette.setting("base_url") != "/":
        # Datasette's own link lacks the base.
        shown = Markup("&lt;Binary:&nbsp;{:,}&nbsp;bytes&gt;").format(len(value))
    return shown


def link(
    value: object, column: str, table: str | None, database: str, datasette: Any
) -> Markup | None:
    """Return the link to the page of what a value names; None if it has none."""
    if not isinstance(value, str):
        return None
    kind = "spec" if column in _HASHES and is_hash(value) else None
    kind = kind or (_OF_VIEWS.get(column) if table in VIEWS else None)
    kind = kind or (_OF_TABLES.get(table or "") if column == "name" else None)
    if kind is None or (kind == "stack" and value == ROOT):
        return None
    # Asked last: nearly all cells have no page.
    if database != catalogues.name_of(datasette):
        return None
    return link_to(datasette.urls, kind, value)


@hook
def prepare_connection(conn: sqlite3.Connection, database: str, datasette: Any) -> None:
    """Add our functions, bound every statement and say what it may use.

    Datasette's internal database stays as it is.

    Connections to memory get no functions of ours: such functions refer to their connection, and
    Python cannot free that cycle through SQLite. Datasette opens one for each look at its versions.
    """
    if not is_site(datasette):
        return
    if not database.startswith("_internal"):
        # With --crossdb Datasette attaches all files to this one.
        restrict(conn, may_attach=database == "_memory" and datasette.crossdb)
    if not database.startswith("_"):
        sql_functions.register(conn)
        authorize(conn, allowances_of(datasette).sql_functions)


@partial(hook, optionalhook=True)
def get_metadata(datasette: Any) -> dict[str, str]:
    """Say whose data the site shows, where its metadata does not. Datasette 1.0 is told once."""
    return catalogues.facts_of(datasette).described if catalogues.has_facts(datasette) else {}


@partial(hook, optionalhook=True)
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool:
    """Take environments from a form without a token: the page only reads, and sets no cookie."""
    is_reading = middleware.READING_POSTS.fullmatch(middleware.path_of(scope)) is not None
    return is_reading and is_site(datasette)


@hook
def asgi_wrapper(datasette: Any) -> Callable[[middleware.App], middleware.App]:
    """Put bounds around every request and every answer."""

    def wrap(app: middleware.App) -> middleware.App:
        if not is_site(datasette):
            return app
        # From the innermost to the outermost.
        # CSV that is an error gets the status of one.
        app = guard_csv(app)
        # Fields that a canned query does not have, and names that the database does not have.
        app = check_queries(app, datasette)
        # Rows of a table are complete, and the statements of a request share one budget.
        app = whole(app, datasette, is_own_page)
        # Bodies are read whole, and visitors who leave end what they asked for.
        app = visited(app)
        # Requests are checked before their bodies are read; headers and compression are added.
        app = middleware.guard(app, datasette)
        # Paths have no base.
        return middleware.below_base(app, datasette.setting("base_url"))

    return wrap


@hook
def handle_exception(
    datasette: Any, request: Any, exception: Exception
) -> Callable[[], Awaitable[Any]]:
    """Answer a request that failed with a sentence; without a catalogue, as Datasette does."""
    if not is_site(datasette):
        own: Callable[[], Awaitable[Any]]
        own = import_module(_OWN_ERRORS).handle_exception(datasette, request, exception)
        return own
    return partial(answer_error, datasette, request, exception)
