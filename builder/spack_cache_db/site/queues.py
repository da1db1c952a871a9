"""Queues of requests by kind, so that one kind does not block the others.

The catalogue's own pages, searches, Datasette's tables and SQL, and CSV streams have a queue each.
A queue answers a few requests at once, lets a few more wait, and refuses the rest with 503 at once:
a visitor who is told to come back costs nothing, one who waits for minutes does.

A turn lasts until the response is finished, not until it is sent (`delivery`). Responses in pieces
take a new turn for each piece. If their queue is full, a new request replaces the one whose visitor
has been behind for longest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from spack_cache_db.site import delivery
from spack_cache_db.site.middleware import (
    App,
    Message,
    Receive,
    Scope,
    Send,
    path_of,
    send_error,
)
from spack_cache_db.site.routes import is_own_page
from spack_cache_db.site.sandbox.pool import COUNT, Quota, quota

PATIENCE_SECONDS = 10.0
"""So long a request waits for its turn before it is refused."""
FULL = "The server has as many requests of this kind as it can answer. Please try again soon."
"""What a refused visitor reads, with status 503."""
RETRY_AFTER_SECONDS = 5
"""When to try again, as programs are told."""
REFUSAL_SECONDS = 1.0
"""A refusal is sent after this time: a client that retries at once would keep the server busy."""
BEHIND_SECONDS = 1.0
"""A visitor who has not taken a piece for so long may lose the place to a newcomer."""
MOST_DELAYED = 100
"""Refusals that are delayed at once; with all queues they hold fewer connections than allowed."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of one kind of request is taken on.

    Args:
        running: requests answered at once, until their answer is finished.
        waiting: requests that may wait for their turn; any more are refused.
        quota: what they may have of the sandbox.
    """

    running: int
    waiting: int
    quota: Quota


PAGES, SEARCH, DATA, STREAMS, FILES = "pages", "search", "data", "streams", "files"

BOUNDS: Mapping[str, Bound] = {
    # Searches or SQL at their bounds leave processes for the others, and pages come first.
    PAGES: Bound(running=8, waiting=152, quota=Quota(PAGES, COUNT, rank=0)),
    SEARCH: Bound(running=6, waiting=30, quota=Quota(SEARCH, 5, rank=1)),
    DATA: Bound(running=6, waiting=18, quota=Quota(DATA, 5, rank=1)),
    # Between two pieces of a stream others of its kind have their turn.
    STREAMS: Bound(running=2, waiting=30, quota=Quota(STREAMS, 1, rank=2)),
    # A download reads the file piece by piece, as its visitor takes it.
    FILES: Bound(running=100, waiting=0, quota=Quota(FILES, 0, rank=0)),
}

_queues: WeakKeyDictionary[Any, dict[str, Queue]] = WeakKeyDictionary()
_delayed: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()


class QueueFull(Exception):
    """There is no place for another request now."""


class Queue:
    """The requests of one kind: some are answered, some wait."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._turns = asyncio.Semaphore(bound.running)
        self._requests = 0
        # Those whose visitors are behind, the longest first, and since when.
        self.behind: dict[Turn, float] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Wait for a turn, and have it until the context ends.

        Raises:
            QueueFull: too many wait already, or it took too long.
        """
        if self._requests >= self._bound.running + self._bound.waiting:
            self._make_room()
        self._requests += 1
        turn = Turn(self, self._turns)
        try:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await turn.take()
            except TimeoutError:
                raise QueueFull from None
            yield turn
        finally:
            turn.give_back()
            self._requests -= 1

    def _make_room(self) -> None:
        """End the request whose visitor has been behind for longest; `QueueFull` if none is."""
        now = asyncio.get_running_loop().time()
        turn, since = next(iter(self.behind.items()), (None, now))
        if turn is None or now - since < BEHIND_SECONDS:
            raise QueueFull
        del self.behind[turn]
        turn.cut_off()


class Turn:
    """The turn of one request, which can be given to others for a while."""

    def __init__(self, queue: Queue, turns: asyncio.Semaphore) -> None:
        self._queue, self._turns, self._is_taken = queue, turns, False
        self.cut_off = delivery.cut_off()

    async def take(self) -> None:
        """Wait for the turn."""
        await self._turns.acquire()
        self._is_taken = True

    def give_back(self) -> None:
        """Let the next request have the turn, if this one has it."""
        if self._is_taken:
            self._is_taken = False
            self._turns.release()

    def lent_by(self, send: Send) -> Send:
        """Return a `send` that gives the turn to others until the visitor is ready for more.

        Only a response in pieces waits for its visitor.
        """

        async def send_and_wait(message: Message) -> None:
            if not message.get("more_body"):
                await send(message)
                return
            self.give_back()
            self._queue.behind[self] = asyncio.get_running_loop().time()
            try:
                await send(message)
            finally:
                self._queue.behind.pop(self, None)
            await self.take()

        return send_and_wait


def admit(app: App, datasette: Any) -> App:
    """Return the application with a queue for each kind of request before it.

    Args:
        app: the application.
        datasette: its Datasette; the queues are one set for each.
    """
    queues = _queues.setdefault(datasette, {name: Queue(bound) for name, bound in BOUNDS.items()})
    delayed = _delayed.setdefault(datasette, asyncio.Semaphore(MOST_DELAYED))

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        name = None
        if scope["type"] == "http":
            path = path_of(scope)
            name = queue_name(path, scope.get("query_string", b""))
        if name is None:
            await app(scope, receive, send)
            return
        try:
            async with queues[name].turn() as turn:
                quota.set(BOUNDS[name].quota)
                await app(scope, receive, turn.lent_by(send))
        except QueueFull:
            if not delayed.locked():
                async with delayed:
                    await asyncio.sleep(REFUSAL_SECONDS)
            again = (b"retry-after", str(RETRY_AFTER_SECONDS).encode())
            await send_error(scope, send, 503, FULL, [again])

    return admitted


def queue_name(path: str, query: bytes) -> str | None:
    """Return the queue of a request, None if it needs no turn.

    Args:
        path: the path, beginning with `/`.
        query: the query string.
    """
    if path.startswith(("/static/", "/-/")):
        return None
    if re.fullmatch(r"/[^/]+\.db", path):
        return FILES
    if re.fullmatch(r"/(?:find|cover)(?:\.\w+)?|/feed\.atom|/(?:diff|coverage)/.+", path):
        return SEARCH
    if is_own_page(path):
        return PAGES
    if "_stream" in parse_qs(query.decode("latin-1"), keep_blank_values=True):
        return STREAMS
    return DATA
