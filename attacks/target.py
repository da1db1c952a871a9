"""The server under attack: a real `spack-cache-db serve`, and the checks of its
responses.
"""

from __future__ import annotations

import hashlib
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote_plus

from benchmarks import processes
from benchmarks.server import (
    becomes_idle,
    free_port,
    start,
    start_datasette,
    stop,
    wait_until_up,
)
from spack_cache_db.site.http.checks import LONGEST_ADDRESS

MOST_MEGABYTES = 512
"""Memory that no process of the server may take."""
SHORT = "(),'*/:=<>|-@[];"
"""Characters that need no encoding in a query string, so that more fits into an
address.
"""
POLITE_NETWORK = "198.51"
STRANGER_NETWORK = "203.0"
"""Another network, because nginx would take two visitors of one address for one."""
PATIENCE = 60
"""Seconds after which a response counts as missing."""
SEGMENT = 1_400
"""Bytes of a packet, as on networks: on loopback the kernel buffers megabytes."""
PIECE = 65_536
"""Bytes that are read from a connection at once."""
FORM = {"content-type": "application/x-www-form-urlencoded"}
"""The header of a request with a form."""
LEAKS = ("site-packages", "Traceback (most", "root:x:0")
"""Words that tell a visitor about the machine."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, and the server's processor time for it; status 0 means no
    response.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cpu_seconds: float = 0.0

    def slowness(self, seconds: float) -> list[str]:
        """Return a fault if the response took more processor time than this."""
        if self.cpu_seconds > seconds:
            return [f"{self.cpu_seconds:.1f} s of CPU"]
        return []


class Target:
    """A server of a file that must not change."""

    def __init__(
        self, file: Path, pid: int, port: int, *, plain: bool = False, visitor: str = ""
    ) -> None:
        """Remember the state of the file.

        Args:
            file: the database that is served.
            pid: the server's process.
            port: the port of the server, or of a proxy before it.
            plain: whether Datasette serves the file without this program's defences.
            visitor: the address that all requests come from; by default, each comes
                from another one.
        """
        self.port = port
        self.pid = pid
        self._is_plain = plain
        self._visitor = visitor
        self._file = file
        self._state_before = self._state()

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self._file.parent

    @property
    def visitor(self) -> str:
        """The address that the next request comes from, if nginx is asked."""
        return self._visitor or any_address(POLITE_NETWORK)

    def behind_proxy(self, port: int) -> Target:
        """Return the same server behind a proxy on another port."""
        return Target(self._file, self.pid, port)

    def of_one_visitor(self) -> Target:
        """Return the same server, asked by one visitor, who has one address."""
        visitor = any_address(STRANGER_NETWORK)
        return Target(self._file, self.pid, self.port, visitor=visitor)

    def ask(
        self,
        address: str,
        method: str = "GET",
        body: bytes | None = None,
        **headers: str,
    ) -> Reply:
        """Request a URL on a new connection, and measure its processor time."""
        cpu_before = self.cpu_seconds()
        reply = self.ask_unmeasured(address, method, body, **headers)
        spent = self.cpu_seconds() - cpu_before
        return Reply(reply.status, reply.headers, reply.body, spent)

    def ask_unmeasured(
        self,
        address: str,
        method: str = "GET",
        body: bytes | None = None,
        **headers: str,
    ) -> Reply:
        """Request a URL on a new connection."""
        all_headers = {"X-Visitor": self.visitor, **headers}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, address, body=body, headers=all_headers)
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, fields, response.read())
        except (OSError, HTTPException):
            return Reply(0, {}, b"")
        finally:
            connection.close()

    def send(self, data: bytes, *, is_all: bool = False) -> bytes:
        """Send bytes on a new connection, and return what the server answers.

        Args:
            data: what is sent.
            is_all: whether the server is told that no more bytes follow.
        """
        answer = b""
        address = ("127.0.0.1", self.port)
        with (
            socket.create_connection(address, timeout=PATIENCE) as visitor,
            suppress(OSError),
        ):
            visitor.sendall(data)
            if is_all:
                visitor.shutdown(socket.SHUT_WR)
            while part := visitor.recv(PIECE):
                answer += part
        return answer

    def visit(self, *lines: str, buffer: int | None = None) -> socket.socket:
        """Return a connection that has sent the beginning of a request.

        Args:
            lines: the first line of the request, its fields, and, if its head is
                complete, an empty line and the body.
            buffer: the bytes that the visitor's side takes without reading them.
        """
        visitor = socket.socket()
        visitor.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        if buffer is not None:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        visitor.settimeout(PATIENCE)
        visitor.connect(("127.0.0.1", self.port))
        fields = ["Host: localhost", f"X-Visitor: {self.visitor}"]
        text = "\r\n".join([lines[0], *fields, *lines[1:]])
        visitor.sendall(text.encode())
        return visitor

    def cpu_seconds(self) -> float:
        """Return the processor time of all its processes, ended ones too."""
        return processes.cpu_seconds(self.pid)

    def peak_megabytes(self) -> float:
        """Return the largest memory that one of its processes has used."""
        return processes.peak_bytes(self.pid) / 2**20

    def resident_megabytes(self) -> float:
        """Return the memory of all its processes together; shared memory counts
        once.
        """
        return processes.family_bytes(self.pid) / 2**20

    def reply_faults(self, reply: Reply) -> list[str]:
        """Return the faults of a response: signs of bugs, or data about the machine."""
        faults = []
        if reply.status == 0:
            faults.append("no answer")
        if reply.status >= 500 and reply.status != 503:
            faults.append(f"status {reply.status}")
        is_kept = "no-store" not in reply.headers.get("cache-control", "")
        # Datasette alone never sends no-store, so every request would count as a fault.
        if reply.status >= 400 and is_kept and not self._is_plain:
            faults.append(f"a {reply.status} that caches keep")
        for word in (str(self._file.parent), *LEAKS):
            if word.encode() in reply.body:
                faults.append(f"the answer tells {word!r}")
        return faults

    def server_faults(self) -> list[str]:
        """Return the faults of the server itself: its file, first page and memory."""
        faults = []
        if self._state() != self._state_before:
            faults.append("the file or its folder has changed")
        first_page = self.ask("/")
        if first_page.status != 200:
            faults.append(f"the first page is a {first_page.status}")
        peak = self.peak_megabytes()
        if peak > MOST_MEGABYTES:
            faults.append(f"a process held {peak:.0f} MB")
        return faults

    def idle(self, within: float = PATIENCE) -> bool:
        """Return whether the server becomes idle."""
        return becomes_idle(self.cpu_seconds, within)

    def _state(self) -> tuple[str, list[str]]:
        """Return the checksum of the file, and the names of the files in its folder."""
        digest = hashlib.sha256(self._file.read_bytes()).hexdigest()
        names = sorted(path.name for path in self._file.parent.iterdir())
        return digest, names


def any_address(network: str) -> str:
    """Return a random address of a visitor in a network, such as `198.51`."""
    return f"{network}.{random.randrange(256)}.{random.randrange(256)}"


def field(name: str, value: str) -> str:
    """Return a field of a query string with as little encoding as possible."""
    return f"{name}={quote_plus(value, safe=SHORT, errors='surrogatepass')}"


def status_of(answer: bytes) -> str:
    """Return the status in the first line of an answer, such as `404`."""
    return answer[9:12].decode("latin-1")


def require_short(address: str) -> str:
    """Return an address.

    Raises:
        ValueError: the server refuses it because of its length alone.
    """
    if len(address) > LONGEST_ADDRESS:
        raise ValueError(
            f"{address[:80]} has {len(address):,} characters: it would test nothing"
        )
    return address


@contextmanager
def serving(
    file: Path, *, plain: bool = False, is_proxied: bool = True
) -> Iterator[Target]:
    """Serve a file while the context lasts.

    Args:
        file: the database.
        plain: whether Datasette serves it without this program's plugin and its
            defences.
        is_proxied: whether a proxy may be before the server, which then takes any host.
    """
    port = free_port()
    process = (
        start_datasette(file, port)
        if plain
        else start(file, port, is_proxied=is_proxied)
    )
    try:
        wait_until_up(port, process)
        target = Target(file, process.pid, port, plain=plain)
        # The server compiles templates when its first process answers already: this
        # time is not that of the first attack.
        target.idle()
        yield target
    finally:
        stop(process)
