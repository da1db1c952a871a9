"""`spack-cache-db serve` as a real process, and visitors who misbehave."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from benchmarks import processes

PATIENCE = 60


class Server:
    """A running server: its process, address and log."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Request a page on a connection of its own."""
        return httpx.get(
            self.address + path, headers=headers, timeout=PATIENCE, verify=False
        )

    def visit(self, path: str, *, buffer: int | None = None) -> socket.socket:
        """Request a page without reading it; `buffer` bounds the unread bytes that are
        accepted.
        """
        visitor = socket.socket()
        if buffer is not None:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        visitor.settimeout(PATIENCE)
        visitor.connect(("127.0.0.1", self.port))
        visitor.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return visitor

    def status_of(self, visitor: socket.socket) -> int:
        """Return the status with which the answer to a visitor begins."""
        return int(visitor.recv(15, socket.MSG_WAITALL).split()[1])

    def cpu_seconds(self) -> float:
        """Return the processor time that all its processes have used, ended ones
        too.
        """
        return processes.cpu_seconds(self.process.pid)

    def peak_megabytes(self) -> float:
        """Return the most memory that one of its processes has held."""
        return processes.peak_bytes(self.process.pid) / 2**20

    def workers(self) -> list[int]:
        """Return the processes that answer requests."""
        return processes.children(self.process.pid)

    def end(self, sig: int = signal.SIGTERM, within: float = PATIENCE) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(sig)
        return self.process.wait(within)


@contextmanager
def serving(
    file: Path,
    *options: str,
    temporary: Path | None = None,
    terminal: int | None = None,
) -> Iterator[Server]:
    """Serve a database on a free port, with temporary files beside it and an empty
    input.
    """
    folder = temporary or file.parent
    with tempfile.NamedTemporaryFile(
        "w", dir=folder, suffix=".log", delete=False
    ) as stream:
        input_stream = subprocess.DEVNULL if terminal is None else terminal
        program = [sys.executable, "-m", "spack_cache_db"]
        process = subprocess.Popen(
            [*program, "serve", str(file), "--port", "0", *options],
            text=True,
            stdin=input_stream,
            stdout=stream,
            stderr=stream,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    log = Path(stream.name)
    try:
        eventually(lambda: process.poll() is not None or "http://" in log.read_text())
        assert process.poll() is None, log.read_text()
        server = Server(
            process, int(re.findall(r"http://[^/]*:(\d+)/", log.read_text())[0]), log
        )
        eventually(lambda: answers(server.address))
        yield server
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> Iterator[Server]:
    """Run a server from when it listens on a port until the context ends."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def is_up() -> bool:
        assert process.poll() is None, command
        with socket.socket() as visitor:
            return visitor.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(is_up)
        yield Server(process, port, Path(os.devnull))
    finally:
        process.terminate()
        process.wait(PATIENCE)


def answers(url: str) -> bool:
    """Whether a server answers with its first page."""
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=PATIENCE, verify=False).status_code == 200
    return False


def eventually(holds: Callable[[], object]) -> None:
    """Return once something holds; fail if it does not come to hold."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.1)
