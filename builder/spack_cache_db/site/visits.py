"""Reads bodies of requests whole, and cancels a request whose client disconnects."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send, send_text

MOST_BODY = 4_000_000
"""Size limit of a form in bytes; a lockfile of a thousand specs has two million."""
BODY_SECONDS = 20.0
"""Longest time for the body of a request to arrive."""


def visited(app: App) -> App:
    """Return an application that gets whole bodies and is cancelled if its client disconnects."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        has_body = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(receive) if has_body else b""
        except TimeoutError:
            await send_text(send, 408, f"the form took longer than {BODY_SECONDS:.0f} s to arrive")
            return
        if body is None:
            await send_text(send, 413, f"the form has more than {MOST_BODY:,} bytes")
            return
        await _until_left(app, scope, receive, send, body)

    return answered


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    body, is_more = bytearray(), True
    while is_more and len(body) <= MOST_BODY:
        message = await receive()
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
    return bytes(body) if len(body) <= MOST_BODY else None


async def _until_left(app: App, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    is_whole, has_left = False, asyncio.Event()

    async def receive_whole() -> Message:
        if (message := next(messages, None)) is not None:
            return message
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def send_noting(message: Message) -> None:
        nonlocal is_whole
        await send(message)
        is_whole = message["type"] == "http.response.body" and not message.get("more_body")

    async def leave() -> None:
        size = 0
        while size <= MOST_BODY and (message := await receive())["type"] != "http.disconnect":
            size += len(message.get("body", b""))
        has_left.set()

    work = asyncio.ensure_future(app(scope, receive_whole, send_noting))
    leaving = asyncio.ensure_future(leave())
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        # uvicorn reports a disconnect after a complete answer, too.
        if not is_whole and not work.done():
            work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    finally:
        for task in (work, leaving):
            task.cancel()
