"""Answers one request after the other in a server process.

The server refuses some requests itself, and answers `/-/metrics`. All others go to the
Datasette of `Served`.
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
from spack_cache_db.serve.lifespan import Lifespan
from spack_cache_db.serve.metrics import METRICS, Counters, Refusal, class_of, metrics
from spack_cache_db.serve.process import Process
from spack_cache_db.serve.served import Identity, Served
from spack_cache_db.site.log import log_error
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.refusals import refused

Environ = dict[str, Any]
"""WSGI's facts of a request; gunicorn adds `RAW_URI`, its target as it was sent."""

StartResponse = Callable[..., Any]
"""WSGI's function that begins a response with its status and headers."""

MOST_WAITING = 50
"""Connections that may wait for a process; with more, the next one is refused at
once.
"""

RETRY_AFTER_SECONDS = 5
"""When a client may try again after status 503."""

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

    It is made before the processes are forked, and `join` is called in each of them.

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
        self._lifespan = Lifespan()
        self.is_stuck = False

        # The request that Datasette answers, whether its response is complete, and the
        # exception that ended it.
        self._task: asyncio.Task[None] | None = None
        self._is_whole = False
        self._error: Exception | None = None

    def join(self, process: Process) -> None:
        """Begin to answer in a process."""
        self._process = process
        # It starts a thread, which runs the event loop of Datasette.
        self._middleware: Any = ASGIMiddleware(self._app)
        self._served.while_opening = process.kept_alive

    def leave(self) -> None:
        """Tell Datasette that it ends, because this process is about to end."""
        if self.is_stuck or not self._lifespan.has_begun:
            return
        ended = asyncio.run_coroutine_threadsafe(
            self._lifespan.end(), self._middleware.loop
        )
        # A request that hangs may keep the event loop.
        with suppress(TimeoutError):
            ended.result(LEAVE_SECONDS)

    def __call__(
        self, environ: Environ, start_response: StartResponse
    ) -> Iterator[bytes]:
        """Yield the parts of a response.

        An exception that leaves this function makes gunicorn close the connection, so
        that the client knows that a part is missing.
        """
        began = time.monotonic()
        start = _Start(start_response)
        is_ended = False
        self._process.begin(environ)
        try:
            answer = self._own_answer(environ)
            if answer is not None:
                yield sent(answer, environ, start)
            else:
                yield from self._parts_of_datasette(environ, start)
        except SystemExit:
            # gunicorn's signal to a process whose request takes too long. The note of
            # the request stays, for the log.
            is_ended = True
            if start.has_begun:
                raise
            yield sent(_unavailable(SLOW), environ, start)
        except OSError:
            # gunicorn closes the connection.
            raise
        except Exception as error:
            log_error(environ.get("RAW_URI", ""), error)
            if start.has_begun:
                # For this exception, gunicorn writes no second line of log.
                raise ConnectionResetError(
                    errno.ECONNRESET, "an error occurred"
                ) from error
            yield sent(refused(BROKEN, None, 500), environ, start)
        finally:
            seconds = time.monotonic() - began
            request_class = class_of(self._path(environ))
            self._counters.count_request(request_class, start.status, seconds)
            # If the client has left before the end, Datasette still answers.
            if self._task is not None:
                self._middleware.loop.call_soon_threadsafe(self._task.cancel)
            if not is_ended:
                self._process.end()

    def _own_answer(self, environ: Environ) -> PageResponse | None:
        """Return the response to a request that Datasette does not get.

        None for all other requests.
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

        # Too many requests wait.
        if waiting(self._listener) > MOST_WAITING:
            self._counters.count_refusal(Refusal.BUSY)
            return _unavailable(BUSY)

        # The database is not complete. A new one is opened first.
        if self._served.refresh():
            self._announce(self._served.identity)
        if self._served.app is None:
            self._counters.count_refusal(Refusal.NOT_WHOLE)
            return _unavailable(NOT_WHOLE)
        return None

    def _path(self, environ: Environ) -> str:
        """Return the path of a request below the base of the site.

        With the base `/cache/`, it is `/package/zlib` for `/cache/package/zlib`.
        """
        path: str = environ.get("RAW_URI", "").partition("?")[0]
        base = self._served.base
        # A proxy may pass the base on or cut it off.
        if not path.startswith(base):
            return path
        # The base ends with the slash with which the path begins.
        return path[len(base) - 1 :]

    def _parts_of_datasette(
        self, environ: Environ, start: StartResponse
    ) -> Iterator[bytes]:
        """Yield the parts of Datasette's response.

        Raises:
            Exception: any exception of Datasette.
            ConnectionResetError: Datasette has ended before the response was complete.
        """
        # a2wsgi expects the path in UTF-8, decoded. It is not used: `_datasette` gives
        # Datasette the path as it was sent.
        path = unquote(environ["RAW_URI"].partition("?")[0])
        environ["PATH_INFO"] = path.encode("utf-8", "replace").decode("latin-1")
        self._is_whole = False
        self._error = None
        for part in self._middleware(environ, start):
            # gunicorn counts the time since the last notice.
            self._process.notify()
            yield part
        if not self._is_whole:
            # a2wsgi does not always raise it: not if Datasette has ended before a2wsgi
            # looks for the next message.
            if self._error is not None:
                raise self._error
            message = "the response is not complete"
            raise ConnectionResetError(errno.ECONNRESET, message)

    async def _datasette(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request: the ASGI application that a2wsgi calls."""
        self._task = asyncio.current_task()
        path, _, _ = scope["wsgi_environ"]["RAW_URI"].partition("?")
        scope = {**scope, "raw_path": path.encode("ascii")}

        async def send_and_note_end(message: dict[str, Any]) -> None:
            is_body = message["type"] == "http.response.body"
            if is_body and not message.get("more_body"):
                self._is_whole = True
            await send(message)

        app = self._served.app
        try:
            await self._lifespan.begin(app)
            await app(scope, receive, send_and_note_end)
        except Exception as error:
            self._error = error
            raise


class _Start:
    """WSGI's `start_response` for one request, which notes the status.

    Attributes:
        status: the status of the response; 0 before it has begun.
    """

    def __init__(self, start_response: StartResponse) -> None:
        self._start_response = start_response
        self.status = 0

    @property
    def has_begun(self) -> bool:
        """Whether a response has begun, so that no other one can be sent."""
        return self.status != 0

    def __call__(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Any:
        """Begin the response, with a status such as `200 OK`."""
        number, _, _ = status.partition(" ")
        self.status = int(number)
        return self._start_response(status, headers)


def sent(answer: PageResponse, environ: Environ, start: StartResponse) -> bytes:
    """Begin a response, and return its body, which HEAD does not have."""
    status = f"{answer.status} {HTTPStatus(answer.status).phrase}"
    headers = [*answer.headers, ("cache-control", "no-store"), *PLAIN_HEADERS]
    start(status, headers)
    return b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body


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
    """Return the number of connections that wait for a process.

    0 if the system does not say.
    """
    if not hasattr(socket, "TCP_INFO") or listener.family == socket.AF_UNIX:
        return 0
    try:
        status = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _UNACKED.stop)
    except OSError:
        return 0
    return int.from_bytes(status[_UNACKED], sys.byteorder)
