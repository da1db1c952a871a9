"""Pages of other sites: what they are told before they ask, and what they may read (CORS).

Datasette's `--cors` covers its own JSON and CSV, without the headers that ranges of a file need.
Datasette Lite, DuckDB-WASM and notebooks read the file itself.
"""

from __future__ import annotations

from spack_cache_db.site.wrapper import App, Message, Receive, Scope, Send

METHODS = b"GET, HEAD, OPTIONS"
_PREFIX = b"access-control-"
_OPEN = [
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


def open_to_others(app: App, *, cors: bool) -> App:
    """Return the application with every OPTIONS answered and, with `cors`, all answers readable."""
    opened = _OPEN if cors else []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_open(message: Message) -> None:
            if cors and message["type"] == "http.response.start":
                # Datasette sets some of these on some answers.
                kept = [
                    each
                    for each in message.get("headers", ())
                    if not each[0].lower().startswith(_PREFIX)
                ]
                message = {**message, "headers": [*kept, *opened]}
            await send(message)

        if scope["method"] == "OPTIONS":
            headers = [(b"allow", METHODS), *opened, *(_PREFLIGHT if cors else [])]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send_open)

    return answer
