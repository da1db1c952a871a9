"""Makes JSON and CSV of tables complete, or marks the response as truncated.

Datasette streams CSV. JSON arrays of rows (`_shape=array`) are joined from Datasette's
pages. JSON objects have `"truncated": true` if more rows follow. A request with a
number of rows (`_size`) or a page (`_next`) gets that page.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any
from urllib.parse import urlsplit

from datasette import Request

from spack_cache_db.site.http.middleware import App, Message, Receive, Scope, Send
from spack_cache_db.site.http.own_pages import is_own_page
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.sql.execution import Reading, begin_reading, refusal

SHAPES = {"array": (b"[", b"]"), "arrayfirst": (b"[", b"]"), "object": (b"{", b"}")}
"""Shapes of JSON that contain only rows, with their brackets."""
PIECE_BYTES = 64 * 1024
PIECE_SECONDS = 1.0
"""Amount of CSV that is sent at once, and the longest time until it is sent."""
NO_ROWS = (
    "The rows cannot be shown: open the same address without .csv to see the reason."
)

_DATA = re.compile(r"/(?!-/).+\.(json|csv)")
_CSV = (b"text/plain", b"text/csv")
_NEXT = re.compile(rb'<([^>]*)>; rel="next"')
# Inside a value, the quotation marks would be escaped.
_IS_WHOLE, _IS_CUT = b'"truncated": false', b'"truncated": true'


async def whole(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Send all rows of a table, or mark the response as truncated.

    Each page of rows is a request to the application.
    """
    path, args = Request(scope, receive).path, Request(scope, receive).args
    match = None if is_own_page(path) else _DATA.fullmatch(path)
    form, shape, query = match and match[1], args.get("_shape"), scope["query_string"]
    wants_all = "_size" not in args or "max" in args.getlist("_size")
    wants_all = wants_all and "_next" not in args and "sql" not in args
    # Datasette reads the first of several fields of one name.
    if wants_all and form == "csv" and datasette.setting("allow_csv_stream"):
        query = b"_stream=on&_size=max&" + query
    elif wants_all and form == "json" and shape in SHAPES:
        query = b"_size=max&" + query

    scope = {**scope, "query_string": query}
    is_stream = b"&_stream=" in b"&" + query
    takes_all = form == "csv" or shape in SHAPES
    begin_reading(
        Reading(is_page=form is None, takes_all=takes_all, is_stream=is_stream)
    )
    if form != "json" or scope["method"] != "GET":
        await app(scope, receive, CsvGuard(send).send if form == "csv" else send)
        return
    start, body, following = await _page(app, scope, receive)
    if following is None or not wants_all or shape not in SHAPES:
        await send(start)
        body = body if following is None else body.replace(_IS_WHOLE, _IS_CUT, 1)
        await send({"type": "http.response.body", "body": body})
        return

    opening, closing = SHAPES[shape]
    if shape == "array" and args.get("_nl"):
        opening = closing = b""
    headers = [header for header in start["headers"] if header[0] != b"link"]
    await send({**start, "headers": headers})
    rows = opening
    begin_reading(Reading(takes_all=True, is_stream=True))
    while following is not None:
        rows += body.strip().removeprefix(opening).removesuffix(closing)
        await send({"type": "http.response.body", "body": rows, "more_body": True})
        start, body, following = await _page(
            app, {**scope, "query_string": following}, receive
        )
        if start["status"] != 200:
            # Without a last message, the server closes the connection.
            return
        rows = b",\n" if opening else b"\n"
    await send(
        {
            "type": "http.response.body",
            "body": rows + body.strip().removeprefix(opening),
        }
    )


async def _page(
    app: App, scope: Scope, receive: Receive
) -> tuple[Message, bytes, bytes | None]:
    """Return a complete response, and the query string of the next page; None after the
    last.
    """
    messages: asyncio.Queue[Message] = asyncio.Queue()
    await app(scope, receive, messages.put)
    start, *parts = [messages.get_nowait() for _ in range(messages.qsize())]
    body = b"".join(part.get("body", b"") for part in parts)
    link = _NEXT.search(dict(start["headers"]).get(b"link", b""))
    return start, body, urlsplit(link[1]).query if link else None


class CsvGuard:
    """Sends CSV in pieces, and never an error as CSV with status 200, which caches
    would keep.

    If a stream fails, Datasette writes the reason into it, without the CR LF at the end
    of a row; if a query is refused, 0.65 sends an empty line. Before the first piece,
    the response becomes an error; later, the connection is closed. Datasette sends
    every row by itself; they are joined, because sending a message costs more than
    making its row.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._rows = bytearray()
        self._sent = time.monotonic()
        self._is_csv = self._has_failed = False

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        body = message.get("body", b"")
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            self._is_csv = message["status"] == 200 and kind.startswith(_CSV)
            self._start = message
        if not self._is_csv:
            await self._send(message)
        elif refusal() or (body and not body.endswith(b"\r\n")):
            if self._start is not None and not self._has_failed:
                await refused(refusal() or NO_ROWS, "csv").asgi_send(self._send)
            self._has_failed = True
        elif message["type"] == "http.response.body" and not self._has_failed:
            self._rows += body
            is_due = time.monotonic() > self._sent + PIECE_SECONDS
            if is_due or len(self._rows) >= PIECE_BYTES or not message.get("more_body"):
                if self._start is not None:
                    await self._send(self._start)
                await self._send({**message, "body": bytes(self._rows)})
                self._start, self._rows = None, bytearray()
                self._sent = time.monotonic()
