"""What is around Datasette for each request: the base, checks, headers, addresses.

Each wrapper takes a Datasette, the application inside it, and the three arguments of an
ASGI application. It answers the request itself, or calls the application with the same
request or a changed one. `plugin.WRAPPERS` has their order.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from typing import Any

from datasette.utils import asgi, await_me_maybe, tilde_decode

from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogue import may_view, name_of_route
from spack_cache_db.site.http.asgi import App, Message, Receive, Scope, Send
from spack_cache_db.site.http.checks import bounded, check
from spack_cache_db.site.http.error_pages import answer_error
from spack_cache_db.site.http.headers import completed
from spack_cache_db.site.http.own_pages import run_page
from spack_cache_db.site.metadata import metadata_of
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.plugin_manager import plugin_manager
from spack_cache_db.site.plugin_routes import is_of_plugin
from spack_cache_db.site.refusals import BadAddress, refused
from spack_cache_db.site.table_addresses import check_data

READING_POSTS = re.compile(r"/[^/]+/[^/]+/-/count|/cover(?:\.(?:json|csv))?")
"""Addresses that only read with POST: Datasette 1.0's "count all", and environments."""
LOGOUT = "/-/logout"
"""Datasette's form that ends a login; it has a token against forged requests."""

_TABLE_ADDRESS = re.compile(r"/([^/]+)/([^/.]+)(?:\.\w+)?")
"""The address of a table, view or canned query: the database and the name."""


async def below_base(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Pass on a request without the site's base in its path.

    A proxy may pass the base on or cut it off. Datasette would add it to paths a second
    time.
    """
    base = datasette.setting("base_url")
    path = str(scope["path"])
    # The path as it was sent, with its escapes.
    raw_path = scope.get("raw_path") or b""
    if path.startswith(base) and raw_path.startswith(base.encode()):
        # The base ends with the slash that the path begins with.
        start = len(base) - 1
        scope = {**scope, "path": path[start:], "raw_path": raw_path[start:]}
    await app(scope, receive, send)


async def guard(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse a request, or answer it; every response gets the headers of `headers`."""
    # What the address allows.
    path = str(scope["path"])
    is_open = allowances_of(datasette).opens(path) or is_of_plugin(datasette, path)
    takes_post = READING_POSTS.fullmatch(path) is not None or path == LOGOUT
    methods = "GET, HEAD, OPTIONS"
    if takes_post:
        methods += ", POST"

    # How each message of the response is sent.
    is_head = scope["method"] == "HEAD"
    has_begun = False

    async def complete_and_send(message: Message) -> None:
        nonlocal has_begun
        if message["type"] == "http.response.start":
            has_begun = True
            headers = completed(datasette, message, is_open=is_open)
            message = {**message, "headers": headers}
        elif is_head:
            message = {**message, "body": b""}
        await send(message)

    # Answer or refuse requests that Datasette need not see.
    if scope["method"] == "OPTIONS":
        response = PageResponse(b"", 204, (("allow", methods),))
        await response.asgi_send(complete_and_send)
        return
    try:
        check(scope, is_open=is_open, takes_post=takes_post)
        has_sql = datasette.setting("default_allow_sql")
        query = bounded(path, scope["query_string"], has_sql=has_sql)
    except BadAddress as error:
        form = "json" if path.endswith(".json") else None
        response = refused(str(error), form, error.status)
        if error.status == 405:
            headers = (*response.headers, ("allow", methods))
            response = response._replace(headers=headers)
        await response.asgi_send(complete_and_send)
        return

    # Python before 3.11.10 and 3.12.6 takes time quadratic in the number of a cookie's
    # backslashes (CVE-2024-7592). Cookies of plugins have none.
    safe_headers = [
        (name, text)
        for name, text in scope["headers"]
        if name != b"cookie" or b"\\" not in text
    ]
    scope = {**scope, "query_string": query, "headers": safe_headers}
    try:
        await app(scope, receive, complete_and_send)
    except Exception as error:
        # Datasette answers its own errors (`error_pages`); this one is of a wrapper.
        if has_begun:
            raise
        # Datasette takes a function from the request that makes a token for forms. Its
        # own wrapper adds that function, and may not have been called. The error page
        # has no form that needs a token.
        request = asgi.Request({"csrftoken": str, **scope}, receive)
        response = await answer_error(datasette, request, error)
        await response.asgi_send(complete_and_send)


async def check_addresses(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse unknown fields and names of tables and canned queries; redirect other
    spellings.

    Visitors who may not view the database get the same answer to all names.
    """
    response = await _answer_to_wrong_address(datasette, scope)
    if response is not None:
        await response.asgi_send(send)
        return
    await app(scope, receive, send)


async def _answer_to_wrong_address(datasette: Any, scope: Scope) -> PageResponse | None:
    """Return the refusal or the redirect for an address; None for a right one."""
    # Only addresses of a table or query of our database, with fields, are checked.
    path = asgi.Request(scope, None).path
    query = scope["query_string"].decode("latin-1")
    match = _TABLE_ADDRESS.fullmatch(path)
    if match is None or not query:
        return None
    route, quoted_name = match.groups()
    database = name_of_route(datasette, tilde_decode(route))
    if database is None:
        return None

    # The fields of one of our canned queries, which have a `group`. Those of the owner
    # take any fields.
    name = tilde_decode(quoted_name)
    canned = metadata_of(datasette, database).get("queries", {}).get(name)
    fields = None
    if isinstance(canned, dict) and "group" in canned:
        fields = canned.get("params", ())

    # If SQLite fails, Datasette cannot answer either, and says why.
    with suppress(sqlite3.Error):
        request = PageRequest(path, query)
        response = await run_page(datasette, check_data, request, name, fields)
        if response is None:
            return None
        actor = await _actor_of(datasette, scope)
        if await may_view(datasette, actor, database):
            return response
    return None


async def _actor_of(datasette: Any, scope: Scope) -> Any:
    """Return the visitor of a request, as a plugin for logins describes them; None if
    no plugin knows them. Datasette does the same later.
    """
    request = asgi.Request(scope, None)
    hook = plugin_manager().hook
    for result in hook.actor_from_request(datasette=datasette, request=request):
        # A plugin returns an actor or None, or a function or coroutine that does.
        actor = await await_me_maybe(result)
        if actor:
            return actor
    return None
