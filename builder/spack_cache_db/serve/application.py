"""Answers one request after the other in a server process, with the Datasette of
`Served`.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from a2wsgi import ASGIMiddleware

from spack_cache_db.serve.hosts import host_of, is_known_host
from spack_cache_db.serve.metrics import METRICS, Counters, Refusal, class_of, metrics
from spack_cache_db.serve.process import Process
from spack_cache_db.serve.served import Identity, Served
from spack_cache_db.site.log import log_error
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.refusals import refused

Environ = dict[str, Any]
StartResponse = Callable[..., Any]

MOST_WAITING = 50
"""Connections that may wait for a process; with more, the next one is refused at
once.
"""
RETRY_AFTER_SECONDS = 5
LEAVE_SECONDS = 0.5
"""Longest time that a process waits for plugins when it ends."""
BUSY = "The server is busy: try again soon."
NOT_WHOLE = "The database is being replaced: try again soon."
SLOW = "This page took too long and was stopped. Ask for less, or try again later."
OTHER_HOST = (
    "This server is not called {!r}; its owner can allow the name with --allow-host."
)
NO_PATH = "The target of the request is not a path in ASCII that begins with a slash."
BROKEN = "An unexpected error occurred; the server's log has the details."
PLAIN_HEADERS = (("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"))
"""Headers of responses that the site does not make; `refused` adds others."""
_UNACKED = slice(24, 28)
"""The bytes of `tcpi_unacked` in `struct tcp_info` (Linux, `tcp.h`): of a listening
socket, the length of its queue.
"""


class Application:
    """The WSGI application of gunicorn: a Datasette behind the rules of a server.

    Args:
        served: the database.
        listener: the socket on which requests arrive.
        hosts: names that the header `Host` may have, besides those of this machine
            itself; None for any.
        proxy: the address or network of a proxy whose `X-Forwarded-` headers are
            trusted.
        counters: counts the requests of all processes.
        announce: called when this process has opened a new database.

    Attributes:
        is_stuck: whether a statement that cannot be interrupted keeps the event loop.
    """

    def __init__(
        self,
        served: Served,
        listener: socket.socket,
        hosts: frozenset[str] | None,
        proxy: str | None,
        counters: Counters,
        announce: Callable[[Identity | None], None],
    ) -> None:
        self._served = served
        self._listener = listener
        self._hosts = hosts
        self._announce = announce
        self._counters = counters
        self._app: Any = self._datasette
        if proxy is not None:
            self._app = _behind(proxy, self._datasette)
        self.is_stuck = False

        # The request that is being answered, and whether its response is complete.
        self._task: asyncio.Task[None] | None = None
        self._is_whole = False

        # The application of Datasette that was told that it starts, and its lifespan.
        self._living: Any = None
        self._life: asyncio.Future[None] | None = None

    def join(self, process: Process) -> None:
        """Begin to answer in a process; a thread of it runs the event loop of
        Datasette.
        """
        self._process = process
        self._middleware: Any = ASGIMiddleware(self._app)
        self._served.while_opening = process.kept_alive

    def leave(self) -> None:
        """End the life of Datasette in this process, which is about to end."""
        if self._life is None or self.is_stuck:
            return
        ended = asyncio.run_coroutine_threadsafe(
            _cancelled(self._life), self._middleware.loop
        )
        # A request that hangs may keep the event loop.
        with suppress(TimeoutError):
            ended.result(LEAVE_SECONDS)

    def __call__(
        self, environ: Environ, start_response: StartResponse
    ) -> Iterator[bytes]:
        """Yield the parts of a response.

        An exception that leaves this function makes gunicorn close the connection, so
        that nobody takes a part of the rows for all.
        """
        began = time.monotonic()
        has_begun = False
        is_ended = False
        status_sent = 0

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            nonlocal has_begun, status_sent
            has_begun = True
            status_sent = int(status.partition(" ")[0])
            return start_response(status, headers)

        self._process.begin(environ)
        try:
            # Requests that Datasette does not get.
            answer = self._own_answer(environ)
            if answer is not None:
                yield sent(answer, environ, start)
                return

            # a2wsgi expects UTF-8; Datasette reads the path as it was sent
            # (`_datasette`).
            path = unquote(environ["RAW_URI"].partition("?")[0])
            environ["PATH_INFO"] = path.encode("utf-8", "replace").decode("latin-1")
            self._is_whole = False
            for part in self._middleware(environ, start):
                self._process.notify()
                yield part
            if not self._is_whole:
                raise ConnectionResetError(
                    errno.ECONNRESET, "the response is not complete"
                )
        except SystemExit:
            # gunicorn's signal to a process whose request takes too long. The note of
            # the request stays, for the log.
            is_ended = True
            if has_begun:
                raise
            yield sent(_unavailable(SLOW), environ, start)
        except OSError:
            # gunicorn closes the connection.
            raise
        except Exception as error:
            log_error(environ.get("RAW_URI", ""), error)
            if has_begun:
                # For this exception, gunicorn writes no second line of log.
                raise ConnectionResetError(
                    errno.ECONNRESET, "an error occurred"
                ) from error
            yield sent(refused(BROKEN, None, 500), environ, start)
        finally:
            seconds = time.monotonic() - began
            request_class = class_of(self._path(environ))
            self._counters.count_request(request_class, status_sent, seconds)
            # The client may have left before the end.
            if self._task is not None:
                self._middleware.loop.call_soon_threadsafe(self._task.cancel)
            if not is_ended:
                self._process.end()

    def _own_answer(self, environ: Environ) -> PageResponse | None:
        """Return the response to a request that Datasette does not get; None if it gets
        it.
        """
        refusal = self._refusal(environ)
        if refusal is not None:
            return refusal
        is_reading = environ["REQUEST_METHOD"] in ("GET", "HEAD")
        if is_reading and self._path(environ) == METRICS:
            return metrics(self._counters, self._served.path)
        return None

    def _refusal(self, environ: Environ) -> PageResponse | None:
        """Return the response to a request that the server refuses; None if it does
        not.
        """
        # The target of the request is a path, or `*` for OPTIONS. An address as in
        # `GET http://host/path` would be another path for Datasette.
        target = environ.get("RAW_URI", "")
        is_options = target == "*" and environ["REQUEST_METHOD"] == "OPTIONS"
        is_path = target.startswith("/") and target.isascii()
        if not (is_path or is_options):
            self._counters.count_refusal(Refusal.ADDRESS)
            return refused(NO_PATH, None)

        # The host is this machine, or a name that the owner allows.
        host = host_of(environ.get("HTTP_HOST", ""))
        if not is_known_host(host, self._hosts):
            self._counters.count_refusal(Refusal.HOST)
            return refused(OTHER_HOST.format(host[:200]), None, 421)

        # Too many requests wait, or the database is not complete.
        if waiting(self._listener) > MOST_WAITING:
            self._counters.count_refusal(Refusal.BUSY)
            return _unavailable(BUSY)
        if self._served.refresh():
            self._announce(self._served.identity)
        if self._served.app is None:
            self._counters.count_refusal(Refusal.NOT_WHOLE)
            return _unavailable(NOT_WHOLE)
        return None

    def _path(self, environ: Environ) -> str:
        """Return the path of a request below the base of the site."""
        path: str = environ.get("RAW_URI", "").partition("?")[0]
        base = self._served.base
        # A proxy may pass the base on or cut it off.
        if not path.startswith(base):
            return path
        # The base ends with the slash with which the path begins.
        return path[len(base) - 1 :]

    async def _datasette(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request, with the path as it was sent, which a2wsgi leaves out."""
        self._task = asyncio.current_task()
        path, _, _ = scope["wsgi_environ"]["RAW_URI"].partition("?")
        scope = {**scope, "raw_path": path.encode("ascii")}

        async def send_and_note_end(message: dict[str, Any]) -> None:
            is_body = message["type"] == "http.response.body"
            if is_body and not message.get("more_body"):
                self._is_whole = True
            await send(message)

        app = self._served.app
        if app is not self._living:
            await self._begin_life(app)
        await app(scope, receive, send_and_note_end)

    async def _begin_life(self, app: Any) -> None:
        """Tell an application that it starts (ASGI's lifespan), which plugins may wait
        for.
        """
        if self._life is not None:
            self._life.cancel()
        has_started = asyncio.Event()
        messages = [{"type": "lifespan.startup"}]

        async def receive() -> dict[str, Any]:
            if not messages:
                # There is no other message: the lifespan ends when it is cancelled.
                await asyncio.Event().wait()
            return messages.pop()

        async def send(_: dict[str, Any]) -> None:
            has_started.set()

        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._life = asyncio.ensure_future(app(scope, receive, send))
        start = asyncio.ensure_future(has_started.wait())
        # An application that knows no lifespan raises an exception.
        await asyncio.wait((self._life, start), return_when=asyncio.FIRST_COMPLETED)
        start.cancel()
        self._living = app


