"""Queues for requests: what visitors may ask at once, so that one kind keeps no other waiting.

The catalogue's own pages, searches, Datasette's tables and SQL, CSV streams and downloads have a
queue each. A queue answers a few requests at once, lets a few more wait, and refuses the rest with
503 at once: a visitor who is told to come back costs nothing, one who waits for minutes does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs

PATIENCE_SECONDS = 10.0
"""So long a request waits for its turn before it is refused."""

FULL = "The server has as many requests of this kind as it can answer. Please try again soon."
"""What a refused visitor reads, with status 503."""

RETRY_AFTER_SECONDS = 5
"""When to try again, as programs are told."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of one kind of request is taken on.

    Args:
        running: requests answered at once, until their last byte is sent.
        waiting: requests that may wait for their turn; any more are refused.
        threads: threads for their SQL; 0 for as many as Datasette's `num_sql_threads`, and None
            for none.
    """

    running: int
    waiting: int
    threads: int | None


PAGES, SEARCH, DATA, STREAMS, DOWNLOADS = "pages", "search", "data", "streams", "downloads"

BOUNDS: Mapping[str, Bound] = {
    PAGES: Bound(running=32, waiting=128, threads=2),
    SEARCH: Bound(running=4, waiting=32, threads=1),
    DATA: Bound(running=6, waiting=18, threads=0),
    # A stream reads the table for as long as its visitor listens: few, and never in line.
    STREAMS: Bound(running=4, waiting=0, threads=1),
    # A visitor who reads slowly holds a few hundred kilobytes.
    DOWNLOADS: Bound(running=100, waiting=0, threads=None),
}


class QueueFull(Exception):
    """There is no place for another request now."""


class Queue:
    """The requests of one kind: some are answered, some wait."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._turns = asyncio.Semaphore(bound.running)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it until the context ends.

        Raises:
            QueueFull: too many wait already, or it took too long.
        """
        if self._turns.locked() and self._waiting >= self._bound.waiting:
            raise QueueFull
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise QueueFull from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()


def queue_name(path: str, query: bytes, own: Iterable[re.Pattern[str]]) -> str | None:
    """Return the queue of a request, None if it needs no turn.

    Args:
        path: the path below the site's base, beginning with `/`.
        query: the query string.
        own: what the paths of the catalogue's own pages look like; all others are Datasette's.
    """
    if path.startswith(("/static/", "/-/")):
        return None
    if re.fullmatch(r"/[^/]+\.db", path):
        return DOWNLOADS
    if re.fullmatch(r"/find(?:\.\w+)?|/cover(?:\.\w+)?", path):
        return SEARCH
    if any(pattern.match(path) for pattern in own):
        return PAGES
    if "_stream" in parse_qs(query.decode("latin-1")):
        return STREAMS
    return DATA
