"""Checks every request, and adds security headers, caching, compression and CORS to responses.

Datasette sends none of these on most of its pages, and the site must be safe without a proxy.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote_plus, unquote_to_bytes

from spack_cache_db.site.allowances import allowances_of
from spack_cache_db.site.sandbox.statements import PAGE_ROWS
from spack_cache_db.site.workers.execute import refusal

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

LONGEST_ADDRESS = 32_000
MOST_FIELDS = 100
"""Fields of an address; each may cost a statement or a link."""
MOST_OF = {"_facet": 10, "_sort": 2}
"""Most fields whose names begin with these words."""
LONGEST_SQL = 8_000
"""Bytes of a statement; Datasette's regular expressions take time quadratic in its length."""
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

_STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
# Datasette's own pages carry scripts and styles in the page.
_DATASETTE = _STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
_POLICY, _NO_FRAMES = b"content-security-policy", b"frame-ancestors 'none'"
OWN_PAGE = {"content-security-policy": _STRICT}
"""Headers of our own pages, which have neither scripts nor styles inside the page."""

_SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_FOR_ONE_VISITOR = {b"cross-origin-opener-policy": b"same-origin"}
"""Headers of pages that plugins may show to one visitor: no site that opens them can watch them.

Other pages do without, because Chromium shows such a page 40 ms later, in another process.
"""
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

METHODS = b"GET, HEAD, OPTIONS"
_CORS_PREFIX = b"access-control-"
_CORS = [
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Link, "
        b"Retry-After",
    ),
]
_PREFLIGHT = [
    (b"access-control-allow-methods", METHODS),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, If-None-Match, If-Range, Range",
    ),
    (b"access-control-max-age", b"3600"),
]


class TooLargeError(Exception):
    """The address has too many fields or a statement that is too long."""


def guard(app: App, datasette: Any) -> App:
    """Return the application with the rules of this module around it."""
    ttl = datasette.setting("default_cache_ttl")
    allowed = allowances_of(datasette)
    security = {**_SECURITY, b"content-security-policy": allowed.policy(_DATASETTE).encode()}
    frames = _NO_FRAMES
    if allowed.embedding:
        # This older header knows no origins.
        del security[b"x-frame-options"]
        frames = b"frame-ancestors " + " ".join(allowed.embedding).encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            cors = [*_CORS, *_PREFLIGHT] if datasette.cors else []
            await send_whole(send, 204, "", [_allow(scope), *cors])
            return
        is_open = allowed.opens(str(scope["path"]))
        # An open page of a plugin may be for one visitor, such as a form to log in.
        max_age = 0 if is_open else ttl
        is_for_one = is_open or _is_signed_in(scope)
        sent = security | _FOR_ONE_VISITOR if is_for_one else security
        response = Response(scope, send, max_age, sent, frames, cors=datasette.cors)
        refused = barred(scope, is_open=is_open)
        if refused is not None:
            allow = [_allow(scope)] if refused[0] == 405 else []
            await send_error(scope, response.send, *refused, allow)
            return
        try:
            query = bounded(str(scope["path"]), each_once(scope.get("query_string", b"")))
        except TooLargeError as error:
            await send_error(scope, response.send, 400, str(error))
            return
        if not datasette.setting("default_allow_sql") and "sql" in fields_of(query):
            await send_error(scope, response.send, 403, NO_SQL)
            return
        headers = [header for header in scope["headers"] if not _is_costly(*header)]
        await app({**scope, "query_string": query, "headers": headers}, receive, response.send)

    return guarded


def _allow(scope: Scope) -> tuple[bytes, bytes]:
    takes_forms = READING_POSTS.fullmatch(str(scope["path"]))
    return b"allow", METHODS + (b", POST" if takes_forms else b"")


