"""Servers that `deploy/swap.sh` can restart: each shows the database that it found at its start."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.deploy.tools import Quiet, listening

BROKEN = b"broken"
"""A server that starts with a database of these bytes answers 500."""


@dataclass
class Fleet:
    """Servers by port: what each read at its start, and the restarts with what drained then."""

    folder: Path
    shown: dict[int, bytes] = field(default_factory=dict)
    restarts: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    control: int = 0

    @property
    def ports(self) -> list[int]:
        """The servers' ports, in the order of their restarts."""
        return [*self.shown]

    def restart(self, port: int) -> None:
        """Start a server anew."""
        marks = (self.folder / "run" / "draining").glob("*")
        self.restarts.append((port, tuple(sorted(each.name for each in marks))))
        self.shown[port] = (self.folder / "current" / "spack-cache.db").read_bytes()


@contextmanager
def fleet(folder: Path, count: int = 2) -> Iterator[Fleet]:
    """Run the servers, and what restarts them, while the context lasts."""
    found = Fleet(folder)

    class Page(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            port = self.connection.getsockname()[1]
            data = found.shown[port]
            self.send_response(500 if data == BROKEN else 200)
            self.end_headers()
            self.wfile.write(data)

    class Control(Page, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.restart(int(self.path.lstrip("/")))
            self.send_response(200)
            self.end_headers()

    with ExitStack() as stack:
        for _ in range(count):
            found.shown[stack.enter_context(listening(Page))] = b""
        found.control = stack.enter_context(listening(Control))
        yield found
