"""Around every answer: what is let in, security headers, caching and compression.

Datasette sends none of these on most of its pages, and the site must be safe without a proxy.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from spack_cache_db.site.query_fields import TooManyError, each_once
from spack_cache_db.site.sql.database import budget_of, refusal

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_ADDRESS = 32_000
NO_PAGE = "There is no such page here."
OPEN_TOOLS = re.compile(
    r"/-/(?:(?:static|static-plugins)/.+|(?:versions|metadata|settings|plugins|jump)(?:\.json)?)"
    r"|/[^/]+/-/(?:query(?:\.\w+)?|query/parameters|queries(?:\.json)?|schema(?:\.\w+)?)"
    r"|/[^/]+/[^/]+/-/(?:schema(?:\.\w+)?|definition|count)"
)
"""What is answered below a `/-/`, of the instance, a database, or a table or query.

The rest are debugging tools and forms that write, or tell about the machine. Those of databases and
tables are Datasette 1.0's.
"""
READING_POSTS = re.compile(r"/[^/]+/[^/]+/-/count|/cover(?:\.(?:json|csv))?")
"""What asks with POST and only reads: Datasette 1.0's button "count all", environments."""

_STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
# Datasette's own pages carry scripts and styles in the page.
_DATASETTE = _STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
OWN_PAGE = {"content-security-policy": _STRICT}
"""Headers of this site's own pages, which need neither scripts nor styles in the page."""

_SECURITY = {
    b"content-security-policy": _DATASETTE.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"cross-origin-opener-policy": b"same-origin",
}
_COMPRESSIBLE = (b"text/", b"application/json", b"application/javascript", b"image/svg")


def wrap(app: App, ttl: int, base_url: str = "/") -> App:
    """Return the application with the rules of this module around it."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        answer = Answer(scope, send, ttl)
        refused = barred(scope, base_url)
        if refused is not None:
            await _refuse(answer.send, *refused)
            return
        try:
            query = each_once(scope.get("query_string", b""))
        except TooManyError as error:
            await _refuse(answer.send, 400, str(error))
            return
        with budget_of(query):
            await app({**scope, "query_string": query}, receive, answer.send)

    return wrapped


def barred(scope: Scope, base_url: str) -> tuple[int, str] | None:
    """Return status and reason if a request is not let in."""
    whole = str(scope["path"])
    if "\0" in whole or whole.startswith(("//", "/\\")):
        # No name has a NUL; and a redirect to where a path begins so leads to another host.
        return 404, NO_PAGE
    path = path_below(whole, base_url)
    if scope["method"] not in ("GET", "HEAD"):
        is_reading = scope["method"] == "POST" and READING_POSTS.fullmatch(path)
        if not is_reading:
            return 405, "This site is read-only: only GET and HEAD are answered."
    if len(scope.get("query_string", b"")) + len(scope["path"]) > LONGEST_ADDRESS:
        return 414, f"The address is longer than {LONGEST_ADDRESS:,} characters."
    if "/-/" in path and not OPEN_TOOLS.fullmatch(path):
        return 404, NO_PAGE
    return None


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"Error: {reason}\n".encode()})


class Answer:
    """One answer on its way out: completes the headers and compresses the body."""

    def __init__(self, scope: Scope, send: Send, ttl: int) -> None:
        self._send = send
        self._ttl = ttl
        self._asked: dict[bytes, bytes] = dict(scope.get("headers") or ())
        self._is_head = scope["method"] == "HEAD"
        self._compressor: Any = None

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": self._headers(message)}
        elif message["type"] == "http.response.body":
            message = {**message, "body": self._body(message)}
        await self._send(message)

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        status = message["status"]
        headers = [(key.lower(), value) for key, value in message.get("headers", ())]
        named = dict(headers)
        for key, value in _SECURITY.items():
            if key not in named:
                headers.append((key, value))
        if refusal():
            # Where Datasette 1.0 shows what was wrong beside a form, the status is 200.
            headers = [each for each in headers if each[0] != b"cache-control"]
            headers.append((b"cache-control", b"no-store"))
        elif b"cache-control" not in named:
            headers.append((b"cache-control", self._cache_control(status)))
        kind = named.get(b"content-type", b"")
        if not kind.startswith(_COMPRESSIBLE) or b"content-encoding" in named:
            return headers
        headers = _with_vary(headers, b"Accept-Encoding")
        if (
            b"gzip" in self._asked.get(b"accept-encoding", b"")
            and not self._is_head
            and status not in (204, 206, 304)
        ):
            self._compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
            headers.append((b"content-encoding", b"gzip"))
            headers = [(key, value) for key, value in headers if key != b"content-length"]
        return headers

    def _cache_control(self, status: int) -> bytes:
        return f"public, max-age={self._ttl}".encode() if status < 400 else b"no-store"

    def _body(self, message: Message) -> bytes:
        body: bytes = message.get("body", b"")
        if self._compressor is None:
            return body
        packed: bytes = self._compressor.compress(body)
        if message.get("more_body"):
            return packed + bytes(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        return packed + bytes(self._compressor.flush())


def _with_vary(headers: list[tuple[bytes, bytes]], name: bytes) -> list[tuple[bytes, bytes]]:
    parts = [value for key, value in headers if key == b"vary"]
    rest = [(key, value) for key, value in headers if key != b"vary"]
    return [*rest, (b"vary", b", ".join([*parts, name]))]


def path_of(scope: Scope, base_url: str) -> str:
    """Return the path of a request below `base_url`, as Datasette compares it with its routes."""
    # Datasette finds its way by the path as it was sent, not as it was decoded.
    raw: bytes | None = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else str(scope["path"])
    return path_below(path, base_url)


def path_below(path: str, base_url: str) -> str:
    """Return a whole path without the site's base, beginning with one `/`."""
    return "/" + path.removeprefix(base_url).lstrip("/")
