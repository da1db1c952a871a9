"""Several processes: one that dies, hangs, grows or loses its parent, with real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from benchmarks.server import free_port
from tests.processes import completed
from tests.serving import PATIENCE, eventually

pytestmark = [pytest.mark.slow, pytest.mark.once]

SCRIPT = """
import os, socket, sys, time
from spack_cache_db.site import gunicorn_server as workers
workers.SIGN_OF_LIFE_SECONDS = 5
workers.MOST_BYTES = 120_000_000
kept = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for name in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{name}.complete"})
        return
    if scope["path"] == "/hang":
        time.sleep(600)
    if scope["path"] == "/grow":
        kept.append(b"x" * 120_000_000)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})

def make_app():
    if sys.argv[2:] == ["broken"]:
        raise RuntimeError("no application today")
    return app

workers.run_workers(make_app, socket.create_server(("127.0.0.1", int(sys.argv[1]))), 2)
"""


class Workers:
    """Two workers of a small application, which answers with the number of its process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.url = process, f"http://127.0.0.1:{port}"

    def pids(self) -> set[int]:
        """Return the processes that answer."""
        found = set()
        for _ in range(20):
            with suppress(httpx.HTTPError):
                found.add(int(httpx.get(self.url, timeout=2, verify=False).text))
        return found

    def both(self) -> set[int]:
        """Return the two processes, as soon as both answer."""
        found: set[int] = set()

        def two_answer() -> bool:
            nonlocal found
            found = self.pids()
            return len(found) == 2

        eventually(two_answer)
        return found


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Two workers, both of which answer."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(port)], stderr=subprocess.DEVNULL)
    running = Workers(process, port)
    try:
        running.both()
        yield running
    finally:
        process.terminate()
        process.wait(PATIENCE)


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_killed_worker_is_replaced(workers: Workers) -> None:
    """SIGKILL for one of two: the other answers, and soon there are two again."""
    killed, kept = sorted(workers.both())
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: is_gone(killed))
    after = workers.both()
    assert kept in after
    assert killed not in after


def test_a_worker_that_hangs_is_replaced(workers: Workers) -> None:
    """One that gives no sign of life is killed and replaced."""
    before = workers.both()
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{workers.url}/hang", timeout=PATIENCE, verify=False)
    assert len(workers.both() & before) == 1


def test_a_stopped_worker_is_replaced(workers: Workers) -> None:
    """One that is stopped (SIGSTOP) is killed and replaced as well."""
    stopped = min(workers.both())
    os.kill(stopped, signal.SIGSTOP)
    eventually(lambda: is_gone(stopped))
    assert stopped not in workers.both()


def test_a_worker_that_grows_is_replaced(workers: Workers) -> None:
    """One that holds more memory than it may answers what it has begun, and is replaced."""
    grown = int(httpx.get(f"{workers.url}/grow", timeout=PATIENCE, verify=False).text)
    eventually(lambda: is_gone(grown))
    assert grown not in workers.both()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_they_end_together(workers: Workers, sig: int) -> None:
    """What ends the parent ends its workers, with status 0."""
    pids = workers.both()
    workers.process.send_signal(sig)
    assert workers.process.wait(PATIENCE) == 0
    assert all(map(is_gone, pids))


def test_no_worker_outlives_its_parent(workers: Workers) -> None:
    """When the parent is killed its workers end by themselves."""
    pids = workers.both()
    workers.process.kill()
    workers.process.wait()
    eventually(lambda: all(map(is_gone, pids)))


def test_an_application_that_cannot_start_is_an_error() -> None:
    """Workers that cannot start end the parent, with a status that says so."""
    done = completed([sys.executable, "-c", SCRIPT, "0", "broken"])
    assert done.returncode > 0
