"""`spack-cache-db serve` as a real process, and visitors who misbehave."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

PATIENCE = 60


class Server:
    """A running server: its process, address and what it says."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask for a page on a connection of its own."""
        # Unless told otherwise httpx reads the certificates of all authorities for each client.
        return httpx.get(self.address + path, headers=headers, timeout=PATIENCE, verify=False)

    def visit(self, path: str, *, buffer: int | None = None) -> socket.socket:
        """Ask for a page, and leave the answer to be read or not.

        Args:
            path: what is asked for.
            buffer: bytes that the visitor's side takes in unread, if not the system's choice.
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
        """Return the processor time that all its processes have used, ended ones too."""
        ticks = 0
        for folder in self._folders():
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                # utime and stime, and those of children that have ended.
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        """Return the most memory that one of its processes has held."""
        peaks: list[str] = []
        for folder in self._folders():
            with suppress(OSError):
                status = (folder / "status").read_text()
                peaks += re.findall(r"^VmHWM:\s*(\d+)", status, re.MULTILINE)
        return max(map(int, peaks)) / 1024

    def _folders(self) -> list[Path]:
        folders = [Path(f"/proc/{self.process.pid}")]
        for folder in folders:
            for children in folder.glob("task/*/children"):
                with suppress(OSError):
                    folders += [Path(f"/proc/{each}") for each in children.read_text().split()]
        return folders

    def workers(self) -> list[int]:
        """Return the server processes, without Python's tracker of semaphores."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [pid for pid in map(int, found.split()) if b"spawn_main" in _command(pid)]

    def end(self, sig: int = signal.SIGTERM, within: float = PATIENCE) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(sig)
        return self.process.wait(within)


@contextmanager
def serving(
    file: Path, *options: str, temporary: Path | None = None, terminal: int | None = None
) -> Iterator[Server]:
    """Serve a file on a free port while the context lasts.

    Args:
        file: the file.
        options: more options of `serve`.
        temporary: the folder for temporary files, beside the file unless said otherwise.
        terminal: an open terminal that is its standard input, which else is empty.
    """
    folder = temporary or file.parent
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".log", delete=False) as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "spack_cache_db", "serve", str(file), "--port", "0", *options],
            text=True,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=stream,
            stderr=stream,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    log = Path(stream.name)
    try:
        eventually(lambda: process.poll() is not None or "http://" in log.read_text())
        assert process.poll() is None, log.read_text()
        server = Server(process, int(re.findall(r"http://[^/]*:(\d+)/", log.read_text())[0]), log)
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
    command: list[str], port: int, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Iterator[Server]:
    """Run a server that will answer on a port, until the context ends."""
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    server = Server(process, port, Path(os.devnull))
    try:
        eventually(
            lambda: process.poll() is not None or answers(f"{server.address}/-/versions.json")
        )
        assert process.poll() is None, command
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


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
