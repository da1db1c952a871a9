"""Serves our own pages: Datasette's handlers of the addresses in `routes`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from datasette.plugins import pm
from datasette.utils import await_me_maybe

from spack_cache_db.site.catalogue import ensure, may_view, published, settings_of
from spack_cache_db.site.http.download import DOWNLOAD, download
from spack_cache_db.site.log import log_error
from spack_cache_db.site.page_request import Link, PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.routes import ROUTES, respond, route_of
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql.statements import time_limit

FORM_TYPE = "application/x-www-form-urlencoded"
NO_FORM = f"expected a form ({FORM_TYPE}) with the field q: curl --data-urlencode q@spack.yaml"
PAGE_SECONDS = 2.0
"""Longest processor time of the statements of one of our own pages."""

Handler = Callable[..., Awaitable[None]]

_sites: WeakKeyDictionary[Any, dict[sqlite3.Connection, Site]] = WeakKeyDictionary()
"""The sites of each of Datasette's databases, one for each connection to it."""


def handler_of(number: int) -> Handler:
    """Return the function that Datasette calls for a route, given by its index in
    `ROUTES`.
    """

    async def handler(datasette: Any, request: Any, send: Any) -> None:
        await ensure(
            datasette, request.actor, "view-database", published(datasette).name
        )
        form = None
        if request.method == "POST":
            if not request.headers.get("content-type", FORM_TYPE).startswith(FORM_TYPE):
                await refused(NO_FORM, None, 415).asgi_send(send)
                return
            form = (await request.post_body()).decode("latin-1")
        page_request = await _page_request(datasette, request, form)
        answer = await run_page(datasette, respond, number, page_request)
        await answer.asgi_send(send)
        while answer.following is not None:
            part = replace(page_request, first=answer.following)
            try:
                answer = await run_page(datasette, respond, number, part)
            except Exception as error:
                log_error(request.full_path, error)
                # Without a last message, the server closes the connection.
                return
            if answer.status != 200:
                return
            more = answer.following is not None
            await send(
                {"type": "http.response.body", "body": answer.body, "more_body": more}
            )

    return handler


async def run_page(
    datasette: Any, page: Callable[..., PageResponse], *arguments: Any
) -> PageResponse:
    """Return what `page(site, *arguments)` returns, on a connection of the published
    database.
    """
    database = published(datasette)
    sites = _sites.setdefault(database, {})

    def run(conn: sqlite3.Connection) -> PageResponse:
        if conn not in sites:
            sites[conn] = Site(settings_of(datasette, database), conn)
        with time_limit(conn, PAGE_SECONDS):
            return page(sites[conn], *arguments)

    answer: PageResponse = await database.execute_fn(run)
    return answer


async def _page_request(datasette: Any, request: Any, form: str | None) -> PageRequest:
    """Return the request for a page that corresponds to one of Datasette's."""
    actor = request.actor
    menu = [
        Link(str(entry["href"]), str(entry["label"]))
        for entries in pm.hook.menu_links(
            datasette=datasette, actor=actor, request=request
        )
        for entry in await await_me_maybe(entries) or ()
    ]
    if actor:
        menu.append(Link(datasette.urls.logout(), "Log out"))
    databases = [
        Link(datasette.urls.database(name), name)
        for name in (datasette.databases if request.path == "/about" else ())
        if name not in (published(datasette).name, "_internal")
        and await may_view(datasette, actor, name)
    ]
    origin = str(datasette.absolute_url(request, "/")).rstrip("/")
    query = request.query_string
    return PageRequest(request.path, query, origin, form, tuple(menu), tuple(databases))


PAGES: tuple[tuple[str, Handler], ...] = (
    *((route.pattern, handler_of(number)) for number, route in enumerate(ROUTES)),
    (DOWNLOAD, download),
)
"""Patterns of our own addresses, and the functions that Datasette calls for them."""


def is_own_page(path: str) -> bool:
    """Return whether a path is one of our pages or a download."""
    return route_of(path) is not None or re.match(DOWNLOAD, path) is not None
