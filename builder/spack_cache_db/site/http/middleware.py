"""Checks every request, and adds security headers, caching and CORS to responses.

Datasette sends none of these on most of its pages, and the site must be safe without a
proxy.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from datasette.utils import asgi, await_me_maybe, tilde_decode, tilde_encode

from spack_cache_db.site.addresses import check_data
from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.catalogue import may_view, metadata_of, name_of_route
from spack_cache_db.site.http.error_pages import answer_error
from spack_cache_db.site.http.own_pages import run_page
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import STRICT, PageResponse
from spack_cache_db.site.plugin_manager import plugin_manager
from spack_cache_db.site.plugin_routes import is_of_plugin
from spack_cache_db.site.refusals import NO_PAGE, BadAddress, refused
from spack_cache_db.site.routes import route_of
from spack_cache_db.site.sql.execution import refusal
from spack_cache_db.site.sql.running import PAGE_ROWS

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_ADDRESS = 32_000
MOST_FIELDS = {"": 100, "_facet": 10, "_sort": 2}
"""Most fields whose names begin with these words; each may cost a statement or a
link.
"""
LONGEST_SQL = 8_000
"""Characters of a statement; Datasette's regular expressions take time quadratic in its
length.
"""
MOST_BODY = 1_000_000
"""Size limit of a form in bytes; a lockfile of five hundred specs has as many."""
MOST_HEADERS = 16_000
"""Characters of all headers together."""
LONGEST_NAME = 200
"""Characters of a name in a path; Spack's longest has fifty."""
OPEN_TOOLS = re.compile(
    r"/-/(?:(?:static|static-plugins)/.+|(?:versions|metadata|settings|plugins|jump)(?:\.json)?"
    r"|health\.json|logout)"
    r"|/[^/]+/-/(?:query(?:\.\w+)?|query/parameters|queries(?:\.json)?|schema(?:\.\w+)?)"
    r"|/[^/]+/[^/]+/-/(?:schema(?:\.\w+)?|definition|count)"
)
"""The open addresses below a `/-/` of the instance, a database, a table or a query.

Datasette's others are debugging tools, forms that write, and information about the
machine. Those of databases and tables are in Datasette 1.0 only. Addresses of plugins
are open (`is_of_plugin`).
"""
_DATA = re.compile(r"/([^/]+)/([^/.]+)(?:\.\w+)?")
"""A table, view or canned query."""
READING_POSTS = re.compile(r"/[^/]+/[^/]+/-/count|/cover(?:\.(?:json|csv))?")
"""Addresses that only read with POST: Datasette 1.0's "count all", and environments."""
LOGOUT = "/-/logout"
"""Datasette's form that ends a login; it has a token against forged requests."""
_NAMES_END = re.compile(r"/|\.\.\.")
_ESCAPED = re.compile(r"(?:~[0-9A-Fa-f]{2})+|~")
"""Datasette's escapes in paths ("tilde encoding")."""

# Datasette's own pages carry scripts and styles in the page.
_DATASETTE = re.sub("((?:script|style)-src 'self')", r"\1 'unsafe-inline'", STRICT)
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
# Blanks and comments before a statement.
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_POLICY = b"content-security-policy"
_CACHE = b"cache-control"
_NO_FRAMES = "frame-ancestors 'none'"
_CORS = {
    b"access-control-allow-origin": b"*",
    b"access-control-allow-methods": b"GET, HEAD, OPTIONS",
    b"access-control-allow-headers": b"Authorization, Content-Type, If-None-Match, If-Range, Range",
    b"access-control-expose-headers": b"Accept-Ranges, Content-Length, Content-Range, ETag, Link",
    b"access-control-max-age": b"3600",
}


