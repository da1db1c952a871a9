"""Around every request: it waits for its turn, goes out in pieces, and ends with its visitor."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from spack_cache_db.site.queues import (
    BOUNDS,
    FULL,
    RETRY_AFTER_SECONDS,
    Queue,
    QueueFull,
    queue_name,
)
from spack_cache_db.site.sql_threads import SqlThreads, pool_name
from spack_cache_db.site.wrapper import App, Message, Receive, Scope, Send, path_of

PIECE = 64 * 1024
"""What is handed to the HTTP server at once: it waits for slow visitors only between two pieces."""

REFUSAL_SECONDS = 1.0
"""So long a visitor waits for a refusal: those who ask again at once would keep the server busy."""

MOST_DELAYED = 100
"""So many wait so at once: with all queues they hold fewer connections than there may be."""

_queues: WeakKeyDictionary[Any, dict[str, Queue]] = WeakKeyDictionary()
_delayed: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()


def take_over_threads(datasette: Any) -> None:
    """Give a Datasette threads for each queue in place of its own, if it has any."""
    old: Executor | None = datasette.executor
    if old is None or isinstance(old, SqlThreads):
        return
    own = datasette.setting("num_sql_threads")
    sizes = {
        name: bound.threads or own for name, bound in BOUNDS.items() if bound.threads is not None
    }
    datasette.executor = SqlThreads(sizes)
    old.shutdown(wait=False)


def admit(app: App, datasette: Any, own: Iterable[str]) -> App:
    """Return the application with a queue for each kind of request before it.

    Args:
        app: the application.
        datasette: its Datasette; the queues are one set for each.
        own: regular expressions for the paths of the catalogue's own pages.
    """
    take_over_threads(datasette)
    queues = _queues.setdefault(datasette, {name: Queue(bound) for name, bound in BOUNDS.items()})
    delayed = _delayed.setdefault(datasette, asyncio.Semaphore(MOST_DELAYED))
    patterns, base_url = [re.compile(each) for each in own], datasette.setting("base_url")

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        name = queue_name(path_of(scope, base_url), scope.get("query_string", b""), patterns)
        if name is None:
            await app(scope, receive, send)
            return
        try:
            async with queues[name].turn():
                if BOUNDS[name].threads is not None:
                    pool_name.set(name)
                await app(scope, receive, send)
        except QueueFull:
            if not delayed.locked():
                async with delayed:
                    await asyncio.sleep(REFUSAL_SECONDS)
            await _refuse(scope, send)

    return admitted


async def _refuse(scope: Scope, send: Send) -> None:
    is_json = str(scope["path"]).endswith(".json")
    kind = "application/json" if is_json else "text/plain"
    text = json.dumps({"ok": False, "error": FULL, "status": 503}) if is_json else f"Error: {FULL}"
    headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"retry-after", str(RETRY_AFTER_SECONDS).encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})


def end_with_visitor(app: App) -> App:
    """Return the application, each of whose requests is cancelled when its visitor has gone."""

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        answer = _Answer(send)
        # What is not read is not taken in: the server stops reading as well.
        body: asyncio.Queue[Message] = asyncio.Queue(1)
        answering = asyncio.ensure_future(app(scope, body.get, answer.send))
        leaving = asyncio.ensure_future(_left(receive, body))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            # To the server, an answer that is complete has been left as well.
            if answering.done() or answer.is_complete:
                await answering
        finally:
            await _cancel(leaving)
            await _cancel(answering)

    return watched


class _Answer:
    """Passes an answer on, piece by piece."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_complete = False

    async def send(self, message: Message) -> None:
        body = message.get("body", b"")
        for start in range(0, max(len(body) - PIECE, 0), PIECE):
            piece = body[start : start + PIECE]
            await self._send({"type": message["type"], "body": piece, "more_body": True})
        if len(body) > PIECE:
            message = {**message, "body": body[(len(body) - 1) // PIECE * PIECE :]}
        last = message["type"] == "http.response.body" and not message.get("more_body")
        self.is_complete = self.is_complete or last
        await self._send(message)


async def _left(receive: Receive, body: asyncio.Queue[Message]) -> None:
    """Pass the body of a request on, and return when its visitor has gone."""
    while (message := await receive())["type"] != "http.disconnect":
        await body.put(message)


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
