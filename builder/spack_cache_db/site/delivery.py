"""Buffers requests and responses, so that slow visitors do not hold up the application.

The application starts when the body of a request has arrived, and its response is kept here until
the visitor has read it. So the application never waits for a visitor, and a turn (`queues`) lasts
only as long as there is work to do. Streams and downloads, which are sent in pieces, are the
exception: they pause when their visitor is behind. When a visitor leaves, the work ends.

What is kept is bounded: a visitor who reads or sends more slowly than a minimum rate is cut off. If
all of them together hold more than `MOST_HELD` bytes, the one without progress for longest is.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from spack_cache_db.site.middleware import App, Message, Receive, Scope, Send, send_text

PIECE = 64 * 1024
"""Handed to the HTTP server at once: it waits for slow visitors only between two pieces."""
MOST_AHEAD = 2 * PIECE
"""Bytes by which an answer in pieces may be ahead of its visitor."""
MOST_HELD = 64_000_000
"""Bytes, of all visitors together: those sent of bodies, and those not yet taken of answers."""
FEW = MOST_HELD // 1_000
"""Bytes of one visitor that need no look at the others: there are fewer than 1,000 connections."""
STALL_SECONDS = 30.0
"""So long a visitor may take for a piece."""
LEAST_RATE = 4_096
"""Bytes a second that a visitor takes on average, after the first `STALL_SECONDS`."""

MOST_BODY = 4_000_000
"""Bytes of a form; a lockfile of a thousand specs has two million."""
BODY_SECONDS = 20.0
"""So long the body of a request may take to arrive."""


_visits: set[_Visit] = set()
_current: ContextVar[_Visit | None] = ContextVar("current", default=None)


class SlowVisitor(Exception):
    """A visitor takes less than the least rate."""


class _Visit:
    """One request: how much is held for its visitor, and since when nothing of it has moved."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._loop = asyncio.get_running_loop()
        self._messages: asyncio.Queue[Message] = asyncio.Queue(1)
        self._unsent: deque[Message | None] = deque()
        self._put, self._taken = asyncio.Event(), asyncio.Event()
        self._received = self._ahead = 0
        self._moved = self._loop.time()
        self.cut: asyncio.Future[None] = self._loop.create_future()
        self.is_whole = False

    @property
    def held(self) -> int:
        """Bytes that are held for the visitor."""
        return self._received + self._ahead

    async def receive(self) -> Message:
        """Return the next message of the visitor."""
        return await self._messages.get()

    async def listen(self, *, has_body: bool) -> None:
        """Pass on what the visitor sends, and return when the visitor has gone."""
        if not has_body:
            await self._messages.put({"type": "http.request", "body": b"", "more_body": False})
        while (message := await self._receive())["type"] != "http.disconnect":
            self._received += len(message.get("body", b""))
            self._note_progress()
            if has_body:
                # What nobody asks for is not taken in: the HTTP server stops reading as well.
                await self._messages.put(message)
            elif self._received > MOST_BODY:
                return

    async def put(self, message: Message) -> None:
        """Keep a message until it is sent; return at once, or when a stream may go on."""
        self._unsent.append(message)
        self._ahead += len(message.get("body", b""))
        self._put.set()
        self._note_progress()
        while message.get("more_body") and self._ahead > MOST_AHEAD:
            self._taken.clear()
            await self._taken.wait()

    def cut_off(self) -> None:
        """End the request, and its connection, without another word."""
        if not self.cut.done():
            self.cut.set_result(None)

    def finish(self) -> None:
        """Say that there will be no more messages."""
        self._unsent.append(None)
        self._put.set()

    async def send_all(self) -> None:
        """Send the answer.

        Raises:
            SlowVisitor: its visitor is too slow for it.
        """
        sent, seconds = 0, 0.0
        while (message := await self._next()) is not None:
            for piece in _pieces(message):
                began = self._loop.time()
                try:
                    async with asyncio.timeout(STALL_SECONDS):
                        await self._send(piece)
                except TimeoutError:
                    raise SlowVisitor from None
                size = len(piece.get("body", b""))
                sent, seconds = sent + size, seconds + self._loop.time() - began
                if seconds > STALL_SECONDS + sent / LEAST_RATE:
                    raise SlowVisitor
                self._ahead -= size
                self._taken.set()
                self._note_progress()
            self.is_whole = message["type"] == "http.response.body" and not message.get("more_body")

    async def _next(self) -> Message | None:
        while not self._unsent:
            self._put.clear()
            await self._put.wait()
        return self._unsent.popleft()

    def _note_progress(self) -> None:
        """Note that something has moved; where too much is held, cut off who is stuck longest."""
        self._moved = self._loop.time()
        if self.held > FEW and sum(each.held for each in _visits) > MOST_HELD:
            stuck = min((each for each in _visits if each.held), key=lambda each: each._moved)
            stuck.cut_off()