async def guard(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse a request, or answer it with the headers of this module."""
    # What the address allows.
    path = str(scope["path"])
    is_open = allowances_of(datasette).opens(path) or is_of_plugin(datasette, path)
    is_posted = READING_POSTS.fullmatch(path) is not None or path == LOGOUT
    methods = "GET, HEAD, OPTIONS"
    if is_posted:
        methods += ", POST"
    is_head = scope["method"] == "HEAD"
    has_begun = False

    async def complete(message: Message) -> None:
        nonlocal has_begun
        if message["type"] == "http.response.start":
            has_begun = True
            headers = completed(datasette, message, is_open=is_open)
            message = {**message, "headers": headers}
        elif is_head:
            message = {**message, "body": b""}
        await send(message)

    if scope["method"] == "OPTIONS":
        await PageResponse(b"", 204, (("allow", methods),)).asgi_send(complete)
        return

    # Refuse requests that the site does not answer.
    try:
        check(scope, is_open=is_open, is_posted=is_posted)
        has_sql = datasette.setting("default_allow_sql")
        query = bounded(path, scope["query_string"], has_sql=has_sql)
    except BadAddress as error:
        form = "json" if path.endswith(".json") else None
        answer = refused(str(error), form, error.status)
        if error.status == 405:
            answer = answer._replace(headers=(*answer.headers, ("allow", methods)))
        await answer.asgi_send(complete)
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
        await app(scope, receive, complete)
    except Exception as error:
        # Datasette answers its own errors (`error_pages`); this one is of a wrapper.
        if has_begun:
            raise
        # The error page needs what Datasette's own wrapper adds: a form's token, which
        # it has not.
        request = asgi.Request({"csrftoken": str, **scope}, receive)
        answer = await answer_error(datasette, request, error)
        await answer.asgi_send(complete)


def check(scope: Scope, *, is_open: bool, is_posted: bool) -> None:
    """Check the method, the address and the size of a request.

    Raises:
        BadAddress: the site does not answer such requests.
    """
    path = scope["path"]
    query = scope["query_string"]
    headers = dict(scope["headers"])

    # The method.
    is_reading = scope["method"] in ("GET", "HEAD")
    is_reading_post = scope["method"] == "POST" and is_posted
    if not (is_reading or is_reading_post or is_open):
        raise BadAddress("This site is read-only: only GET and HEAD are answered.", 405)

    # The address and the headers.
    if not path.startswith("/"):
        raise BadAddress("The target of a request is a path that begins with a slash.")
    if b"%00" in query or b"\0" in query:
        raise BadAddress(
            "The address has a NUL character (%00), which no name or statement has."
        )
    if len(query) + len(path) > LONGEST_ADDRESS:
        raise BadAddress(
            f"The address is longer than {LONGEST_ADDRESS:,} characters.", 414
        )
    if sum(len(name) + len(text) for name, text in scope["headers"]) > MOST_HEADERS:
        raise BadAddress(
            f"The headers have more than {MOST_HEADERS:,} characters.", 431
        )
    # A redirect to a path with two slashes leads to another host.
    leads_elsewhere = path.startswith(("//", "/\\"))
    is_closed = "/-/" in path and not is_open and not OPEN_TOOLS.fullmatch(path)
    # No name contains NUL.
    if is_closed or leads_elsewhere or "\0" in path or not is_usual(path):
        raise BadAddress(NO_PAGE, 404)

    # The body.
    if b"transfer-encoding" in headers:
        # Each chunk costs a message, and with two lengths, proxies and servers may
        # disagree about the end of a request.
        raise BadAddress("The request has a body but no Content-Length.", 411)
    if int(headers.get(b"content-length", 0)) > MOST_BODY:
        raise BadAddress(f"The form has more than {MOST_BODY:,} bytes.", 413)


def is_usual(path: str) -> bool:
    """Return whether a path has only names of usual length, and Datasette's only
    escapes for them.

    Datasette would read `/spack~2Dcache.db` as `/spack-cache.db`, and a proxy would
    not.
    """
    if any(len(name) > LONGEST_NAME for name in _NAMES_END.split(path)):
        return False
    if route_of(path) is not None:
        return True
    escapes = _ESCAPED.findall(path)
    return all(tilde_encode(tilde_decode(escape)) == escape for escape in escapes)


def bounded(path: str, query: bytes, *, has_sql: bool = True) -> bytes:
    """Return a query string that Datasette answers in bounded time.

    It has no blank searches, which Datasette refuses, no comments before its SQL, and a
    bounded number of rows.

    Raises:
        BadAddress: there are too many fields, or the SQL is too long or not allowed.
    """
    is_page = not path.endswith((".json", ".csv"))
    names = []
    fields = []
    for field in query.split(b"&"):
        if not field:
            continue
        quoted_name, _, quoted_text = field.decode("latin1").partition("=")
        name = unquote_plus(quoted_name)
        text = unquote_plus(quoted_text)
        if name.startswith("_search") and not text.strip():
            continue
        names.append(name)
        if name == "sql":
            _check_sql(text, has_sql=has_sql)
            sql = _COMMENTS.sub("", text, count=1)
            # A field without a comment stays as it was sent.
            if sql != text:
                field = f"sql={quote_plus(sql)}".encode()
        if name == "_size" and is_page and _is_large(text):
            field = b"_size=%d" % PAGE_ROWS
        fields.append(field)
    for start, limit in MOST_FIELDS.items():
        if sum(name.startswith(start) for name in names) > limit:
            kind = f"fields that begin with {start}" if start else "fields"
            raise BadAddress(f"The address has more than {limit} {kind}.")
    return b"&".join(fields)


def _check_sql(text: str, *, has_sql: bool) -> None:
    """Raise `BadAddress` for a statement that is too long, or if none is allowed."""
    if not has_sql:
        message = "This site runs no SQL of visitors; its canned queries are open."
        raise BadAddress(message, 403)
    if len(text) > LONGEST_SQL:
        raise BadAddress(f"A statement has at most {LONGEST_SQL:,} characters.")


def _is_large(size: str) -> bool:
    """Return whether a number of rows is more than an HTML page shows."""
    if size == "max":
        return True
    # Nine digits are enough, and more could be too many for Python.
    return size.isdecimal() and int(size[:9]) > PAGE_ROWS


def completed(
    datasette: Any, message: Message, *, is_open: bool
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with those of this module."""
    # The only header that may be repeated.
    cookies = [pair for pair in message["headers"] if pair[0] == b"set-cookie"]
    headers = dict(_HEADERS)
    for name, value in message["headers"]:
        headers[name.lower()] = value
    headers.pop(b"set-cookie", None)
    if datasette.cors:
        headers |= _CORS

    # A response may have a policy of its own.
    allowed = allowances_of(datasette)
    policy = headers.get(_POLICY, b"").decode() or allowed.policy(_DATASETTE)
    if allowed.embedding:
        origins = " ".join(allowed.embedding)
        policy = policy.replace(_NO_FRAMES, f"frame-ancestors {origins}")
        # This older header knows no origins.
        del headers[b"x-frame-options"]
    headers[_POLICY] = policy.encode()

    # A plugin's page may be for one visitor.
    seconds = 0 if is_open else datasette.setting("default_cache_ttl")
    caching = f"public, max-age={seconds}".encode() if seconds else b"no-store"
    headers.setdefault(_CACHE, caching)
    # Datasette 1.0 shows errors beside a form, with status 200.
    if message["status"] >= 400 or refusal():
        headers[_CACHE] = b"no-store"
    return [*headers.items(), *cookies]


async def check_addresses(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse unknown fields and names of tables and canned queries; redirect other
    spellings.

    Visitors who may not view the database get the same answer to all names.
    """
    answer = await _answer_to_wrong_address(datasette, scope)
    if answer is not None:
        await answer.asgi_send(send)
        return
    await app(scope, receive, send)


async def _answer_to_wrong_address(datasette: Any, scope: Scope) -> PageResponse | None:
    """Return the refusal or the redirect for an address; None for a right one."""
    # Only addresses of a table or query of our database, with fields, are checked.
    path = asgi.Request(scope, None).path
    query = scope["query_string"].decode("latin-1")
    match = _DATA.fullmatch(path)
    if match is None or not query:
        return None
    route, name = match.groups()
    database = name_of_route(datasette, tilde_decode(route))
    if database is None:
        return None

    # The fields of one of our canned queries. Those of the owner, which have no group,
    # take any fields.
    name = tilde_decode(name)
    canned = metadata_of(datasette, database).get("queries", {}).get(name)
    fields = None
    if isinstance(canned, dict) and "group" in canned:
        fields = canned.get("params")

    # If SQLite fails, Datasette cannot answer either, and says why.
    with suppress(sqlite3.Error):
        request = PageRequest(path, query)
        answer = await run_page(datasette, check_data, request, name, fields)
        if answer.status != 200:
            actor = await _actor_of(datasette, scope)
            if await may_view(datasette, actor, database):
                return answer
    return None


async def _actor_of(datasette: Any, scope: Scope) -> Any:
    """Return the actor of a request, as Datasette does later."""
    request = asgi.Request(scope, None)
    actor = None
    for result in plugin_manager().hook.actor_from_request(
        datasette=datasette, request=request
    ):
        actor = actor or await await_me_maybe(result)
    return actor


async def below_base(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Pass on a request without the site's base in its path.

    A proxy may pass the base on or cut it off. Datasette would add it to paths a second
    time.
    """
    base = datasette.setting("base_url")
    path = str(scope["path"])
    raw = scope.get("raw_path") or b""
    if path.startswith(base) and raw.startswith(base.encode()):
        start = len(base) - 1
        scope = {**scope, "path": path[start:], "raw_path": raw[start:]}
    await app(scope, receive, send)
