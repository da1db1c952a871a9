"""Checks every request, and adds security headers, caching, compression and CORS to responses.

Datasette sends none of these on most of its pages, and the site must be safe without a proxy.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote_plus

from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.answers import STRICT, Answer, BadAddress, refused
from spack_cache_db.site.sandbox.statements import PAGE_ROWS
from spack_cache_db.site.workers.execute import refusal

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_ADDRESS = 32_000
MOST_FIELDS = {"": 100, "_facet": 10, "_sort": 2}
"""Most fields whose names begin with these words; each may cost a statement or a link."""
LONGEST_SQL = 8_000
"""Characters of a statement; Datasette's regular expressions take time quadratic in its length."""
MOST_BODY = 4_000_000
"""Size limit of a form in bytes; a lockfile of a thousand specs has two million."""
LONGEST_COOKIE = 4_096
"""Browsers keep no longer cookies."""
NO_PAGE = "There is no such page here."
NO_NUL = "The address has a NUL character (%00), which no name, spec or statement has."
NO_SQL = "This site runs no SQL of visitors; its canned queries are open."
OPEN_TOOLS = re.compile(
    r"/-/(?:(?:static|static-plugins)/.+|(?:versions|metadata|settings|plugins|jump)(?:\.json)?)"
    r"|/[^/]+/-/(?:query(?:\.\w+)?|query/parameters|queries(?:\.json)?|schema(?:\.\w+)?)"
    r"|/[^/]+/[^/]+/-/(?:schema(?:\.\w+)?|definition|count)"
)
"""The open addresses below a `/-/` of the instance, a database, a table or a query.

The others are debugging tools, forms that write, and information about the machine. Those of
databases and tables are in Datasette 1.0 only.
"""
READING_POSTS = re.compile(r"/[^/]+/[^/]+/-/count|/cover(?:\.(?:json|csv))?")
"""Addresses that only read with POST: Datasette 1.0's "count all", and environments."""

# Datasette's own pages carry scripts and styles in the page.
_DATASETTE = STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_POLICY, _CACHE = b"content-security-policy", b"cache-control"
_NO_FRAMES = "frame-ancestors 'none'"
_PERSONAL = {b"cookie", b"authorization"}
"""Headers that may identify a visitor."""
LONGEST_AT_ONCE = 64 * 1024
"""Bytes that are compressed on the event loop; larger bodies in a thread."""
_COMPRESSIBLE = (
    b"text/",
    b"application/json",
    b"application/javascript",
    b"image/svg",
    b"application/atom",
)
_NO_GZIP = re.compile(rb"(?:gzip|\*)\s*;\s*q=0(?:\.0*)?\s*(?:,|$)")

_CORS = {
    b"access-control-allow-origin": b"*",
    b"access-control-expose-headers": (
        b"Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Link, "
        b"Retry-After"
    ),
}
_PREFLIGHT = {
    **_CORS,
    b"access-control-allow-methods": b"GET, HEAD, OPTIONS",
    b"access-control-allow-headers": (
        b"Authorization, Content-Type, If-None-Match, If-Range, Range"
    ),
    b"access-control-max-age": b"3600",
}


