"""Attacks by many clients: some disconnect, some read nothing."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

from attacks.outcome import Outcome
from attacks.requests import SQL
from attacks.target import Target, field, serving

STREAM = "/spack-cache/spec_variants.csv?_stream=on&_size=1"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LEAVING = 16
"""Visitors that disconnect at once."""
STALLED = 200
STALLED_MEGABYTES = 100
HALF_OPEN = 600
END_SECONDS = 5


def disconnects(target: Target, seconds: float) -> Outcome:
    """Disconnect during streams, statements, searches and downloads."""
    outcome = Outcome("disconnects")
    for address in (
        STREAM,
        f"{SQL}.json?{field('sql', ENDLESS)}",
        "/find?q=%2Bmpi",
        "/spack-cache.db",
    ):
        for visitor in [_visit(target, address) for _ in range(LEAVING)]:
            time.sleep(min(0.05, seconds / 100))
            visitor.close()
        outcome.judge(
            address, [] if target.idle() else ["work continues without visitors"]
        )
    return outcome


def stall(target: Target, seconds: float, outcome: Outcome) -> None:
    """Request downloads and read nothing; send half of a request and wait."""
    before = target.peak_megabytes()
    stalled = [_visit(target, "/spack-cache.db", buffer=4096) for _ in range(STALLED)]
    time.sleep(min(2, seconds / 4))
    more = target.peak_megabytes() - before
    faults = [f"they hold {more:.0f} MB"] if more > STALLED_MEGABYTES else []
    outcome.judge(f"{STALLED} downloads that nobody reads", faults + target.standing())
    half = [_visit(target, None) for _ in range(HALF_OPEN)]
    outcome.judge(f"{HALF_OPEN} half-open connections", target.standing())
    for visitor in stalled + half:
        visitor.close()


def endings(file: Path) -> Outcome:
    """End a server by each signal during streams, statements and downloads.

    After SIGHUP, a server without a terminal continues with new processes.
    """
    outcome = Outcome("endings")
    longest = 0.0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with serving(file) as target:
            addresses = [
                STREAM,
                f"{SQL}.json?{field('sql', ENDLESS)}",
                "/spack-cache.db",
            ]
            visitors = [
                _visit(target, address, buffer=4096) for address in addresses * 6
            ]
            time.sleep(0.5)
            stays = {target.pid} if number == signal.SIGHUP else set[int]()
            processes = [pid for pid in target.processes() if pid not in stays]
            began = time.monotonic()
            os.kill(target.pid, number)
            while (
                any(map(_runs, processes))
                and time.monotonic() - began < 4 * END_SECONDS
            ):
                time.sleep(0.05)
            longest = max(longest, time.monotonic() - began)
            survivors = [pid for pid in processes if _runs(pid)]
            faults = [f"{len(survivors)} processes outlive it"] if survivors else []
            outcome.judge(number.name, faults + (target.standing() if stays else []))
            for visitor in visitors:
                visitor.close()
    outcome.note = f"ended after at most {longest:.1f} s"
    return outcome


def _visit(
    target: Target, address: str | None, *, buffer: int | None = None
) -> socket.socket:
    """Request a URL and read nothing; without a URL, send half a request."""
    visitor = socket.socket()
    if buffer is not None:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    visitor.settimeout(10)
    visitor.connect(("127.0.0.1", target.port))
    end = (
        f"HTTP/1.1\r\nHost: localhost\r\nX-Visitor: {target.visitor}\r\n\r\n"
        if address
        else ""
    )
    visitor.sendall(f"GET {address or '/'} {end}".encode())
    return visitor


def _runs(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
