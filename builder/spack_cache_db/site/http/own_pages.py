"""Serves our own pages: Datasette's handlers of the addresses in `routes`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from datasette.utils import await_me_maybe
from jinja2 import Environment, TemplateError

from spack_cache_db.site import versions
from spack_cache_db.site.catalogue import ensure, may_view, published, settings_of
from spack_cache_db.site.http.asgi import Send
from spack_cache_db.site.http.download import DOWNLOAD, download
from spack_cache_db.site.log import log_error
from spack_cache_db.site.page_request import Link, PageRequest
from spack_cache_db.site.plugin_manager import plugin_manager
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.routes import ROUTES, respond, route_of
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql.limits import time_limit

FORM_TYPE = "application/x-www-form-urlencoded"
NO_FORM = f"expected a form ({FORM_TYPE}) with the field q: curl --data-urlencode q@spack.yaml"
PAGE_SECONDS = 2.0
"""Longest processor time of the statements of one of our own pages."""

_OF_DATASETTE = "default:"
"""The beginning of the names of Datasette's own templates."""

Result = TypeVar("Result")
Handler = Callable[..., Awaitable[None]]
"""A function that Datasette calls with those of `datasette`, `request` and `send` that
are among its arguments.
"""

_sites: WeakKeyDictionary[Any, dict[sqlite3.Connection, Site]] = WeakKeyDictionary()
"""The sites of each of Datasette's databases, one for each connection to it."""


def handler_of(number: int) -> Handler:
    """Return the function that Datasette calls for a route, given by its index in
    `ROUTES`.
    """

    async def handler(datasette: Any, request: Any, send: Send) -> None:
        database = published(datasette).name
        await ensure(datasette, request.actor, "view-database", database)

        # Read the form, if there is one.
        form = None
        if request.method == "POST":
            content_type = request.headers.get("content-type", FORM_TYPE)
            if not content_type.startswith(FORM_TYPE):
                await refused(NO_FORM, None, 415).asgi_send(send)
                return
            form = (await request.post_body()).decode("latin-1")

        page_request = await _page_request(datasette, request, form)
        response = await run_page(datasette, respond, number, page_request)
        await response.asgi_send(send)
        # The response of most pages is whole. The others send more parts.
        if response.following is not None:
            first = response.following
            await _send_other_parts(datasette, number, page_request, first, send)

    return handler


async def _send_other_parts(
    datasette: Any, number: int, page_request: PageRequest, first: int, send: Send
) -> None:
    """Send the parts of a response that follow the first one.

    If a part fails, there is no last message, and the server closes the connection:
    nobody takes a part of the rows for all.

    Args:
        datasette: the Datasette.
        number: the index of the route in `ROUTES`.
        page_request: the request for the first part.
        first: the number of the first row of the second part.
        send: sends an ASGI message.
    """
    following: int | None = first
    while following is not None:
        next_request = replace(page_request, first=following)
        try:
            part = await run_page(datasette, respond, number, next_request)
        except Exception as error:
            log_error(page_request.full_path, error)
            return
        if part.status != 200:
            return
        following = part.following
        has_more = following is not None
        await send(
            {"type": "http.response.body", "body": part.body, "more_body": has_more}
        )


async def run_page(
    datasette: Any, page: Callable[..., Result], *arguments: Any
) -> Result:
    """Return what `page(site, *arguments)` returns, on a connection of the published
    database.

    Raises:
        sqlite3.OperationalError: its statements took more than `PAGE_SECONDS`.
    """
    database = published(datasette)
    sites = _sites.setdefault(database, {})

    def page_on(conn: sqlite3.Connection) -> Result:
        if conn not in sites:
            sites[conn] = Site(settings_of(datasette, database), conn)
        with time_limit(conn, PAGE_SECONDS), _plain_texts(conn):
            return page(sites[conn], *arguments)

    # Datasette calls the function in a thread that has a connection.
    result: Result = await database.execute_fn(page_on)
    return result


def compile_templates(datasette: Any) -> None:
    """Compile the templates of all pages, as far as they are not compiled yet.

    Otherwise, the first page of each kind compiles its own, which takes 30 to 200 ms.
    """
    for site in _sites.get(published(datasette), {}).values():
        _compile(site.environment, site.environment.list_templates())

    # Datasette's own templates have a second name, such as `default:table.html`,
    # because `table.html` may be ours. Ours also include parts, which begin with `_`.
    # Datasette lists the templates of our pages as well, and does not use them.
    environment = versions.environment_of(datasette)
    names = environment.list_templates()
    used = [name for name in names if name.startswith((_OF_DATASETTE, "_"))]
    used += [name for name in names if f"{_OF_DATASETTE}{name}" in names]
    _compile(environment, used)


def _compile(environment: Environment, names: Iterable[str]) -> None:
    for name in names:
        # The page that needs a template reports what is wrong with it.
        with suppress(TemplateError, OSError, UnicodeError):
            environment.get_template(name)


@contextmanager
def _plain_texts(conn: sqlite3.Connection) -> Iterator[None]:
    """Let SQLite's module make the texts of rows, as on every other connection of ours.

    Datasette has them made by a Python function, for texts that are not UTF-8. A
    database of `build` has none, and some pages read ten thousands of texts.
    """
    text_factory = conn.text_factory
    conn.text_factory = str
    try:
        yield
    finally:
        conn.text_factory = text_factory


async def _page_request(datasette: Any, request: Any, form: str | None) -> PageRequest:
    """Return the request for a page that corresponds to one of Datasette's."""
    # Only one page lists the other databases.
    databases: list[Link] = []
    if request.path == "/about":
        databases = await _other_databases(datasette, request.actor)
    origin = str(datasette.absolute_url(request, "/")).rstrip("/")
    return PageRequest(
        path=request.path,
        query=request.query_string,
        origin=origin,
        form=form,
        menu=tuple(await _menu(datasette, request)),
        databases=tuple(databases),
    )


async def _menu(datasette: Any, request: Any) -> list[Link]:
    """Return the entries that plugins add to Datasette's menu for this visitor."""
    links = []
    results = plugin_manager().hook.menu_links(
        datasette=datasette, actor=request.actor, request=request
    )
    for result in results:
        # A plugin returns a list or None, or a function or coroutine that does.
        entries = await await_me_maybe(result)
        for entry in entries or ():
            links.append(Link(str(entry["href"]), str(entry["label"])))
    if request.actor:
        links.append(Link(datasette.urls.logout(), "Log out"))
    return links


async def _other_databases(datasette: Any, actor: Any) -> list[Link]:
    """Return the databases that a visitor may see, besides that of our pages."""
    # The second one has Datasette's own tables.
    hidden = (published(datasette).name, "_internal")
    links = []
    for name in datasette.databases:
        if name not in hidden and await may_view(datasette, actor, name):
            links.append(Link(datasette.urls.database(name), name))
    return links


_HANDLERS = tuple(
    (route.pattern, handler_of(number)) for number, route in enumerate(ROUTES)
)
PAGES: tuple[tuple[str, Handler], ...] = (*_HANDLERS, (DOWNLOAD, download))
"""Patterns of our own addresses, and the functions that Datasette calls for them."""


def is_own_page(path: str) -> bool:
    """Return whether a path is one of our pages or a download."""
    return route_of(path) is not None or re.match(DOWNLOAD, path) is not None
