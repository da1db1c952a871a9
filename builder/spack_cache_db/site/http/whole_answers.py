"""Makes JSON and CSV of tables complete, or marks the response as truncated.

Datasette cuts a table after a number of rows. This module makes these of it:

- CSV has all rows, because Datasette streams it.
- A JSON array of rows (`_shape=array`) has all rows. They are joined from Datasette's
  pages, each of which is another request to Datasette.
- A JSON object has `"truncated": true` if more rows follow.

A request for a number of rows (`_size`) or a page (`_next`) gets what it asks for.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from datasette import Request

from spack_cache_db.site.http.asgi import App, Message, Receive, Scope, Send
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
"""Addresses of Datasette's data; those below `/-/` are its tools."""
_CSV_TYPES = (b"text/plain", b"text/csv")
"""Datasette sends CSV as text, and with `_dl` as a download."""
# The header `Link` of a page: <http://…/builds.json?_next=51>; rel="next".
_NEXT = re.compile(rb'<([^>]*)>; rel="next"')
_NOT_TRUNCATED = b'"truncated": false'
_TRUNCATED = b'"truncated": true'


class _Page(NamedTuple):
    """A complete response of Datasette.

    Attributes:
        start: the message with its status and headers.
        body: all bytes of its body.
        next_query: the query string of the next page; None for the last one.
    """

    start: Message
    body: bytes
    next_query: bytes | None


