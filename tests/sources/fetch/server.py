"""A real HTTP server that behaves as badly as it is told, one request at a time.

It serves files from memory as a good server does: with strong tags and conditions. A
test
gives a path a list of other behaviours; each answers one request, and then it is good
again.
"""

import hashlib
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """A request that came: its path and headers."""

    path: str
    headers: dict[str, str]


Answer = Callable[["Handler", bytes], None]
"""Answers a request for a file with these bytes; they are empty if there is no such
file.
"""


@dataclass
class Site:
    """Files, behaviours and requests of a server."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))
    always: dict[str, Answer] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def paths(self, ending: str = "") -> list[str]:
        """Return the paths that were asked for, in order, that end so."""
        return [
            request.path for request in self.requests if request.path.endswith(ending)
        ]

    def secrets(self) -> dict[str, str]:
        """Return the headers with a login that came."""
        headers = (
            pair for request in self.requests for pair in request.headers.items()
        )
        return {
            name: value
            for name, value in headers
            if name in ("authorization", "cookie") or name.startswith("x-amz-")
        }

    def serve(self, files: dict[str, bytes]) -> None:
        """Serve these files, and no others."""
        self.files = {f"/{path}": data for path, data in files.items()}


class Handler(BaseHTTPRequestHandler):
    """Answers one request after the other, as the site says."""

    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        """Answer a request."""
        site = self.site
        path = self.path.partition("?")[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        site.requests.append(Request(self.path, headers))
        data = site.files.get(path, b"")
        if site.answers.get(path):
            answer = site.answers[path].pop(0)
        elif path in site.always:
            answer = site.always[path]
        elif path in site.files:
            answer = good
        else:
            answer = missing
        answer(self, data)

    def send(self, status: int, data: bytes, **headers: object) -> None:
        """Send a response; a keyword `content_length` is the header Content-Length."""
        names = {
            name.replace("_", "-").title(): value for name, value in headers.items()
        }
        self.send_response(status)
        for name, value in ({"Content-Length": len(data)} | names).items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def cut_off(self) -> None:
        """Close the connection as a server that dies."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def tag(data: bytes) -> str:
    """Return the strong tag of a file."""
    return f'"{hashlib.md5(data).hexdigest()}"'


def good(handler: Handler, data: bytes) -> None:
    """Answer as a good server: tags, conditions."""
    etag = tag(data)
    if handler.headers.get("If-None-Match") == etag:
        handler.send(304, b"", etag=etag, content_length=None)
        return
    handler.send(200, data, etag=etag)


def missing(handler: Handler, data: bytes) -> None:
    """Answer that there is nothing."""
    handler.send(404, b"no such file\n")


def status(number: int, **headers: object) -> Answer:
    """Answer with a status."""
    return lambda handler, data: handler.send(number, b"", **headers)


def drop(handler: Handler, data: bytes) -> None:
    """Close the connection without an answer."""
    handler.cut_off()


def cut(size: int) -> Answer:
    """Close the connection after so many bytes of what a good server sends."""

    def answer(handler: Handler, data: bytes) -> None:
        handler.send(200, data[:size], etag=tag(data), content_length=len(data))
        handler.cut_off()

    return answer


def instead(body: bytes, **headers: object) -> Answer:
    """Answer with other bytes."""
    return lambda handler, data: handler.send(200, body, **headers)


def wants(*logins: str, challenge: str) -> Answer:
    """Return the answer of a registry that takes these headers, and asks others for a
    login.
    """

    def answer(handler: Handler, data: bytes) -> None:
        if handler.headers.get("Authorization", "").startswith(logins):
            handler.send(200, data)
        else:
            handler.send(401, b"", www_authenticate=challenge)

    return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, but for clients that leave: those may do so at any
        time.
        """
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve(files: dict[str, bytes] | None = None) -> Iterator[Site]:
    """Run a server of files on a free port while the context lasts."""
    site = Site()
    site.serve(files or {})
    handler = type("OneSite", (Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