def barred(scope: Scope, *, is_open: bool) -> tuple[int, str] | None:
    """Return status and reason if a request is refused."""
    path = str(scope["path"])
    if "\0" in path or path.startswith(("//", "/\\")):
        # No name contains NUL, and a redirect to a path with two slashes leads to another host.
        return 404, NO_PAGE
    if scope["method"] not in ("GET", "HEAD") and not is_open:
        is_reading = scope["method"] == "POST" and READING_POSTS.fullmatch(path)
        if not is_reading:
            return 405, "This site is read-only: only GET and HEAD are answered."
    if b"%00" in scope.get("query_string", b"") or b"\0" in scope.get("query_string", b""):
        return 400, NO_NUL
    if len(scope.get("query_string", b"")) + len(scope["path"]) > LONGEST_ADDRESS:
        return 414, f"The address is longer than {LONGEST_ADDRESS:,} characters."
    if "/-/" in path and not is_open and not OPEN_TOOLS.fullmatch(path):
        return 404, NO_PAGE
    if any(name.lower() == b"transfer-encoding" for name, _ in scope.get("headers", ())):
        # Each chunk costs a message, and with two lengths, proxies and servers may disagree about
        # the end of a request.
        return 411, "The request has a body but no Content-Length."
    return None


def _is_signed_in(scope: Scope) -> bool:
    """Return whether a request may identify its visitor, by the headers that `Vary` names."""
    return any(name.lower() in (b"cookie", b"authorization") for name, _ in scope["headers"])


def _is_costly(name: bytes, value: bytes) -> bool:
    """Return whether a header takes long to read.

    Python before 3.11.10 and 3.12.6 takes time quadratic in the number of a cookie's backslashes
    (CVE-2024-7592). Cookies of plugins have none.
    """
    return name.lower() == b"cookie" and (len(value) > LONGEST_COOKIE or b"\\" in value)


def each_once(query: bytes) -> bytes:
    """Return a query string without repeated fields and without blank searches.

    Datasette answers a blank search with an error.

    Raises:
        TooLargeError: there are too many different fields.
    """
    fields: dict[tuple[str, str], bytes] = {}
    for field in query.split(b"&"):
        name, _, value = field.decode("latin1").partition("=")
        is_blank = name.startswith("_search") and not unquote_plus(value).strip()
        if field and not is_blank:
            fields.setdefault((unquote_plus(name), unquote_plus(value)), field)
    if len(fields) > MOST_FIELDS:
        raise TooLargeError(f"The address has more than {MOST_FIELDS} fields.")
    for start, limit in MOST_OF.items():
        if sum(name.startswith(start) for name, _ in fields) > limit:
            raise TooLargeError(
                f"The address has more than {limit} fields that begin with {start}."
            )
    return b"&".join(fields.values())


def bounded(path: str, query: bytes) -> bytes:
    """Return a query string without comments before its SQL, and with a bounded number of rows.

    Args:
        path: the path of the address.
        query: its query string.

    Raises:
        TooLargeError: the SQL is too long.
    """
    fields = [field.partition(b"=")[::2] for field in query.split(b"&")]
    is_page = not path.endswith((".json", ".csv")) and b"_format" not in dict(fields)
    for number, (name, value) in enumerate(fields):
        if name == b"sql":
            sql = unquote_to_bytes(value.replace(b"+", b" "))
            if len(sql) > LONGEST_SQL:
                raise TooLargeError(f"A statement has at most {LONGEST_SQL:,} bytes.")
            if (bare := without_comments(sql)) != sql:
                fields[number] = name, quote_plus(bare).encode()
        elif name == b"_size" and is_page and _is_large(value):
            fields[number] = name, b"%d" % PAGE_ROWS
    return b"&".join(b"=".join(field) for field in fields if field[0])


def without_comments(sql: bytes) -> bytes:
    """Return SQL without leading blanks and comments."""
    while True:
        sql = sql.lstrip()
        end = {b"--": b"\n", b"/*": b"*/"}.get(sql[:2])
        if end is None:
            return sql
        sql = sql.partition(end)[2]


def _is_large(size: bytes) -> bool:
    return size == b"max" or (size.isdigit() and int(size[:9]) > PAGE_ROWS)


def fields_of(query: bytes) -> dict[str, list[str]]:
    """Return the fields of a query string, which may contain bytes beyond ASCII."""
    return parse_qs(query.decode("latin-1"))


async def send_error(
    scope: Scope, send: Send, status: int, sentence: str, headers: Headers | None = None
) -> None:
    """Send an error: as JSON if JSON was requested, else as plain text."""
    if not str(scope["path"]).endswith(".json"):
        await send_text(send, status, sentence, headers)
        return
    kind = (b"content-type", b"application/json; charset=utf-8")
    body = json.dumps({"ok": False, "error": sentence, "status": status})
    await send_whole(send, status, f"{body}\n", [kind, *(headers or [])])


