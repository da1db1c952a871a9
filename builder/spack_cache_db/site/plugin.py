"""The catalogue's pages and safety limits, as Datasette hooks.

Datasette finds this module by its entry point. The hooks add the pages of `spack_cache_db.site` to
Datasette's own, and limit what a request can cost, where a catalogue is served. Only hooks of both
Datasette 0.65 and 1.0 are used.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Awaitable, Callable
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.filters import FilterArguments
from datasette.plugins import pm
from datasette.utils.asgi import asgi_static
from markupsafe import Markup, escape

from spack_cache_db.records import ROOT
from spack_cache_db.site import (
    addresses,
    catalogues,
    datasettes,
    delivery,
    error_pages,
    identity,
    middleware,
    queues,
    routes,
    site_folder,
    warm_start,
    whole_answers,
)
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogues import is_site
from spack_cache_db.site.datasettes import hook
from spack_cache_db.site.pages.filters import options
from spack_cache_db.site.sandbox import database as sandbox
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.site.sandbox.statements import authorize, restrict
from spack_cache_db.spack.lexer import is_hash

STATIC = r"^/static/(?P<path>.*)$"
_OWN_ERRORS = "datasette.handle_exception"
_HASHES = ("hash", "dependency_hash")
_KINDS = ("package", "release", "stack")
_NAMED = {
    ("package", "builds"): "package",
    ("package", "build_listings"): "package",
    ("package", "host_builds"): "package",
    ("package", "dependency_edges"): "package",
    ("dependency_package", "dependency_edges"): "package",
    ("release", "build_listings"): "release",
    ("release", "spec_stacks"): "release",
    ("stack", "spec_stacks"): "stack",
    ("name", "packages"): "package",
    ("name", "releases"): "release",
    ("name", "stacks"): "stack",
}
LINKED = {*_HASHES, *(column for column, _ in _NAMED)}


@hook
def prepare_jinja2_environment(env: Any, datasette: Any) -> None:
    """Add what a catalogue is shown with: this is the first hook, before metadata is read."""
    if not is_site(datasette):
        return
    if pm.has_plugin(_OWN_ERRORS):
        pm.unregister(name=_OWN_ERRORS)
    allowances_of(datasette)
    catalogues.require_addresses(datasette, [STATIC, *(each.pattern for each in routes.ROUTES)])
    catalogues.describe(datasette)
    datasettes.add_templates(env, site_folder() / "templates")


@hook
def startup(datasette: Any) -> Callable[[], Awaitable[None]] | None:
    """Give visitors' SQL its sandbox; learn what all pages show."""
    if not is_site(datasette):
        return None
    for name in catalogues.others(datasette):
        if (fault := catalogues.fault_of(datasette.databases[name])) is not None:
            print(f"Not in the site's pages: {fault}", file=sys.stderr)
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            delivery.note_state(Path(database.path))
    datasettes.keep_own_templates(datasette)
    if not allowances_of(datasette).sql_in_server:
        sandbox.use_sandbox(datasette)
    return partial(identity.learn, datasette)


@hook
def register_routes(datasette: Any) -> tuple[tuple[str, datasettes.Handler], ...]:
    """Add our pages; they come before Datasette's own, so `/` is ours."""
    if not is_site(datasette):
        return ()
    static = (STATIC, asgi_static(_static()))
    return (static, *((each.pattern, routes.handler_of(each)) for each in routes.ROUTES))


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
        await addresses.check_table(datasette, request, database, table)
        wheres = addresses.wheres(datasette, request)
        return FilterArguments([], extra_context={"extra_wheres_for_ui": wheres})

    return checked


@hook
def extra_template_vars(datasette: Any) -> dict[str, object]:
    """Tell the templates the version of style sheets and scripts, and what all pages show."""
    shown = identity.identity_of(datasette)
    return {
        "asset_version": _asset_version(),
        "catalogue": catalogues.name_of(datasette),
        "choices": shown.choices,
        "in_order": datasettes.in_order,
        "links_to": {kind: cache(partial(_link_to, datasette, kind)) for kind in _KINDS},
        "is_cut": sandbox.is_cut(),
        "newest_snapshot": shown.newest,
        "noun": shown.noun,
        "options": options,
        "site_title": shown.origin.title,
    }


def _static() -> Path:
    return site_folder() / "static"


@cache
def _asset_version() -> str:
    """Return a text that changes with a style sheet or script; an update restarts the server."""
    digest = sha256()
    for path in sorted(_static().iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


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
    kind = kind or _NAMED.get((column, table or ""))
    if kind is None or (kind == "stack" and value == ROOT):
        return None
    # Asked last: nearly all cells have no page.
    if database != catalogues.name_of(datasette):
        return None
    return _link_to(datasette, kind, value)


def _link_to(datasette: Any, kind: str, name: str, query: str = "") -> Markup:
    """Return a link to the page of a package, a release, a stack or a spec."""
    address = escape(f"{datasette.urls.path(f'/{kind}/{quote(name)}')}{query}")
    return Markup(f'<a href="{address}">{escape(name)}</a>')


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
    return identity.described(identity.identity_of(datasette))


@partial(hook, optionalhook=True)
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool:
    """Take environments from a form without a token: the page only reads, and sets no cookie."""
    is_reading = middleware.READING_POSTS.fullmatch(middleware.path_of(scope)) is not None
    return is_reading and is_site(datasette)


@hook
def asgi_wrapper(datasette: Any) -> Callable[[middleware.App], middleware.App]:
    """Put bounds around every request and every answer, the outermost last."""

    def wrap(app: middleware.App) -> middleware.App:
        if not is_site(datasette):
            return app
        app = error_pages.guard_csv(app)
        app = queues.admit(addresses.check_queries(app, datasette), datasette)
        app = whole_answers.whole(delivery.collect(app), datasette, routes.is_own_page)
        app = middleware.guard(app, datasette)
        app = delivery.deliver(warm_start.warm(app, datasette))
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
    return partial(error_pages.answer, datasette, request, exception)
