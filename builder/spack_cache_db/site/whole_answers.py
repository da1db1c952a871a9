"""Makes JSON and CSV of tables complete, unless the response itself says that there is more.

Datasette streams CSV. JSON that is rows alone (`_shape=array`) is joined here from its pages. JSON
that is an object has `"truncated": true` if more rows follow. A request that names a number of rows
(`_size`) or a page (`_next`) gets that page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from spack_cache_db.site.middleware import (
    App,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
    fields_of,
    path_of,
)
from spack_cache_db.site.workers.execute import budget_of

SHAPES = {"array": (b"[", b"]"), "arrayfirst": (b"[", b"]"), "object": (b"{", b"}")}
"""Shapes of JSON that are rows alone, and what stands around them."""
_STREAM, _MAX = {"_stream": "on"}, {"_size": "max"}
"""Fields with which Datasette's CSV has all rows, and a page as many as it may."""
_OF_ONE_PAGE = (b"link", b"content-length")
"""Headers of a page that are not those of all rows."""

_TABLE = re.compile(r"/[^/]+/[^/]+\.(json|csv)")
_NEXT = re.compile(rb'<([^>]*)>; rel="next"')
# In a value, the quotation marks would be escaped.
_IS_WHOLE, _IS_CUT = b'"truncated": false', b'"truncated": true'


def whole(app: App, datasette: Any, is_own_page: Callable[[str], bool]) -> App:
    """Return the application, which gives all rows of a table or says that there are more.

    Args:
        app: the application; each page of rows is a request of its own.
        datasette: its Datasette.
        is_own_page: returns whether a path is that of one of our pages.
    """
    has_streams = datasette.setting("allow_csv_stream")

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path, asked = str(scope["path"]), scope.get("query_string", b"")
        fields, below = fields_of(asked), path_of(scope)
        found = None if is_own_page(below) else _TABLE.fullmatch(below)
        form, shape = found and found[1], fields.get("_shape", [""])[0]
        asks_all = fields.keys().isdisjoint(("_next", "sql")) and "max" in fields.get(
            "_size", "max"
        )
        query = asked
        if asks_all and form == "csv" and has_streams:
            query = _with(asked, **_STREAM, **_MAX)
        elif asks_all and form == "json" and shape in SHAPES:
            query = _with(asked, **_MAX)
        limit = datasette.sql_time_limit_ms / 1000
        with budget_of(path, query, limit):
            if form != "json" or scope["method"] != "GET":
                await app({**scope, "query_string": query}, receive, send)
                return
            page = await _page(app, {**scope, "query_string": query}, receive)
            is_cut = page.following is not None
            if not is_cut or shape not in SHAPES or not asks_all:
                is_object = is_cut and shape not in SHAPES
                body = page.body.replace(_IS_WHOLE, _IS_CUT, 1) if is_object else page.body
                await page.send(send, body)
                return
        with budget_of(path, _with(query, **_STREAM), limit):
            await _send_all(app, scope, receive, send, page, SHAPES[shape])

    return answered


async def _send_all(
    app: App, scope: Scope, receive: Receive, send: Send, page: _Page, around: tuple[bytes, bytes]
) -> None:
    """Send the rows of a page and of all that follow; break the connection if one of them fails.

    Args:
        app: the application.
        scope: the request.
        receive: its messages.
        send: sends the response.
        page: the first page.
        around: what stands around the rows of a page.
    """
    is_lines = bool(fields_of(scope["query_string"]).get("_nl"))
    start, end = (b"", b"") if is_lines else around
    headers = [(name, value) for name, value in page.headers if name not in _OF_ONE_PAGE]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    body = start + _rows(page.body, start, end)
    while page.following is not None:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        query = _with(page.following, **_STREAM)
        page = await _page(app, {**scope, "query_string": query}, receive)
        if page.status != 200:
            # Without a last message, the server closes the connection.
            return
        body = (b"\n" if is_lines else b",\n") + _rows(page.body, start, end)
    await send({"type": "http.response.body", "body": body + end})


def _rows(body: bytes, start: bytes, end: bytes) -> bytes:
    """Return the rows of a page without what stands around them."""
    return body.strip().removeprefix(start).removesuffix(end)


def _with(query: bytes, **added: str) -> bytes:
    """Return a query string with some fields in place of its own."""
    names = tuple(f"{name}=".encode() for name in added)
    others = (each for each in query.split(b"&") if each and not each.startswith(names))
    return b"&".join((urlencode(added).encode(), *others))


@dataclass(frozen=True, slots=True)
class _Page:
    """A response that has arrived as a whole."""

    status: int
    headers: Headers
    body: bytes

    @property
    def following(self) -> bytes | None:
        """The query string of the next page of rows, if there is one."""
        found = _NEXT.search(dict(self.headers).get(b"link", b""))
        return urlsplit(found[1]).query if found and self.status == 200 else None

    async def send(self, send: Send, body: bytes) -> None:
        """Send the response with a body."""
        headers = [each for each in self.headers if each[0] != b"content-length"]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _page(app: App, scope: Scope, receive: Receive) -> _Page:
    """Return the response to a request as a whole."""
    started: Message = {}
    body = bytearray()

    async def keep(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, keep)
    headers = [(name.lower(), value) for name, value in started["headers"]]
    return _Page(started["status"], headers, bytes(body))
