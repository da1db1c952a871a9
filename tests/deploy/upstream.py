"""A tiny server in place of the site's: it records requests, and fails on demand."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.deploy.tools import Quiet, listening
from tests.processes import PATIENCE


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that reached the server; the names of headers are in small letters."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Upstream:
    """The server and its requests; `gate` releases /wait, `sent` says that /large is
    sent.
    """

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    sent: threading.Event = field(default_factory=threading.Event)
    is_waiting: bool = False
    stop: Callable[[], None] = lambda: None

    def targets(self) -> list[str]:
        """Return the targets of requests, without those that ask whether it is up."""
        return [
            request.target
            for request in self.seen
            if request.target != "/-/versions.json"
        ]


LARGE = 20_000_000
"""How long the answers to /large are: more than the buffers of the sockets hold."""

ANSWERS = {
    "/missing": (404, "no-store"),
    "/private": (200, "private, no-store"),
    "/broken": (500, "no-store"),
}


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Run the server on a free port while the context lasts."""
    state = Upstream()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            state.seen.append(Seen(self.command, self.path, headers, body))
            if self.path.startswith("/die"):
                self.close_connection = True
                return
            if self.path.startswith("/wait") or state.is_waiting:
                state.gate.wait(PATIENCE)
            with suppress(ConnectionError):
                self.answer()
            if self.path.startswith("/large"):
                state.sent.set()

        def do_POST(self) -> None:
            self.do_GET()

        def do_OPTIONS(self) -> None:
            state.seen.append(Seen(self.command, self.path, {}, b""))
            self.send_response(204)
            self.end_headers()

        def answer(self) -> None:
            status, caching = ANSWERS.get(self.path, (200, "public, max-age=3600"))
            body = b"x" * LARGE if self.path.startswith("/large") else self.text()
            self.send_response(status)
            self.send_header("Cache-Control", caching)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Set-Cookie", "visitor=1")
            self.send_header("Vary", "Accept, Accept-Encoding, User-Agent")
            self.end_headers()
            self.wfile.write(body)

        def text(self) -> bytes:
            text = f"{self.path} from {state.port}, number {len(state.seen)}"
            return f"{text}{' ' * 1_000}".encode()

    with ExitStack() as stack:
        state.port = stack.enter_context(listening(Handler))
        stack.callback(state.gate.set)
        state.stop = stack.close
        yield state
