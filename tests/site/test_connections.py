"""Connections hold the server for a bounded time: a real uvicorn with short times."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import h11
import pytest
from uvicorn import Config, Server

from spack_cache_db.site import uvicorn_server as protocol

pytestmark = [pytest.mark.slow, pytest.mark.once]

PATIENCE = 60
BIG = b"x" * 20_000_000
MOST = 5


async def big_or_small(scope: Any, receive: Any, send: Any) -> None:
    """`/big` is larger than what the system takes in unread; `/form` waits for a whole body."""
    while scope["path"] == "/form" and (await receive()).get("more_body"):
        pass
    body = BIG if scope["path"] == "/big" else b"small"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(body), 65536):
        piece = body[start : start + 65536]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server in a thread, with short times and room for a few connections."""
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "STALL_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", MOST)
    config = Config(
        big_or_small, http=protocol.BoundedProtocol, ws="none", lifespan="off", log_level="error"
    )
    server, listener = Server(config), socket.create_server(("127.0.0.1", 0))
    number = listener.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    yield number
    server.should_exit = True
    thread.join(PATIENCE)


def connect(port: int, *sent: bytes, buffer: int | None = None) -> socket.socket:
    """Connect and send something."""
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(PATIENCE)
    connection.connect(("127.0.0.1", port))
    for each in sent:
        connection.sendall(each)
    return connection


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that comes until the connection is closed or reset."""
    parts = []
    try:
        while part := connection.recv(1 << 20):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n",
    ],
)
def test_a_connection_without_a_whole_request_is_closed(port: int, begun: bytes) -> None:
    """Nothing, half a request, half a body, half a second request: the time is bounded."""
    with closing(connect(port, begun)) as connection:
        assert read_to_end(connection).count(b"200 OK") == begun.count(b"\r\n\r\n")


@pytest.mark.parametrize("head", [b"GET /?" + b"a" * 1_000_000, b"nonsense\r\n\r\n"])
def test_what_is_no_request_is_refused(port: int, head: bytes) -> None:
    """The refusal arrives even if more was sent than is read, and the connection is closed."""
    with closing(connect(port, head)) as connection:
        refusal = read_to_end(connection)

    assert refusal.startswith(b"HTTP/1.1 400 ")
    assert refusal.endswith(b"longer than 64 kB.\n")


def test_one_byte_after_another_is_no_way_to_stay(port: int) -> None:
    """Who sends a byte now and then is cut off as well."""
    with closing(connect(port, b"GET / HTTP/1.1\r\nHost: ")) as connection:
        connection.settimeout(0.05)
        with pytest.raises(ConnectionError):
            for _ in range(int(PATIENCE / 0.05)):
                connection.sendall(b"x")
                try:
                    if not connection.recv(1):
                        raise ConnectionError
                except TimeoutError:
                    continue


def test_who_reads_nothing_is_cut_off(port: int) -> None:
    """A visitor who stops reading loses the connection, and with it what was to be sent."""
    with closing(connect(port, b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n", buffer=4096)) as stalled:
        while connections_open(port) > 0:
            threading.Event().wait(0.1)
        assert len(read_to_end(stalled)) < len(BIG)


def connections_open(port: int) -> int:
    """Return how many connections the server's side holds, from the system's own table."""
    local = f"0100007F:{port:04X}"
    table = Path("/proc/net/tcp").read_text(encoding="ascii")
    rows = [line.split() for line in table.splitlines()[1:]]
    established = "01"
    return sum(row[1] == local and row[3] == established for row in rows)


def test_who_reads_gets_all(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor who reads gets the whole answer, and is no idle connection meanwhile."""
    monkeypatch.setattr(protocol, "STALL_SECONDS", PATIENCE)
    request = b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with closing(connect(port, request)) as connection:
        assert read_to_end(connection).endswith(BIG)


def test_the_longest_idle_one_makes_room(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many connections the one that has waited longest goes, and the new one is served."""
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 2 * PATIENCE)
    with ExitStack() as stack:
        idle = [
            stack.enter_context(closing(connect(port, b"GET / HTTP/1.1\r\n"))) for _ in range(MOST)
        ]
        new = stack.enter_context(
            closing(connect(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
        )
        assert read_to_end(new).endswith(b"small")
        assert read_to_end(idle[0]) == b""


def test_half_a_form_makes_room(port: int) -> None:
    """Forms that do not arrive whole take no place from a visitor who has asked."""
    half = b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nq="
    with ExitStack() as stack:
        for _ in range(2 * MOST):
            stack.enter_context(closing(connect(port, half)))
        threading.Event().wait(0.2)
        with closing(connect(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) as visitor:
            assert b"200 OK" in visitor.recv(1000)


def test_who_is_answered_is_not_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all connections busy a new one is refused, and the others get their answers."""
    monkeypatch.setattr(protocol, "STALL_SECONDS", PATIENCE)
    request = b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        busy = [
            stack.enter_context(closing(connect(port, request, buffer=4096))) for _ in range(MOST)
        ]
        for each in busy:
            assert each.recv(1)
        refused = stack.enter_context(closing(connect(port)))
        assert read_to_end(refused) == b""
        readers = [threading.Thread(target=read_to_end, args=[each]) for each in busy[1:]]
        for reader in readers:
            reader.start()
        assert read_to_end(busy[0]).endswith(BIG)
        for reader in readers:
            reader.join()


def test_a_body_in_chunks_is_not_looked_at(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the request is answered, and the connection closed."""
    events = 0
    next_event = h11.Connection.next_event

    def counted(connection: h11.Connection) -> Any:
        nonlocal events
        events += 1
        return next_event(connection)

    monkeypatch.setattr(h11.Connection, "next_event", counted)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with closing(connect(port, head + b"1\r\na\r\n" * 30_000)) as connection:
        with suppress(ConnectionError):
            for _ in range(10):
                connection.sendall(b"1\r\na\r\n" * 30_000)
        read_to_end(connection)
    assert 0 < events < 10