async def send_text(send: Send, status: int, sentence: str, headers: Headers | None = None) -> None:
    """Send an error as plain text."""
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await send_whole(send, status, f"Error: {sentence}\n", [kind, *(headers or [])])


async def send_whole(send: Send, status: int, body: str, headers: Headers) -> None:
    """Send an answer in one piece."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


class Response:
    """Completes the headers of a response, and compresses its body."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        ttl: int,
        security: dict[bytes, bytes],
        frames: bytes,
        *,
        cors: bool,
    ) -> None:
        self._send = send
        self._ttl, self._security, self._frames, self._cors = ttl, security, frames, cors
        self._asked: dict[bytes, bytes] = dict(scope.get("headers") or ())
        self._is_head = scope["method"] == "HEAD"
        self._compressor: Any = None
        self._lacks_language = False

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": self._headers(message)}
        elif self._lacks_language and message.get("body"):
            # Datasette's base template has no language, which screen readers need.
            body = message["body"].replace(b"<html>", b'<html lang="en">', 1)
            message, self._lacks_language = {**message, "body": body}, False
        if message["type"] == "http.response.body" and self._compressor is not None:
            large = len(message.get("body", b"")) > LONGEST_AT_ONCE
            packed = await asyncio.to_thread(self._packed, message) if large else None
            message = {**message, "body": self._packed(message) if packed is None else packed}
        await self._send(message)

    def _headers(self, message: Message) -> Headers:
        status = message["status"]
        headers = [(key.lower(), value) for key, value in message.get("headers", ())]
        if self._cors:
            # Datasette sets some of these on some answers.
            headers = [header for header in headers if not header[0].startswith(_CORS_PREFIX)]
            headers += _CORS
        named = dict(headers)
        headers += [header for header in self._security.items() if header[0] not in named]
        headers = [
            (key, value.replace(_NO_FRAMES, self._frames) if key == _POLICY else value)
            for key, value in headers
        ]
        if refusal():
            # Datasette 1.0 shows errors beside a form, with status 200.
            headers = [header for header in headers if header[0] != b"cache-control"]
            headers.append((b"cache-control", b"no-store"))
        elif b"cache-control" not in named:
            headers.append((b"cache-control", self._cache_control(status)))
        kind = named.get(b"content-type", b"")
        if kind.startswith(b"text/html") and _POLICY not in named:
            self._lacks_language = True
            headers = [each for each in headers if each[0] != b"content-length"]
        if not kind.startswith(_COMPRESSIBLE) or b"content-encoding" in named:
            return headers
        headers = _with_vary(headers, b"Accept-Encoding")
        if self._takes_gzip() and not self._is_head and status not in (204, 206, 304):
            self._compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
            headers.append((b"content-encoding", b"gzip"))
            headers = [(key, value) for key, value in headers if key != b"content-length"]
        return headers

    def _takes_gzip(self) -> bool:
        accepted = self._asked.get(b"accept-encoding", b"").lower()
        return b"gzip" in accepted and not _NO_GZIP.search(accepted)

    def _cache_control(self, status: int) -> bytes:
        is_cacheable = self._ttl > 0 and status < 400
        return f"public, max-age={self._ttl}".encode() if is_cacheable else b"no-store"

    def _packed(self, message: Message) -> bytes:
        packed: bytes = self._compressor.compress(message.get("body", b""))
        if message.get("more_body"):
            return packed + bytes(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        return packed + bytes(self._compressor.flush())


def _with_vary(headers: Headers, name: bytes) -> Headers:
    parts = [value for key, value in headers if key == b"vary"]
    rest = [(key, value) for key, value in headers if key != b"vary"]
    return [*rest, (b"vary", b", ".join([*parts, name]))]


def below_base(app: App, base_url: str) -> App:
    """Return an application that removes the site's base from paths.

    A proxy may pass the base on or cut it off. Datasette would add it to paths a second time.
    """

    async def cut(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and str(scope["path"]).startswith(base_url):
            raw = scope.get("raw_path") or b""
            paths: dict[str, Any] = {"path": str(scope["path"])[len(base_url) - 1 :]}
            if raw.startswith(base_url.encode()):
                paths["raw_path"] = raw[len(base_url) - 1 :]
            scope = {**scope, **paths}
        await app(scope, receive, send)

    return cut


def path_of(scope: Scope) -> str:
    """Return the path of a request as it was sent, which Datasette compares with its routes."""
    raw: bytes | None = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else str(scope["path"])
