"""Renders first pages when a server starts, so that no visitor waits for them.

Making them compiles their templates and reads and keeps what they show. All of that stays as long
as the server runs, so Python does not look through it for garbage (`gc.freeze` in its docs): a full
collection held up everybody for 44 ms, and takes 3 since.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from contextlib import suppress

from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send

FIRST_PAGES = ("/", "/packages", "/releases", "/stacks", "/cover", "/about")


def warm(app: App, paths: Iterable[str]) -> App:
    """Return the application, which asks itself for some pages once it has started.

    Args:
        app: the application.
        paths: the paths of the pages, as a visitor would ask for them.
    """
    asking: set[asyncio.Task[None]] = set()

    async def warmed(scope: Scope, receive: Receive, send: Send) -> None:
        async def started(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                asking.add(asyncio.create_task(_ask(app, paths)))

        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, started)
        finally:
            for each in asking:
                each.cancel()

    return warmed


async def _ask(app: App, paths: Iterable[str]) -> None:
    """Ask for pages one after another; one that cannot be had is for its visitor to be told.

    What is there then is left out of garbage collection.
    """
    for path in paths:
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        with suppress(Exception):
            await app(scope, _nothing, _nowhere)
    gc.collect()
    gc.freeze()


async def _nothing() -> Message:
    """Send nothing, and never leave."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


async def _nowhere(message: Message) -> None:
    """Take an answer that nobody sees."""