def sent(answer: PageResponse, environ: Environ, start: StartResponse) -> bytes:
    """Begin a response, and return its body, which HEAD does not have."""
    status = f"{answer.status} {HTTPStatus(answer.status).phrase}"
    headers = [*answer.headers, ("cache-control", "no-store"), *PLAIN_HEADERS]
    start(status, headers)
    return b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body


async def _cancelled(task: asyncio.Future[None]) -> None:
    """Cancel a task, and return when it has ended."""
    task.cancel()
    await asyncio.wait((task,))


def _behind(proxy: str, app: Any) -> Any:
    """Return an application that believes the headers of a proxy."""
    # Most servers do not need uvicorn, whose import takes longer than most pages.
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    return ProxyHeadersMiddleware(app, trusted_hosts=proxy)


def _unavailable(sentence: str) -> PageResponse:
    """Return a response that asks the client to try again."""
    answer = refused(sentence, None, 503)
    retry_after = ("retry-after", str(RETRY_AFTER_SECONDS))
    return answer._replace(headers=(*answer.headers, retry_after))


def waiting(listener: socket.socket) -> int:
    """Return the number of connections that wait for a process; 0 if the system does
    not say.
    """
    if not hasattr(socket, "TCP_INFO") or listener.family == socket.AF_UNIX:
        return 0
    try:
        status = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _UNACKED.stop)
    except OSError:
        return 0
    return int.from_bytes(status[_UNACKED], sys.byteorder)
