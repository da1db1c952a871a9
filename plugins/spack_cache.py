"""The catalogue's pages and safety limits, as Datasette hooks.

These hooks add the pages of `spack_cache_db.site` to Datasette's own, and limit what a request can
cost. Only hooks of both Datasette 0.65 and 1.0 are used.
"""

from __future__ import annotations

import itertools
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
from spack_cache_db.site import datasettes, delivery, errors, identity, middleware, queues, routes
from spack_cache_db.site.datasettes import hook
from spack_cache_db.site.sandbox import database as sandbox
from spack_cache_db.site.sandbox import spec_functions
from spack_cache_db.site.sandbox.statements import authorize, restrict

_SITE = Path(__file__).resolve().parent.parent
# Read once, when Datasette loads this file: a server is started again after an update.
_VERSION = routes.asset_version(_SITE / "static")
_HASH = re.compile(r"[a-z2-7]{32}")
_cells = itertools.count(1)
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
datasettes.check_sql_in_linear_time()
if hasattr(Datasette, "metadata"):
    _room = import_module("spack_cache_db.site.datasette065")
    if not pm.is_registered(_room):
        pm.register(_room)


@hook
def startup(datasette: Any) -> Callable[[], Awaitable[None]]:
    """Give visitors' SQL its sandbox; learn what all pages show; add the canned queries."""
    sandbox.use_sandbox(datasette)
    datasettes.render_in_slices(datasette)

    async def started() -> None:
        await identity.learn(datasette)
        if hasattr(datasette, "add_query"):
            await datasettes.add_queries(datasette, _SITE / "metadata.yml")

    return started


@hook
def register_routes() -> tuple[tuple[str, datasettes.Handler], ...]:
    """Add our pages; they come before Datasette's own, so `/` is ours."""
    return tuple(
        (pattern, datasettes.permitted(handler, sandbox.published))
        for pattern, handler in routes.ROUTES
    )


@hook
def extra_template_vars(datasette: Any) -> dict[str, object]:
    """Tell the templates the version of style sheets and scripts, and what all pages show."""
    return {
        "asset_version": _VERSION,
        "in_order": datasettes.in_order,
        "newest_snapshot": identity.newest(datasette),
        "site_title": identity.title_of(datasette),
    }


@hook
def render_cell(
    value: object, column: str, table: str | None, datasette: Any
) -> Markup | Awaitable[object] | None:
    """Link hashes, and names of packages, releases and stacks, to their pages.

    Between two cells of a large table others have their turn.
    """
    shown = _link(value, column, table, datasette)
    is_pause = next(_cells) % datasettes.CELLS_AT_ONCE == 0
    return datasettes.after_others(shown) if is_pause else shown


def _link(value: object, column: str, table: str | None, datasette: Any) -> Markup | None:
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
    if not database.startswith("_internal"):
        restrict(conn)
    if not database.startswith("_"):
        spec_functions.register(conn)
        authorize(conn)


@hook
def asgi_wrapper(datasette: Any) -> Callable[[middleware.App], middleware.App]:
    """Put bounds around every request and every answer, the outermost last."""

    def wrap(app: middleware.App) -> middleware.App:
        own = [pattern for pattern, _ in routes.ROUTES]
        app = errors.guard_csv(app, datasette.setting("base_url"), own)
        app = queues.admit(app, datasette, own)
        app = delivery.collect(app)
        app = middleware.guard(app, datasette)
        return delivery.deliver(app)

    return wrap


@hook
def handle_exception(
    datasette: Any, request: Any, exception: Exception
) -> Callable[[], Awaitable[Any]]:
    """Answer a request that failed with a sentence."""
    return partial(errors.answer, datasette, request, exception)
