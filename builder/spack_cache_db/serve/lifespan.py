"""Tells a Datasette in a server process that it starts and ends (ASGI's lifespan).

Datasette passes both on to plugins, of which some connect to other servers. a2wsgi,
which calls Datasette for each request, does not do so.
"""

from __future__ import annotations

import asyncio
from typing import Any

_SCOPE = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}


class Lifespan:
    """The lifespan of the Datasette that answers now; a new database has a new one."""

    def __init__(self) -> None:
        self._app: Any = None
        self._task: asyncio.Future[None] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether any Datasette has been told that it starts."""
        return self._task is not None

    async def begin(self, app: Any) -> None:
        """Tell an application that it starts, before its first request.

        The one that answered before is told that it ends.
        """
        if app is self._app:
            return
        if self._task is not None:
            self._task.cancel()
        has_started = asyncio.Event()
        messages = [{"type": "lifespan.startup"}]

        async def receive() -> dict[str, Any]:
            if not messages:
                # There is no other message: the lifespan ends when it is cancelled.
                await asyncio.Event().wait()
            return messages.pop()

        async def send(_: dict[str, Any]) -> None:
            # The application has handled its first message.
            has_started.set()

        # The lifespan goes on in a task of its own. An application that does not know
        # lifespans ends it with an exception.
        self._task = asyncio.ensure_future(app(dict(_SCOPE), receive, send))
        start = asyncio.ensure_future(has_started.wait())
        await asyncio.wait((self._task, start), return_when=asyncio.FIRST_COMPLETED)
        start.cancel()
        self._app = app

    async def end(self) -> None:
        """Tell the application that it ends, and return when it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
