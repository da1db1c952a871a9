"""Compiles templates and renders first pages when a server starts: no visitor waits for them.

Templates are compiled in a thread: each takes up to 0.1 s, for which the event loop would wait. The
data of the first pages is kept. All of that stays as long as the server runs, so Python does not
look through it for garbage (`gc.freeze` in its docs): a full collection held up everybody for
44 ms, and takes 3 since.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

from spack_cache_db.site import site_folder
from spack_cache_db.site.datasettes import compile_templates
from spack_cache_db.site.loaders import read_early
from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send
from spack_cache_db.site.sandbox.database import read

FIRST_PAGES = ("/", "/packages", "/releases", "/stacks", "/cover", "/about")


def warm(app: App, datasette: Any) -> App:
    """Return the application of a Datasette, which asks for some pages once it has started."""
    asking: set[asyncio.Task[None]] = set()

    async def warmed(scope: Scope, receive: Receive, send: Send) -> None:
        async def started(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                asking.add(asyncio.create_task(_ask(datasette)))

        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, started)
        finally:
            for each in asking:
                each.cancel()

    return warmed


async def _ask(datasette: Any) -> None:
    """Compile templates, ask for pages, and answer a question about dependencies.

    A failure is reported to the next visitor. The objects that exist then are left out of garbage
    collection.
    """
    with suppress(Exception):
        await asyncio.to_thread(compile_templates, datasette, site_folder() / "templates")
    for path in FIRST_PAGES:
        with suppress(Exception):
            await datasette.client.get(path)
    with suppress(Exception):
        await read(datasette, read_early)
    gc.collect()
    gc.freeze()
