"""Makes JSON and CSV of tables complete, or marks the response as truncated.

Datasette streams CSV. JSON arrays of rows (`_shape=array`) are joined from Datasette's pages. JSON
objects have `"truncated": true` if more rows follow. A request with a number of rows (`_size`) or a
page (`_next`) gets that page.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send, fields_of, path_of
from spack_cache_db.site.own_pages import is_own_page
from spack_cache_db.site.workers.execute import budget_of

SHAPES = {"array": (b"[", b"]"), "arrayfirst": (b"[", b"]"), "object": (b"{", b"}")}
"""Shapes of JSON that contain only rows, with their brackets."""
_STREAM, _MAX = {"_stream": "on"}, {"_size": "max"}
"""Fields for all rows as CSV, and for the largest page as JSON."""

_TABLE = re.compile(r"/[^/]+/[^/]+\.(json|csv)")
_NEXT = re.compile(rb'<([^>]*)>; rel="next"')
# Inside a value, the quotation marks would be escaped.
_IS_WHOLE, _IS_CUT = b'"truncated": false', b'"truncated": true'


async def whole(datasette: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Send all rows of a table, or mark the response as truncated.

    Each page of rows is a request to the application.
    """
    path, query = path_of(scope), scope.get("query_string", b"")
    fields = fields_of(query)
    table = None if is_own_page(path) else _TABLE.fullmatch(path)
    form, shape = table and table[1], fields.get("_shape", [""])[0]
    is_one_page = "_next" in fields or "sql" in fields
    wants_all = not is_one_page and "max" in fields.get("_size", "max")
    if wants_all and form == "csv" and datasette.setting("allow_csv_stream"):
        query = _with(query, **_STREAM, **_MAX)
    elif wants_all and form == "json" and shape in SHAPES:
        query = _with(query, **_MAX)

    limit = datasette.sql_time_limit_ms / 1000
    scope = {**scope, "query_string": query}
    with budget_of(str(scope["path"]), query, limit):
        if form != "json" or scope["method"] != "GET":
            await app(scope, receive, send)
            return
        page = await _page(app, scope, receive)
    if page.following is None or shape not in SHAPES or not wants_all:
        is_object = page.following is not None and shape not in SHAPES
        body = page.body.replace(_IS_WHOLE, _IS_CUT, 1) if is_object else page.body
        await send(page.start)
        await send({"type": "http.response.body", "body": body})
        return
    with budget_of(str(scope["path"]), _with(query, **_STREAM), limit):
        await _send_all(app, scope, receive, send, page, SHAPES[shape])


async def _send_all(
    app: App, scope: Scope, receive: Receive, send: Send, page: _Page, brackets: tuple[bytes, bytes]
) -> None:
    """Send the rows of a page and of all following pages; close the connection if one fails."""
    is_lines = bool(fields_of(scope["query_string"]).get("_nl"))
    start, end = (b"", b"") if is_lines else brackets
    headers = [header for header in page.start["headers"] if header[0].lower() != b"link"]
    await send({**page.start, "headers": headers})
    body = start
    while True:
        body += page.body.strip().removeprefix(start).removesuffix(end)
        if page.following is None:
            await send({"type": "http.response.body", "body": body + end})
            return
        await send({"type": "http.response.body", "body": body, "more_body": True})
        query = _with(page.following, **_STREAM)
        page = await _page(app, {**scope, "query_string": query}, receive)
        if page.start["status"] != 200:
            # Without a last message, the server closes the connection.
            return
        body = b"\n" if is_lines else b",\n"


def _with(query: bytes, **fields: str) -> bytes:
    """Return a query string in which some fields are replaced."""
    names = tuple(f"{name}=".encode() for name in fields)
    unchanged = (field for field in query.split(b"&") if field and not field.startswith(names))
    return b"&".join((urlencode(fields).encode(), *unchanged))


class _Page(NamedTuple):
    """A complete response, and the query string of the next page of rows; None after the last."""

    start: Message
    body: bytes
    following: bytes | None


async def _page(app: App, scope: Scope, receive: Receive) -> _Page:
    """Return the complete response of an application, without its length."""
    start: Message = {}
    body = bytearray()

    async def keep(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, keep)
    headers = {name.lower(): value for name, value in start["headers"]}
    link = _NEXT.search(headers.get(b"link", b"")) if start["status"] == 200 else None
    start["headers"] = [
        header for header in start["headers"] if header[0].lower() != b"content-length"
    ]
    return _Page(start, bytes(body), urlsplit(link[1]).query if link else None)
