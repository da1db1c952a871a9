"""The heaviest requests that one visitor may send, and how long another one waits meanwhile."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

from attacks.outcome import Outcome
from attacks.requests import SQL
from attacks.target import PATIENCE, Target
from benchmarks.nginx import nginx

VISITORS = 4
"""So many are heavy at once."""

POLITE = {
    "/": 0.5,
    "/find?q=hdf5+%2Bmpi": 4.0,
    "/spack-cache/packages.json?_size=5": 4.0,
    f"{SQL}.json?sql=select+1": 4.0,
}
"""What the polite visitor asks for, and the seconds that half of these requests may take at most.

On a machine with nothing else to do 99 of 100 take less than a fifth of the first, and less than a
third of the others; the note says what they took.
"""
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
CELLS = f"""
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)
SELECT {", ".join(["x"] * 24)} FROM n
"""  # noqa: S608 - our own columns


def large_environment() -> str:
    """Return 85 kB of a matrix of 900 specs, 200 excludes and version lists of 97 parts."""
    versions = ",".join(f"1.{number}:1.{number}.5" for number in range(97))
    names = [f"hdf5@{versions}", *(f"package{number}" for number in range(29))]
    rows = [names, [f"%gcc@{number}" for number in range(30)]]
    excludes = [f"hdf5@{versions[:380]} %gcc@{number}" for number in range(200)]
    lines = ["spack:", "  specs:", "  - matrix:"]
    lines += [f"    - [{', '.join(map(repr, row))}]" for row in rows]
    lines += ["    exclude:", *(f"    - '{each}'" for each in excludes)]
    return "\n".join(lines) + "\n"


def nginx_neighbours(target: Target, seconds: float) -> Outcome:
    """Do the same behind the nginx of `deploy/`; each request comes from another address."""
    with (
        TemporaryDirectory(prefix="attacks-") as folder,
        nginx(Path(folder), [target.port], limits=True) as port,
    ):
        return neighbours(target.through(port), seconds, "nginx")


def neighbours(target: Target, seconds: float, kind: str = "neighbours") -> Outcome:
    """Let four visitors do the same heavy thing again and again, each in turn; time a fifth one."""
    outcome = Outcome(kind)
    waited: dict[str, list[float]] = defaultdict(list)
    # So that no first request is timed.
    _polite(target, 0)
    share = seconds / len(HEAVY)
    for name, heavy in HEAVY.items():
        with _repeating(target, heavy):
            taken, refused = _polite(target, share)
        faults = [f"{refused} requests of a polite visitor were refused"] if refused else []
        for address, times in taken.items():
            middle = sorted(times)[len(times) // 2]
            if middle > POLITE[address]:
                faults.append(f"{address} takes {middle:.1f} s")
            waited["/" if address == "/" else "others"] += times
        outcome.waits[name] = ", ".join(
            f"{address.partition('?')[0]} {1000 * _slowest(times):.0f} ms"
            for address, times in taken.items()
        )
        outcome.judge(name, faults + target.standing())
    worst = {name: _slowest(times) for name, times in waited.items()}
    outcome.note = ", ".join(f"{name} in {1000 * each:.0f} ms" for name, each in worst.items())
    return outcome


def _slowest(times: list[float]) -> float:
    """Return the time that 99 of 100 do not exceed."""
    return quantiles([*times, *times], n=100)[-1]


@contextmanager
def _repeating(target: Target, heavy: Callable[[Target], None]) -> Iterator[None]:
    """Have several visitors do something until the context ends."""
    ended = threading.Event()

    def visit() -> None:
        while not ended.is_set():
            with suppress(OSError, HTTPException):
                heavy(target)

    visitors = [threading.Thread(target=visit) for _ in range(VISITORS)]
    for each in visitors:
        each.start()
    time.sleep(0.2)
    try:
        yield
    finally:
        ended.set()
        for each in visitors:
            each.join()


def _polite(target: Target, seconds: float) -> tuple[dict[str, list[float]], int]:
    """Ask for pages one after the other; return the times of each, and how many were no 200."""
    taken: dict[str, list[float]] = defaultdict(list)
    refused, end = 0, time.monotonic() + seconds
    while time.monotonic() < end or len(taken) < len(POLITE):
        for address in POLITE:
            began = time.monotonic()
            refused += _status(target, "GET", address) != 200
            taken[address].append(time.monotonic() - began)
    return taken, refused


def _status(
    target: Target, method: str, address: str, body: str | None = None, **headers: str
) -> int:
    connection = HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE)
    try:
        visitor = f"198.51.{random.randrange(256)}.{random.randrange(256)}"
        connection.request(method, address, body=body, headers={"X-Visitor": visitor, **headers})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def _getting(address: str, **headers: str) -> Callable[[Target], None]:
    return lambda target: _discard(_status(target, "GET", address, **headers))


def _posting(address: str, body: str) -> Callable[[Target], None]:
    form = {"content-type": "application/x-www-form-urlencoded"}
    return lambda target: _discard(_status(target, "POST", address, body, **form))


def _discard(_: int) -> None:
    """Take an answer, whatever it is."""


def _half_a_form(target: Target) -> None:
    """Send the head of a form and one byte, and wait."""
    head = "POST /cover.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nq"
    with socket.create_connection(("127.0.0.1", target.port), timeout=PATIENCE) as visitor:
        visitor.sendall(head.encode())
        time.sleep(1)


def _unread(target: Target) -> None:
    """Ask ten times for a large answer over small segments, and read nothing for five seconds."""
    visitors = []
    for number in range(10):
        visitor = socket.socket()
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        visitor.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        visitor.settimeout(PATIENCE)
        visitor.connect(("127.0.0.1", target.port))
        address = ("/find?q=*", "/packages", "/spack-cache/builds.json?_size=1000")[number % 3]
        visitor.sendall(f"GET {address} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        visitors.append(visitor)
    time.sleep(5)
    for visitor in visitors:
        visitor.close()


def _unread_streams(target: Target) -> None:
    """Ask for ten streams, and read nothing of them for five seconds."""
    visitors = []
    for number in range(10):
        visitor = socket.socket()
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        visitor.settimeout(PATIENCE)
        visitor.connect(("127.0.0.1", target.port))
        address = f"/spack-cache/spec_variants.csv?_stream=on&_={number}"
        head = f"GET {address} HTTP/1.1\r\nHost: localhost\r\nX-Visitor: 203.0.113.{number}\r\n\r\n"
        visitor.sendall(head.encode())
        visitors.append(visitor)
    time.sleep(5)
    for visitor in visitors:
        visitor.close()


def _bytes_one_by_one(target: Target) -> None:
    """Send a body of which each byte is a chunk, and a length as well."""
    head = "POST /cover.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", target.port), timeout=PATIENCE) as visitor:
        visitor.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(20):
            visitor.sendall(b"1\r\nx\r\n" * 10_000)


def _unknown_names(target: Target) -> None:
    """Ask for pages that do not exist."""
    for number in range(100):
        _status(target, "GET", f"/release/nope{number}")


def _kill_processes(target: Target) -> None:
    """Kill the processes of the sandbox, as a machine without memory does."""
    for pid in target.processes()[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    time.sleep(1)


HEAVY: dict[str, Callable[[Target], None]] = {
    "nothing at all": lambda _: time.sleep(0.1),
    "endless statements": _getting(f"{SQL}.json?sql={quote(ENDLESS)}"),
    "a large environment": _posting("/cover.json", urlencode({"q": large_environment()})),
    "comments before a statement": _getting(f"{SQL}?sql={quote('/**/' + ' ' * 31_000, safe='/*')}"),
    "a long cookie": _getting("/", Cookie='a="' + "\\" * 30_000),
    "pages of many cells": _getting(f"{SQL}?sql={quote(CELLS)}"),
    "half a form": _half_a_form,
    "answers that nobody reads": _unread,
    "streams that nobody reads": _unread_streams,
    "bodies byte by byte": _bytes_one_by_one,
    "names that are not there": _unknown_names,
    "processes that are killed": _kill_processes,
}
