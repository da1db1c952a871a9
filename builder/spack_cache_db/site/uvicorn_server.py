"""The server in one process: uvicorn, with bounds on connections, and ending on time.

uvicorn waits for ever for a request that was begun and for a visitor who does not read, and its
`limit_concurrency` answers 503 to everybody as soon as idle connections are many. Here a connection
without a request under way is closed in the end, the longest idle one first when there are too
many, and one whose visitor reads nothing is cut off.

What several processes (`gunicorn_server`) have in common with one stands here as well.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from spack_cache_db.site.middleware import App

GRACE_SECONDS = 3
"""So long a server that was told to end waits for the answers under way."""

END_SECONDS = 4.5
"""So long after it was told to, a process ends by force: one call into SQLite may take longer."""

MOST_CONNECTIONS = 500
"""More than all queues hold together, fewer than the usual limit of 1,024 open files."""

REQUEST_SECONDS = 20.0
"""So long a connection may take to send its next request whole."""

ARRIVAL_SECONDS = 0.5
"""So long a server that ends waits for the first request of a connection that it has accepted."""

LINGER_SECONDS = 1.0
"""So long what still arrives of a refused request is read: a reset would take back the refusal."""

_END_OF_HEAD = b"\r\n\r\n"

_REFUSAL = b"This is not a valid HTTP request, or its head is longer than 64 kB.\n"
_REFUSED = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"cache-control: no-store\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_REFUSAL), _REFUSAL)

STALL_SECONDS = 30.0
"""So long a visitor may leave what was sent unread."""


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with bounds on idle, half-open and stalled connections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle_since: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for the connection, and wait for its first request."""
        others = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        super().connection_made(transport)
        self._wait_for_request()
        if len(others) >= MOST_CONNECTIONS:
            idle = [each for each in others if each.idle_since is not None]
            longest = min(idle, key=lambda each: each.idle_since or 0, default=self)
            longest.cut_off()

    def data_received(self, data: bytes) -> None:
        """Read on; once a request is whole, it may take its time to be answered.

        A body in chunks is refused by the middleware and not looked at: it may have as many of them
        as bytes.
        """
        if self._has_chunks() or self._is_refused:
            return
        head, end, rest = data.partition(_END_OF_HEAD)
        super().data_received(head + end)
        if self._has_chunks():
            self.flow.pause_reading()
        elif rest:
            super().data_received(rest)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
            if self.conn.their_state is h11.SEND_BODY:
                # The middleware bounds how long a body takes; until it is whole, others come first.
                self.idle_since = self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and close the connection when the refusal can have arrived."""
        if self._is_refused:
            return
        self._is_refused = True
        self.transport.write(_REFUSED)
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the answer to be read."""
        if self._has_chunks():
            self.cut_off()
            return
        self._wait_for_request()
        super().on_response_complete()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def pause_writing(self) -> None:
        """Wait for the visitor to read on, but not for ever."""
        super().pause_writing()
        self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the visitor reads."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection because the server ends, after a request that is on its way."""
        has_asked = self.cycle is not None
        if has_asked:
            super().shutdown()
        else:
            # Closed now, it would be reset in the hands of a visitor who has just been let in.
            self.loop.call_later(ARRIVAL_SECONDS, super().shutdown)

    def cut_off(self) -> None:
        """Close the connection without waiting for a visitor who does not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            # What was sent last may still be on its way, and an abort would call it back.
            self.transport.close()

    def _has_chunks(self) -> bool:
        """Return whether the request under way has a body in chunks."""
        return self.cycle is not None and any(
            name == b"transfer-encoding" for name, _ in self.cycle.scope["headers"]
        )

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        self.idle_since = self.loop.time()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.cut_off)

    def _stop_waiting(self) -> None:
        self.idle_since = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def http_settings(proxy: str | None) -> dict[str, Any]:
    """Return uvicorn's settings.

    Args:
        proxy: the address of the proxy whose `X-Forwarded-Proto` and `X-Forwarded-For` are
            believed. uvicorn would believe everybody's on this machine.
    """
    return {
        "http": BoundedProtocol,
        "ws": "none",
        "lifespan": "on",
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "proxy_headers": proxy is not None,
        "forwarded_allow_ips": proxy,
    }


Reload = Callable[[], bool]
"""Called for SIGHUP: whether to end, so that the server begins anew with what is there now."""


class _Server(Server):
    is_over = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        last = threading.Timer(END_SECONDS, os._exit, [0])
        last.daemon = True
        last.start()


def run_here(
    app: App, listener: socket.socket, proxy: str | None = None, reload: Reload | None = None
) -> bool:
    """Serve in this process until a signal ends it.

    Args:
        app: the application.
        listener: the socket on which it listens.
        proxy: as in `http_settings`.
        reload: what SIGHUP asks; without it SIGHUP ends the server, as SIGINT and SIGTERM do.

    Returns:
        Whether the server was told to end, and not to begin anew.
    """
    server = _Server(Config(app, log_level="info", **http_settings(proxy)))
    quieten_logs()

    def hang_up(sig: int, frame: FrameType | None) -> None:
        if reload is None:
            server.handle_exit(sig, frame)
        elif reload():
            server.is_over, server.should_exit = False, True

    # uvicorn raises a signal again when it has ended; what has to be tidied up comes after that.
    with hangup_ignored_as_before():
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, server.handle_exit)
        signal.signal(signal.SIGHUP, hang_up)
    server.run(sockets=[listener])
    return server.is_over


@contextmanager
def hangup_ignored_as_before() -> Iterator[None]:
    """Let handlers be set; SIGHUP stays ignored if it was (`nohup`)."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    yield
    if is_ignored:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def quieten_logs() -> None:
    """Keep tracebacks out of the log that nobody can do anything about.

    Those of requests that were cancelled at the end, and of the log itself: whoever read standard
    output may have left.
    """
    logging.raiseExceptions = False
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
