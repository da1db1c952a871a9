"""A small HTTP client for bounded loads on loopback.

It uses a tenth of a general client's time per request, because client and server share
the machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from statistics import median, quantiles

PIECE = 1 << 20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to one request; status 0 means that the connection broke.

    Attributes:
        status: its status.
        size: the bytes of its body.
        seconds: the time until it was complete.
        cache: what nginx says about its cache, such as `HIT`.
    """

    status: int
    size: int
    seconds: float
    cache: str = ""


@dataclass(slots=True)
class Load:
    """The responses to a bounded load, and the total time."""

    replies: list[Reply] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return len(self.replies) - self.count(200)

    @property
    def per_second(self) -> float:
        """Requests per second, over all clients."""
        return len(self.replies) / self.seconds

    @property
    def median_ms(self) -> float:
        """The median latency, in milliseconds."""
        return median(self._milliseconds())

    @property
    def worst_ms(self) -> float:
        """The 99th percentile of the latencies, in milliseconds."""
        times = self._milliseconds()
        if len(times) == 1:
            return times[0]
        return quantiles(times, n=100, method="inclusive")[-1]

    def count(self, status: int) -> int:
        """Return the number of responses with a status."""
        return sum(reply.status == status for reply in self.replies)

    def _milliseconds(self) -> list[float]:
        return [1000 * reply.seconds for reply in self.replies]


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, target: str) -> Reply:
        """Request `target` once; a broken connection is reported and not retried."""
        started = time.perf_counter()
        try:
            status, headers, size = await self._exchange(target)
        except (OSError, EOFError, ValueError):
            # The next request opens another connection.
            await self.close()
            return Reply(0, 0, time.perf_counter() - started)
        if headers.get("connection") == "close":
            await self.close()
        cache = headers.get("x-cache-status", "")
        return Reply(status, size, time.perf_counter() - started, cache)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is None:
            return
        _, writer = self._streams
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self._streams = None

    async def _exchange(self, target: str) -> tuple[int, dict[str, str], int]:
        """Send a request; return the status, the headers and the size of the body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

        # The head of the response: a line with the status, headers, an empty line.
        head = await reader.readuntil(b"\r\n\r\n")
        status_line, *header_lines = head.decode("latin-1").splitlines()
        headers = {}
        for line in header_lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        status = int(status_line.split()[1])
        return status, headers, await _skip_body(reader, headers)


async def _skip_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> int:
    """Read a body and return its size."""
    if headers.get("transfer-encoding") != "chunked":
        size = int(headers.get("content-length", 0))
        await _skip(reader, size)
        return size
    total = 0
    while True:
        size = int(await reader.readline(), 16)
        # A line break follows each chunk, and the last one, which is empty.
        await _skip(reader, size + len("\r\n"))
        if size == 0:
            return total
        total += size


async def _skip(reader: asyncio.StreamReader, size: int) -> None:
    """Read a number of bytes."""
    while size > 0:
        data = await reader.read(min(size, PIECE))
        if not data:
            raise EOFError("the connection ended within a page")
        size -= len(data)


async def load(
    port: int,
    targets: Sequence[str],
    *,
    clients: int = 1,
    requests: int = 100,
    seconds: float = 5.0,
    until: Callable[[], bool] = lambda: False,
) -> Load:
    """Request the targets in turn, until the number of requests or the time is reached.

    Args:
        port: the port of the server.
        targets: paths with their query strings.
        clients: the number of connections, all of which take from the same queue.
        requests: the largest number of requests of all clients.
        seconds: the longest time.
        until: returns whether to stop earlier.
    """
    # All clients take targets from one queue.
    result = Load()
    queue = islice(cycle(targets), requests)
    started = time.perf_counter()

    def is_over() -> bool:
        return until() or time.perf_counter() > started + seconds

    workers = [_work(Client(port), queue, is_over, result) for _ in range(clients)]
    await asyncio.gather(*workers)
    result.seconds = time.perf_counter() - started
    return result


async def _work(
    client: Client,
    queue: Iterator[str],
    is_over: Callable[[], bool],
    result: Load,
) -> None:
    """Request what the queue has, until it is empty or the time is over."""
    for target in queue:
        result.replies.append(await client.get(target))
        if is_over():
            break
    await client.close()
