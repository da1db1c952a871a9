"""Start and stop the real server, as a user does: `spack-cache-db serve FILE`."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, BinaryIO

from benchmarks import processes

START_WITHIN = 30.0
STOP_WITHIN = 10.0
IDLE_SECONDS = 0.1
"""A server that takes less processor time in a second is idle."""
DATASETTE_WITHOUT_PLUGINS = (
    "import sys; sys._called_from_test = True; from datasette.cli import cli; cli()"
)
"""Datasette loads no plugins if this is set."""
PLAIN_PAGE = "/-/versions.json"
"""The cheapest page of Datasette: the unit of the table, and the check that a server is
up.
"""


class ServerError(Exception):
    """A server did not start."""


class Server:
    """A running server process with its children."""

    def __init__(self, pid: int, port: int) -> None:
        self.port = port
        self._pid = pid

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the server has used so far."""
        return processes.cpu_seconds(self._pid)

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the largest process, which answers requests."""
        return processes.resident_bytes(self._pid)

    def settle(self) -> None:
        """Wait until the server has rendered its first pages and is idle.

        Raises:
            ServerError: it stays busy.
        """
        if not becomes_idle(lambda: self.cpu_seconds, START_WITHIN):
            raise ServerError(f"it is still busy after {START_WITHIN:.0f} s")


@contextmanager
def serving(
    file: Path, port: int | None = None, options: Sequence[str] = ()
) -> Iterator[Server]:
    """Serve a database on loopback while the context lasts.

    Args:
        file: the database.
        port: the port; None for a free one.
        options: more options of `serve`.

    Raises:
        ServerError: the server ended, or did not answer in time.
    """
    if port is None:
        port = free_port()
    process = start(file, port, options)
    try:
        wait_until_up(port, process)
        yield Server(process.pid, port)
    finally:
        stop(process)


def start(
    file: Path,
    port: int,
    options: Sequence[str] = (),
    *,
    is_proxied: bool = True,
    log: BinaryIO | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a server without waiting for it; a proxy may be before it.

    Its log is discarded, or written into the open file `log`.
    """
    command = [sys.executable, "-m", "spack_cache_db"]
    command += ["serve", str(file), "--port", str(port)]
    if is_proxied:
        command += ["--proxy", "127.0.0.1"]
    return subprocess.Popen([*command, *options], stdout=log, stderr=log)


def start_datasette(file: Path, port: int) -> subprocess.Popen[bytes]:
    """Start Datasette alone, without plugins, and discard its log."""
    command = [sys.executable, "-c", DATASETTE_WITHOUT_PLUGINS]
    command += ["serve", "-i", str(file), "--port", str(port)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server that `start` returned."""
    process.terminate()
    try:
        process.wait(STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_up(
    port: int,
    process: subprocess.Popen[Any],
    target: str = PLAIN_PAGE,
    *,
    within: float = START_WITHIN,
) -> None:
    """Return once the server responds to `target`.

    Raises:
        ServerError: the process ended, or the time is over.
    """
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        status = process.poll()
        if status is not None:
            raise ServerError(f"{process.args!r} ended with status {status}")
        # A server refuses connections until it listens.
        with suppress(OSError):
            connection = HTTPConnection("127.0.0.1", port, timeout=START_WITHIN)
            connection.request("GET", target)
            if connection.getresponse().status == 200:
                return
        time.sleep(0.05)
    raise ServerError(f"nothing answered on port {port} within {within:.0f} s")


def becomes_idle(cpu_seconds: Callable[[], float], within: float) -> bool:
    """Return whether a server becomes idle within so many seconds.

    Args:
        cpu_seconds: returns the processor time that the server has used so far.
        within: the seconds to wait.
    """
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        before = cpu_seconds()
        time.sleep(1)
        if cpu_seconds() - before < IDLE_SECONDS:
            return True
    return False


def free_port() -> int:
    """Return a free port below the range of client ports, so that no client takes
    it.
    """
    while True:
        port = random.randrange(10_000, 32_000)
        with suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port
