"""The catalogue's pages and safety limits, as Datasette hooks.

Datasette shows tables; people look for packages, hashes and specs. These hooks put the pages of
`spack_cache_db.site` beside Datasette's own, and bound what a request can cost. Only hooks that
Datasette 0.65 and 1.0 share are used.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from datasette import handle_exception as datasettes_handler
from datasette import hookimpl
from datasette.utils.asgi import Response
from markupsafe import Markup, escape

from spack_cache_db.site import admission, cors, limits, routes, spec_functions, wrapper
from spack_cache_db.site.datasette065 import kept_facets, shared_metadata, tables, view_counts
from spack_cache_db.site.sql_threads import note_connection

Function = TypeVar("Function", bound=Callable[..., object])

_STATIC = Path(__file__).resolve().parent.parent / "static"
# Read once, when Datasette loads this file: a server is started again after an update.
_VERSION = routes.asset_version(_STATIC)
_HASH = re.compile(r"[a-z2-7]{32}")
_NAMED = {
    ("package", "builds"): "package",
    ("package", "build_listings"): "package",
    ("package", "host_builds"): "package",
    ("release", "build_listings"): "release",
    ("release", "spec_stacks"): "release",
    ("stack", "spec_stacks"): "stack",
    ("name", "packages"): "package",
    ("name", "releases"): "release",
    ("name", "stacks"): "stack",
}

# Where rich is installed Datasette prints the variables of every frame for each bad address, which
# keeps all visitors waiting for seconds.
datasettes_handler.rich = None


def hook(function: Function) -> Function:
    """Mark a function as a hook; Datasette's own decorator has no types."""
    return cast("Function", hookimpl(function))


@hook
def startup(datasette: Any) -> None:
    """Count facets once and the large views never; spare Datasette copies of the metadata.

    From 1.0 on it makes none, has no `metadata`, and counts by itself.
    """
    if hasattr(datasette, "metadata"):
        view_counts.tell(datasette)
        databases = datasette.metadata("databases") or {}
        kept_facets.take_over(databases)
        shared_metadata.share_databases(databases)


@hook
def register_routes() -> tuple[tuple[str, routes.Handler], ...]:
    """Add our pages; they come before Datasette's own, so `/` is ours."""
    return routes.ROUTES


@hook
def extra_template_vars() -> dict[str, object]:
    """Tell the templates which version of the style sheet and script they use."""
    return {"asset_version": _VERSION, "table_body": tables.table_body}


@hook
def render_cell(value: object, column: str, table: str | None, datasette: Any) -> Markup | None:
    """Link hashes, and names of packages, releases and stacks, to their pages."""
    if not isinstance(value, str):
        return None
    kind = "spec" if column == "hash" and _HASH.fullmatch(value) else None
    kind = kind or _NAMED.get((column, table or ""))
    if kind is None or (kind == "stack" and value == "root"):
        return None
    address = datasette.urls.path(f"/{kind}/{quote(value)}")
    return Markup('<a href="{}">{}</a>').format(address, escape(value))


@hook
def register_facet_classes() -> list[type]:
    """Count the facets that metadata.yml asks for once."""
    return [kept_facets.KeptFacet]


@hook
def prepare_connection(conn: sqlite3.Connection, database: str) -> None:
    """Add our functions and bound every statement; Datasette's own bookkeeping stays as it is.

    A connection and the functions that know it keep each other for ever (Python cannot see the
    cycle through SQLite), and Datasette opens one to memory whenever it is asked for its versions.
    """
    note_connection(conn)
    if not database.startswith("_"):
        spec_functions.register(conn)
    if not database.startswith("_internal"):
        limits.restrict(conn)


@hook
def asgi_wrapper(datasette: Any) -> Callable[[wrapper.App], wrapper.App]:
    """Put queues before every request; headers, caching and compression around every answer."""

    def wrap(app: wrapper.App) -> wrapper.App:
        ttl, base_url = datasette.setting("default_cache_ttl"), datasette.setting("base_url")
        app = admission.admit(app, datasette, [pattern for pattern, _ in routes.ROUTES])
        app = wrapper.wrap(app, ttl, base_url)
        return admission.end_with_visitor(cors.open_to_others(app, cors=datasette.cors))

    return wrap


@hook
def handle_exception(datasette: Any, request: Any, exception: Exception) -> Any:
    """Answer a query that hit the memory limit with a reason instead of an empty error."""
    if not isinstance(exception, MemoryError):
        return None
    if request.path.endswith(".json"):
        return Response.json({"ok": False, "error": limits.NO_MEMORY, "status": 400}, status=400)

    async def page() -> object:
        context = {"status": 400, "error": limits.NO_MEMORY, "title": "Query refused"}
        html = await datasette.render_template("error.html", context, request=request)
        return Response.html(html, status=400)

    return page
