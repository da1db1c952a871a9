"""Makes JSON and CSV of tables complete, or marks the response as truncated.

Datasette streams CSV. JSON arrays of rows (`_shape=array`) are joined from Datasette's pages. JSON
objects have `"truncated": true` if more rows follow. A request with a number of rows (`_size`) or a
page (`_next`) gets that page.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from spack_cache_db.site.answers import refused
from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send, path_of
from spack_cache_db.site.own_pages import is_own_page
from spack_cache_db.site.workers.execute import refusal, set_budget

SHAPES = {"array": (b"[", b"]"), "arrayfirst": (b"[", b"]"), "object": (b"{", b"}")}
"""Shapes of JSON that contain only rows, with their brackets."""
PIECE_BYTES = 64 * 1024
"""Amount of CSV that is sent at once."""
NO_ROWS = "The rows cannot be shown: open the same address without .csv to see the reason."

_STREAM, _MAX = {"_stream": "on"}, {"_size": "max"}
"""Fields for all rows as CSV, and for the largest page as JSON."""
_DATA = re.compile(r"/(?!-/).+\.(json|csv)")
_NEXT = re.compile(rb'<([^>]*)>; rel="next"')
# Inside a value, the quotation marks would be escaped.
_IS_WHOLE, _IS_CUT = b'"truncated": false', b'"truncated": true'
_CSV = (b"text/plain", b"text/csv")
_ROW_END = b"\r\n"


async def whole(datasette: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Send all rows of a table, or mark the response as truncated.

    Each page of rows is a request to the application.
    """
    path, query = path_of(scope), scope.get("query_string", b"")
    fields = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    match = None if is_own_page(path) else _DATA.fullmatch(path)
    form, shape = match and match[1], fields.get("_shape", [""])[0]
    is_part = not fields.keys().isdisjoint(("_next", "sql"))
    is_part = is_part or "max" not in fields.get("_size", ["max"])
    if form == "csv" and not is_part and datasette.setting("allow_csv_stream"):
        query = _with(query, **_STREAM, **_MAX)
    elif form == "json" and not is_part and shape in SHAPES:
        query = _with(query, **_MAX)

    limit = datasette.sql_time_limit_ms / 1000
    scope = {**scope, "query_string": query}
    set_budget(path, query, limit)
    if form != "json" or scope["method"] != "GET":
        await app(scope, receive, CsvGuard(send).send if form == "csv" else send)
        return
    page = await _page(app, scope, receive)
    if page.following is None or is_part or shape not in SHAPES:
        body = page.body.replace(_IS_WHOLE, _IS_CUT, 1) if page.following else page.body
        await send(page.start)
        await send({"type": "http.response.body", "body": body})
        return
    is_lines = shape == "array" and fields.get("_nl", [""])[0]
    set_budget(path, _with(query, **_STREAM), limit)
    await _send_all(app, scope, receive, send, page, (b"", b"") if is_lines else SHAPES[shape])


async def _send_all(
    app: App, scope: Scope, receive: Receive, send: Send, page: _Page, brackets: tuple[bytes, bytes]
) -> None:
    """Send the rows of a page and of all following pages; close the connection if one fails."""
    start, end = brackets
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
        body = b",\n" if start else b"\n"


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
    """Return the complete response of an application."""
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, keep)
    start, *parts = messages
    headers = {name.lower(): value for name, value in start["headers"]}
    link = _NEXT.search(headers.get(b"link", b"")) if start["status"] == 200 else None
    body = b"".join(part.get("body", b"") for part in parts)
    return _Page(start, body, urlsplit(link[1]).query if link else None)


class CsvGuard:
    """Sends CSV in pieces, and never an error as CSV with status 200, which caches would keep.

    If a stream fails, Datasette writes the reason into it, without the CR LF at the end of a row;
    if a query is refused, 0.65 sends an empty line. Before the first piece, the response becomes an
    error; later, the connection is closed. Datasette sends every row by itself; they are joined,
    because sending a message costs more than making its row.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._rows = bytearray()
        self._is_csv = self._has_failed = False

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            self._is_csv = message["status"] == 200 and kind.startswith(_CSV)
            self._start = message
        if not self._is_csv:
            await self._send(message)
        elif message["type"] == "http.response.body" and not self._has_failed:
            await self._send_rows(message)

    async def _send_rows(self, message: Message) -> None:
        body, is_more = message.get("body", b""), message.get("more_body", False)
        self._has_failed = bool(refusal()) or (body != b"" and not body.endswith(_ROW_END))
        self._rows += body
        if self._has_failed and self._start is not None:
            await refused(refusal() or NO_ROWS, "csv").asgi_send(self._send)
        elif not self._has_failed and (len(self._rows) >= PIECE_BYTES or not is_more):
            if self._start is not None:
                await self._send(self._start)
            await self._send({**message, "body": bytes(self._rows)})
            self._start, self._rows = None, bytearray()
