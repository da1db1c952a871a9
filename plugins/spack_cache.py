"""The catalogue's pages and safety limits, as Datasette hooks.

These hooks add the pages of `spack_cache_db.site` to Datasette's own, and limit what a request can
cost. Only hooks of both Datasette 0.65 and 1.0 are used.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.app import Datasette
from datasette.plugins import pm
from markupsafe import Markup, escape

from spack_cache_db.records import ROOT
from spack_cache_db.site import (
    admission,
    canned_queries,
    cors,
    csv_errors,
    data_pages,
    errors,
    footer,
    identity,
    permissions,
    reading,
    routes,
    spec_functions,
    wrapper,
)
from spack_cache_db.site.hooks import hook
from spack_cache_db.site.sql.authorizer import authorize
from spack_cache_db.site.sql.database import use_runners
from spack_cache_db.site.sql.limits import restrict
from spack_cache_db.site.sql_threads import note_connection

_SITE = Path(__file__).resolve().parent.parent
# Read once, when Datasette loads this file: a server is started again after an update.
_VERSION = routes.asset_version(_SITE / "static")
_HASH = re.compile(r"[a-z2-7]{32}")
_HASHES = ("hash", "dependency_hash")
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

if pm.has_plugin("datasette.handle_exception"):
    pm.unregister(name="datasette.handle_exception")
if hasattr(Datasette, "metadata"):
    _room = import_module("spack_cache_db.site.datasette065")
    if not pm.is_registered(_room):
        pm.register(_room)


@hook
def startup(datasette: Any) -> Callable[[], Awaitable[None]]:
    """Give visitors' SQL its own processes; learn what all pages show; add the canned queries."""
    use_runners(datasette)

    async def started() -> None:
        if any(each.path for each in datasette.databases.values()):
            await identity.learn(datasette, reading.published(datasette))
        await footer.learn(datasette)
        if hasattr(datasette, "add_query"):
            await canned_queries.add_queries(datasette, _SITE / "metadata.yml")

    return started


@hook
def register_routes() -> tuple[tuple[str, permissions.Handler], ...]:
    """Add our pages; they come before Datasette's own, so `/` is ours."""
    return tuple(
        (pattern, permissions.guard(handler, reading.published))
        for pattern, handler in routes.ROUTES
    )


@hook
def extra_template_vars(datasette: Any) -> dict[str, object]:
    """Tell the templates the version of style sheets and scripts, and what all pages show."""
    return {
        "asset_version": _VERSION,
        "in_order": data_pages.in_order,
        "newest_snapshot": footer.newest(datasette),
        "site_title": identity.title_of(datasette),
    }


@hook
def render_cell(value: object, column: str, table: str | None, datasette: Any) -> Markup | None:
    """Link hashes, and names of packages, releases and stacks, to their pages."""
    if not isinstance(value, str):
        return None
    kind = "spec" if column in _HASHES and _HASH.fullmatch(value) else None
    kind = kind or _NAMED.get((column, table or ""))
    if kind is None or (kind == "stack" and value == ROOT):
        return None
    address = datasette.urls.path(f"/{kind}/{quote(value)}")
    return Markup('<a href="{}">{}</a>').format(address, escape(value))


@hook
def prepare_connection(conn: sqlite3.Connection, database: str) -> None:
    """Add our functions, bound every statement and say what it may use.

    Datasette's own bookkeeping stays as it is.

    A connection and the functions that know it keep each other for ever (Python cannot see the
    cycle through SQLite), and Datasette opens one to memory whenever it is asked for its versions.
    """
    note_connection(conn)
    if not database.startswith("_internal"):
        restrict(conn)
    if not database.startswith("_"):
        spec_functions.register(conn)
        authorize(conn)


@hook
def asgi_wrapper(datasette: Any) -> Callable[[wrapper.App], wrapper.App]:
    """Put queues before every request; headers, caching and compression around every answer."""

    def wrap(app: wrapper.App) -> wrapper.App:
        ttl, base_url = datasette.setting("default_cache_ttl"), datasette.setting("base_url")
        own = [pattern for pattern, _ in routes.ROUTES]
        app = csv_errors.tell(app, base_url, own)
        app = admission.admit(app, datasette, own)
        app = wrapper.wrap(app, ttl, base_url)
        return admission.end_with_visitor(cors.open_to_others(app, cors=datasette.cors))

    return wrap


@hook
def handle_exception(
    datasette: Any, request: Any, exception: Exception
) -> Callable[[], Awaitable[Any]]:
    """Answer a request that failed with a sentence."""
    return partial(errors.answer, datasette, request, exception)
