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
from itertools import cycle
from statistics import median, quantiles

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to one request; status 0 means that the connection broke."""

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
        return sum(reply.status != 200 for reply in self.replies)

    @property
    def per_second(self) -> float:
        """Requests per second, over all clients."""
        return len(self.replies) / self.seconds

    def latency(self) -> tuple[float, float]:
        """Return the median and the 99th percentile, in milliseconds."""
        times = [1000 * reply.seconds for reply in self.replies]
        worst = (
            quantiles(times, n=100, method="inclusive")[-1]
            if len(times) > 1
            else times[0]
        )
        return median(times), worst


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
            await self.close()
            return Reply(0, 0, time.perf_counter() - started)
        if headers.get("connection") == "close":
            await self.close()
        cache = headers.get("x-cache-status", "")
        return Reply(status, size, time.perf_counter() - started, cache)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams:
            self._streams[1].close()
            with suppress(OSError):
                await self._streams[1].wait_closed()
            self._streams = None

    async def _exchange(self, target: str) -> tuple[int, dict[str, str], int]:
        if not self._streams:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return int(head[0].split()[1]), headers, await _body(reader, headers)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> int:
    if headers.get("transfer-encoding") != "chunked":
        size = int(headers.get("content-length", 0))
        await _skip(reader, size)
        return size
    total = 0
    while size := int(await reader.readline(), 16):
        await _skip(reader, size + 2)
        total += size
    await reader.readline()
    return total


async def _skip(reader: asyncio.StreamReader, size: int) -> None:
    while size:
        data = await reader.read(min(size, CHUNK))
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
    """Request the targets in turn, until the number of requests or the time is
    reached.
    """
    result, started = Load(), time.perf_counter()
    queue = zip(range(requests), cycle(targets), strict=False)

    def ended() -> bool:
        return until() or time.perf_counter() > started + seconds

    workers = [_work(Client(port), queue, ended, result) for _ in range(clients)]
    await asyncio.gather(*workers)
    result.seconds = time.perf_counter() - started
    return result


async def _work(
    client: Client,
    queue: Iterator[tuple[int, str]],
    ended: Callable[[], bool],
    result: Load,
) -> None:
    for _, target in queue:
        result.replies.append(await client.get(target))
        if ended():
            break
    await client.close()