async def whole(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request: complete CSV and arrays of rows, or mark JSON as truncated.

    Other requests pass unchanged. The arguments are those of a wrapper (`middleware`).
    """
    # Which form and shape of data the address asks for, and whether for all rows.
    request = Request(scope, receive)
    form = _form_of(request.path)
    shape = request.args.get("_shape")
    wants_all = _wants_all_rows(request.args)
    has_only_rows = shape in SHAPES

    # Add what Datasette needs to send all rows, or as many as it can at once. Ours
    # come first, because Datasette reads the first of several fields of one name. The
    # address may ask for a stream itself.
    query = scope["query_string"]
    is_stream = "_stream" in request.args
    if wants_all and form == "csv" and datasette.setting("allow_csv_stream"):
        is_stream = True
        query = b"_stream=on&_size=max&" + query
    elif wants_all and form == "json" and has_only_rows:
        query = b"_size=max&" + query
    scope = {**scope, "query_string": query}

    # Say how the statements of this request are to be run (`sql.execution`).
    reading = Reading(
        is_page=form is None,
        takes_all=form == "csv" or has_only_rows,
        is_stream=is_stream,
    )
    begin_reading(reading)

    if form == "csv":
        await app(scope, receive, CsvGuard(send).send)
        return
    # Only JSON is changed; a HEAD request has no body to complete.
    if form != "json" or scope["method"] != "GET":
        await app(scope, receive, send)
        return
    page = await _page(app, scope, receive)
    if wants_all and has_only_rows and page.next_query is not None:
        brackets = SHAPES[shape]
        if shape == "array" and request.args.get("_nl"):
            # One row a line, without an array around them.
            brackets = (b"", b"")
        await _send_every_page(app, scope, receive, send, page, brackets)
        return
    body = page.body
    if page.next_query is not None:
        # Only the key has this text: quotation marks inside a value are escaped.
        body = body.replace(_NOT_TRUNCATED, _TRUNCATED, 1)
    await send(page.start)
    await send({"type": "http.response.body", "body": body})


def _form_of(path: str) -> str | None:
    """Return `json` or `csv` for data of Datasette; None for all other addresses."""
    if is_own_page(path):
        return None
    match = _DATA.fullmatch(path)
    return None if match is None else match[1]


def _wants_all_rows(args: Any) -> bool:
    """Return whether an address asks for no number of rows, no page, and no SQL.

    `args` are the fields of the address, as Datasette's `Request` has them.
    """
    if "_next" in args or "sql" in args:
        return False
    return "_size" not in args or "max" in args.getlist("_size")


async def _page(app: App, scope: Scope, receive: Receive) -> _Page:
    """Return the complete response of an application to a request."""
    # The queue collects what the application sends.
    messages: asyncio.Queue[Message] = asyncio.Queue()
    await app(scope, receive, messages.put)
    start = messages.get_nowait()
    body = b""
    while not messages.empty():
        body += messages.get_nowait().get("body", b"")

    headers = dict(start["headers"])
    link = _NEXT.search(headers.get(b"link", b""))
    next_query = None if link is None else urlsplit(link[1]).query
    return _Page(start, body, next_query)


async def _send_every_page(
    app: App,
    scope: Scope,
    receive: Receive,
    send: Send,
    page: _Page,
    brackets: tuple[bytes, bytes],
) -> None:
    """Send the rows of a page and of all that follow, as one array or object.

    Args:
        app: the application, which answers a request for each page.
        scope: the request for the first page.
        receive: as in `whole`.
        send: as in `whole`.
        page: the first page, which is not the last one.
        brackets: what is around the rows of each page: `[` and `]`, or two empty texts.
    """
    opening, closing = brackets
    separator = b",\n" if opening else b"\n"

    # The response has all rows, so it has no link to a next page.
    headers = [header for header in page.start["headers"] if header[0] != b"link"]
    await send({**page.start, "headers": headers})

    # Later pages are parts of one table, and their form cannot say that rows are
    # missing.
    begin_reading(Reading(takes_all=True, is_stream=True))
    before = opening
    while page.next_query is not None:
        rows = page.body.strip().removeprefix(opening).removesuffix(closing)
        body = before + rows
        await send({"type": "http.response.body", "body": body, "more_body": True})
        page = await _page(app, {**scope, "query_string": page.next_query}, receive)
        if page.start["status"] != 200:
            # Without a last message, the server closes the connection, so that nobody
            # takes a part of the rows for all.
            return
        before = separator
    # The last page keeps its closing bracket.
    body = before + page.body.strip().removeprefix(opening)
    await send({"type": "http.response.body", "body": body})


class CsvGuard:
    """Sends CSV in pieces, and never an error as CSV with status 200, which caches
    would keep.

    Datasette sends each row by itself. They are joined into pieces, because sending a
    message costs more than making its row.

    A message that is not a whole row is a failure: if a stream fails, Datasette writes
    the reason without CR LF; if a query is refused, Datasette 0.65 writes an empty
    line. Before the first piece, the response becomes an error; later, the connection
    is closed.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        # The message that starts the response; None once it is sent, which is with the
        # first piece.
        self._start: Message | None = None
        # Rows that have not been sent, and the time of the last piece.
        self._rows = bytearray()
        self._sent_at = time.monotonic()
        # Whether the response is CSV, and whether it has failed.
        self._is_csv = False
        self._has_failed = False

    async def send(self, message: Message) -> None:
        """Send one ASGI message of the response, or keep it for the next piece."""
        if message["type"] == "http.response.start":
            content_type = dict(message["headers"]).get(b"content-type", b"")
            has_csv_type = content_type.startswith(_CSV_TYPES)
            self._is_csv = has_csv_type and message["status"] == 200
            self._start = message
        # An error, a redirect or a download of another kind passes unchanged.
        if not self._is_csv:
            await self._send(message)
            return
        # The first and the last message have no body.
        body = message.get("body", b"")
        is_whole_row = not body or body.endswith(b"\r\n")
        if refusal() or not is_whole_row:
            await self._fail()
            return
        # The start waits for the first piece; after a failure nothing more is sent.
        if message["type"] == "http.response.body" and not self._has_failed:
            await self._add(message)

    async def _fail(self) -> None:
        """Send an error instead of the rows; if some are sent, send no last message.

        Without a last message, the server closes the connection.
        """
        is_nothing_sent = self._start is not None
        if is_nothing_sent and not self._has_failed:
            await refused(refusal() or NO_ROWS, "csv").asgi_send(self._send)
        self._has_failed = True

    async def _add(self, message: Message) -> None:
        """Keep the rows of a message, and send all kept rows if it is time."""
        self._rows += message.get("body", b"")
        is_late = time.monotonic() > self._sent_at + PIECE_SECONDS
        is_full = len(self._rows) >= PIECE_BYTES
        is_last = not message.get("more_body")
        if not (is_late or is_full or is_last):
            return
        if self._start is not None:
            await self._send(self._start)
            self._start = None
        await self._send({**message, "body": bytes(self._rows)})
        self._rows = bytearray()
        self._sent_at = time.monotonic()
