"""The server in one process: uvicorn, as Datasette's own `serve` runs it, but ending on time.

What several processes (`workers`) have in common with it stands here as well.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from uvicorn import Config, Server

from spack_cache_db.site.protocol import BoundedProtocol
from spack_cache_db.site.wrapper import App

GRACE_SECONDS = 3
"""So long a server that was told to end waits for the answers under way."""

END_SECONDS = 4.5
"""So long after it was told to, a process ends by force: one call into SQLite may take longer."""

HTTP: dict[str, Any] = {
    "http": BoundedProtocol,
    "ws": "none",
    "lifespan": "on",
    "timeout_graceful_shutdown": GRACE_SECONDS,
}


class _Server(Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        last = threading.Timer(END_SECONDS, os._exit, [0])
        last.daemon = True
        last.start()


def run_here(app: App, listener: socket.socket) -> None:
    """Serve in this process until SIGINT, SIGTERM or SIGHUP."""
    server = _Server(Config(app, log_level="info", **HTTP))
    quieten_logs()
    # uvicorn raises a signal again when it has ended; what has to be tidied up comes after that.
    with hangup_ignored_as_before():
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, server.handle_exit)
    server.run(sockets=[listener])


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