def deliver(app: App) -> App:
    """Return the application, which never waits for a visitor and ends when its visitor leaves."""

    async def delivered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        visit = _Visit(receive, send)
        _visits.add(visit)
        _current.set(visit)

        async def answer() -> None:
            await app(scope, visit.receive, visit.put)
            visit.finish()

        leaving = asyncio.ensure_future(visit.listen(has_body=_has_body(scope)))
        work = [asyncio.ensure_future(answer()), asyncio.ensure_future(visit.send_all())]
        answering = asyncio.gather(*work)
        ends: list[asyncio.Future[Any]] = [answering, leaving, visit.cut]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            # To the server, an answer that is whole has been left as well.
            if answering.done() or visit.is_whole:
                with suppress(SlowVisitor):
                    await answering
        finally:
            _visits.discard(visit)
            for each in (*work, *ends):
                each.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await each

    return delivered


def cut_off() -> Callable[[], None]:
    """Return what ends the request that is being answered, before it is whole."""
    visit = _current.get()
    return visit.cut_off if visit else lambda: None


def collect(app: App) -> App:
    """Return the application, which begins when the body of a request is there as a whole."""

    async def collected(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            await send_text(send, 408, f"the form took longer than {BODY_SECONDS:.0f} s to arrive")
            return
        if body is None:
            await send_text(send, 413, f"the form has more than {MOST_BODY:,} bytes")
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive_whole() -> Message:
            return next(messages, None) or await receive()

        await app(scope, receive_whole, send)

    return collected


def _has_body(scope: Scope) -> bool:
    return scope["method"] not in ("GET", "HEAD", "OPTIONS")


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None where it is too large."""
    found, is_more = bytearray(), True
    while is_more and len(found) <= MOST_BODY:
        message = await receive()
        found += message.get("body", b"")
        is_more = message.get("more_body", False)
    return bytes(found) if len(found) <= MOST_BODY else None


def _pieces(message: Message) -> Iterator[Message]:
    """Yield a message as several of at most `PIECE` bytes."""
    body = message.get("body", b"")
    last = max(len(body) - 1, 0) // PIECE * PIECE
    for start in range(0, last, PIECE):
        yield {"type": message["type"], "body": body[start : start + PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if body else message


CHUNK = 64 * 1024
"""What a visitor who stops reading holds in memory, beside the server's buffer of the same size."""

_states: dict[Path, tuple[int, int]] = {}
_NOT_PLAIN = re.compile(r"[^\w.+ -]", re.ASCII)
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """What to send: a status, and which bytes. `length` is 0 where no body is due."""

    status: int
    start: int
    length: int
    headers: tuple[tuple[str, str], ...]


def note_state(path: Path) -> None:
    """Remember the size and time of a file, from which `is_as_it_was` knows whether it changed."""
    _states[path] = _state(path)


def is_as_it_was(path: Path) -> bool:
    """Return whether a file has not been written to since the server started.

    A database that is built anew has another path. One that was overwritten in its place has other
    bytes under the same entity tag, and a download that is resumed would mix both.
    """
    return _states.setdefault(path, _state(path)) == _state(path)


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def disposition(name: str) -> str:
    """Return the header that names a download, whatever characters its name has (RFC 6266, 5)."""
    plain = _NOT_PLAIN.sub("_", name)
    others = "" if plain == name else f"; filename*=UTF-8''{quote(os.fsencode(name), safe='')}"
    return f'attachment; filename="{plain}"{others}'


async def send_file(scope: Scope, send: Send, path: Path, etag: str) -> None:
    """Answer a request with a file that does not change, or with the part that it asks for."""
    headers = {
        key.decode("latin1"): value.decode("latin1") for key, value in scope.get("headers") or ()
    }
    part = choose_part(path.stat().st_size, etag, headers)
    described = (
        *part.headers,
        ("content-type", "application/octet-stream"),
        ("content-disposition", disposition(path.name)),
    )
    start = {
        "type": "http.response.start",
        "status": part.status,
        "headers": [(key.encode("latin1"), value.encode("latin1")) for key, value in described],
    }
    await send(start)
    await _send_part(send, path, part, is_head=scope["method"] == "HEAD")


async def _send_part(send: Send, path: Path, part: Part, *, is_head: bool) -> None:
    left = 0 if is_head else part.length
    with path.open("rb") as file:
        file.seek(part.start)
        while left > 0:
            chunk = await asyncio.to_thread(file.read, min(CHUNK, left))
            if not chunk:
                break
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def choose_part(size: int, etag: str, headers: dict[str, str]) -> Part:
    """Decide which part of a file answers a request with these (lower-case) headers."""
    common = (("etag", etag), ("accept-ranges", "bytes"))
    known = [
        each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")
    ]
    if etag in known or "*" in known:
        return Part(304, 0, 0, common)
    wanted = headers.get("range", "")
    if wanted and headers.get("if-range", etag) == etag:
        span = _span(wanted, size)
        if span == (0, 0):
            refused = ("content-range", f"bytes */{size}")
            return Part(416, 0, 0, (*common, refused, ("content-length", "0")))
        if span is not None:
            start, end = span
            described = ("content-range", f"bytes {start}-{end - 1}/{size}")
            length = ("content-length", str(end - start))
            return Part(206, start, end - start, (*common, described, length))
    return Part(200, 0, size, (*common, ("content-length", str(size))))


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """Return start and end of one range; (0, 0) when there is nothing there.

    `None` stands for a header that is not one plain range, which may be answered with it all.
    """
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    return (start, end) if start < end else (0, 0)