async def guard(datasette: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request, or answer it with the headers of this module."""
    path = str(scope["path"])
    is_open = allowances_of(datasette).opens(path)
    methods = f"GET, HEAD, OPTIONS{', POST' if READING_POSTS.fullmatch(path) else ''}".encode()
    if scope["method"] == "OPTIONS":
        allowed = {b"allow": methods, **(_PREFLIGHT if datasette.cors else {})}
        await send({"type": "http.response.start", "status": 204, "headers": [*allowed.items()]})
        await send({"type": "http.response.body"})
        return
    response = Response(datasette, scope, send, is_open=is_open)
    try:
        check(scope, is_open=is_open)
        has_sql = datasette.setting("default_allow_sql")
        query = bounded(path, scope.get("query_string", b""), has_sql=has_sql)
    except BadAddress as error:
        answer = refused(str(error), "json" if path.endswith(".json") else None, error.status)
        if error.status == 405:
            answer = answer._replace(headers=(*answer.headers, ("allow", methods.decode())))
        await send_answer(response.send, answer)
        return
    headers = [header for header in scope["headers"] if not _is_costly(*header)]
    await app({**scope, "query_string": query, "headers": headers}, receive, response.send)


def check(scope: Scope, *, is_open: bool) -> None:
    """Check the method, the address and the size of a request.

    Raises:
        BadAddress: the site does not answer such requests.
    """
    path, query = str(scope["path"]), scope.get("query_string", b"")
    headers = dict(scope.get("headers", ()))
    if "\0" in path or path.startswith(("//", "/\\")):
        # No name contains NUL, and a redirect to a path with two slashes leads to another host.
        raise BadAddress(NO_PAGE, 404)
    is_reading = scope["method"] == "POST" and READING_POSTS.fullmatch(path)
    if scope["method"] not in ("GET", "HEAD") and not is_open and not is_reading:
        raise BadAddress("This site is read-only: only GET and HEAD are answered.", 405)
    if b"%00" in query or b"\0" in query:
        raise BadAddress(NO_NUL)
    if len(query) + len(path) > LONGEST_ADDRESS:
        raise BadAddress(f"The address is longer than {LONGEST_ADDRESS:,} characters.", 414)
    if "/-/" in path and not is_open and not OPEN_TOOLS.fullmatch(path):
        raise BadAddress(NO_PAGE, 404)
    if b"transfer-encoding" in headers:
        # Each chunk costs a message, and with two lengths, proxies and servers may disagree about
        # the end of a request.
        raise BadAddress("The request has a body but no Content-Length.", 411)
    if int(headers.get(b"content-length", 0)) > MOST_BODY:
        raise BadAddress(f"The form has more than {MOST_BODY:,} bytes.", 413)


def _is_costly(name: bytes, value: bytes) -> bool:
    """Return whether a header takes long to read.

    Python before 3.11.10 and 3.12.6 takes time quadratic in the number of a cookie's backslashes
    (CVE-2024-7592). Cookies of plugins have none.
    """
    return name == b"cookie" and (len(value) > LONGEST_COOKIE or b"\\" in value)


def bounded(path: str, query: bytes, *, has_sql: bool = True) -> bytes:
    """Return a query string that Datasette answers in bounded time.

    It has no repeated fields, no blank searches, which Datasette refuses, no comments before its
    SQL, and a bounded number of rows.

    Raises:
        BadAddress: there are too many fields, or the SQL is too long or not allowed.
    """
    fields: dict[tuple[str, str], bytes] = {}
    is_page = not path.endswith((".json", ".csv")) and "_format" not in fields_of(query)
    for field in filter(None, query.split(b"&")):
        name, _, text = map(unquote_plus, field.decode("latin1").partition("="))
        if name.startswith("_search") and not text.strip():
            continue
        bounded_field = field
        if name == "sql":
            if not has_sql:
                raise BadAddress(NO_SQL, 403)
            if len(text) > LONGEST_SQL:
                raise BadAddress(f"A statement has at most {LONGEST_SQL:,} characters.")
            if (sql := without_comments(text)) != text:
                bounded_field = f"sql={quote_plus(sql)}".encode()
        elif name == "_size" and is_page and text != "0":
            is_large = text == "max" or (text.isdecimal() and int(text[:9]) > PAGE_ROWS)
            bounded_field = b"_size=%d" % PAGE_ROWS if is_large else field
        fields.setdefault((name, text), bounded_field)
    for start, limit in MOST_FIELDS.items():
        if sum(name.startswith(start) for name, _ in fields) > limit:
            kind = f"fields that begin with {start}" if start else "fields"
            raise BadAddress(f"The address has more than {limit} {kind}.")
    return b"&".join(fields.values())


def without_comments(sql: str) -> str:
    """Return SQL without leading blanks and comments."""
    while True:
        sql = sql.lstrip()
        end = {"--": "\n", "/*": "*/"}.get(sql[:2])
        if end is None:
            return sql
        sql = sql.partition(end)[2]


def fields_of(query: bytes) -> dict[str, list[str]]:
    """Return the fields of a query string, which may contain bytes beyond ASCII."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)


def start_of(answer: Answer) -> Message:
    """Return the first ASGI message of an answer."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


async def send_answer(send: Send, answer: Answer) -> None:
    """Send an answer in one piece."""
    await send(start_of(answer))
    await send({"type": "http.response.body", "body": answer.body})


class Response:
    """Completes the headers of a response, and compresses its body."""

    def __init__(self, datasette: Any, scope: Scope, send: Send, *, is_open: bool) -> None:
        self._send, self._cors = send, datasette.cors
        self._allowed, self._is_head = allowances_of(datasette), scope["method"] == "HEAD"
        self._sent: dict[bytes, bytes] = dict(scope.get("headers") or ())
        # A plugin's page may be for one visitor.
        self._is_for_one = is_open or not _PERSONAL.isdisjoint(self._sent)
        ttl = 0 if is_open else datasette.setting("default_cache_ttl")
        self._max_age = f"public, max-age={ttl}".encode() if ttl > 0 else b"no-store"
        self._compressor: Any = None
        self._lacks_language = False

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        if message["type"] == "http.response.start":
            await self._send({**message, "headers": self._headers(message)})
            return
        body, is_last = message.get("body", b""), not message.get("more_body")
        if body and self._lacks_language:
            # Datasette's base template has no language, which screen readers need.
            body, self._lacks_language = body.replace(b"<html>", b'<html lang="en">', 1), False
        if self._compressor is not None and len(body) > LONGEST_AT_ONCE:
            body = await asyncio.to_thread(self._packed, body, is_last)
        elif self._compressor is not None:
            body = self._packed(body, is_last)
        await self._send({**message, "body": body})

    def _packed(self, body: bytes, is_last: bool) -> bytes:
        flush = zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH
        return bytes(self._compressor.compress(body) + self._compressor.flush(flush))

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        headers = [(key.lower(), value) for key, value in message.get("headers", ())]
        values = _HEADERS | dict(headers) | (_CORS if self._cors else {})
        kind = values.get(b"content-type", b"")
        self._lacks_language = kind.startswith(b"text/html") and _POLICY not in values
        policy = values.get(_POLICY, b"").decode() or self._allowed.policy(_DATASETTE)
        if origins := self._allowed.embedding:
            policy = policy.replace(_NO_FRAMES, f"frame-ancestors {' '.join(origins)}")
            # This older header knows no origins.
            del values[b"x-frame-options"]
        values[_POLICY] = policy.encode()
        if self._is_for_one:
            # No page that opens it can watch it. Chromium shows such a page 40 ms later.
            values[b"cross-origin-opener-policy"] = b"same-origin"
        # Datasette 1.0 shows errors beside a form, with status 200.
        is_error = message["status"] >= 400 or refusal()
        values.setdefault(_CACHE, b"no-store" if is_error else self._max_age)
        if refusal():
            values[_CACHE] = b"no-store"
        if self._lacks_language:
            values.pop(b"content-length", None)
        if kind.startswith(_COMPRESSIBLE) and b"content-encoding" not in values:
            vary = values.get(b"vary")
            values[b"vary"] = b", ".join(filter(None, (vary, b"Accept-Encoding")))
            accepted = self._sent.get(b"accept-encoding", b"").lower()
            takes_gzip = b"gzip" in accepted and not _NO_GZIP.search(accepted)
            if takes_gzip and not self._is_head and message["status"] not in (204, 206, 304):
                self._compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
                values[b"content-encoding"] = b"gzip"
                values.pop(b"content-length", None)
        cookies = [header for header in headers if header[0] == b"set-cookie"]
        values.pop(b"set-cookie", None)
        return [*values.items(), *cookies]


async def cancelled(_: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass on a request with its whole body, and cancel it if its client disconnects."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    unread, has_left = iter(messages), asyncio.Event()

    async def receive_body() -> Message:
        if (message := next(unread, None)) is None:
            await has_left.wait()
            return {"type": "http.disconnect"}
        return message

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left.set()

    work = asyncio.ensure_future(app(scope, receive_body, send))
    leaving = asyncio.ensure_future(leave())
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        # uvicorn reports a disconnect after a complete response, too.
        if not work.done():
            work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    finally:
        for task in (work, leaving):
            task.cancel()


async def below_base(datasette: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass on a request without the site's base in its path.

    A proxy may pass the base on or cut it off. Datasette would add it to paths a second time.
    """
    base = datasette.setting("base_url")
    if str(scope["path"]).startswith(base):
        raw = scope.get("raw_path") or b""
        scope = {**scope, "path": str(scope["path"])[len(base) - 1 :]}
        if raw.startswith(base.encode()):
            scope["raw_path"] = raw[len(base) - 1 :]
    await app(scope, receive, send)


def path_of(scope: Scope) -> str:
    """Return the path of a request as it was sent, which Datasette compares with its routes."""
    raw: bytes | None = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else str(scope["path"])
