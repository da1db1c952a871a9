"""Attacks by many clients: some disconnect, some read nothing."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

from attacks.odd_requests import SQL
from attacks.outcome import Outcome
from attacks.statements import ENDLESS
from attacks.target import Target, field, serving
from benchmarks.processes import family, is_running

DOWNLOAD = "/spack-cache.db"
STREAM = "/spack-cache/spec_variants.csv?_stream=on&_size=1"
STATEMENT = f"{SQL}.json?{field('sql', ENDLESS)}"
"""A statement that does not end."""
SMALL_BUFFER = 4096
"""Bytes that a visitor takes without reading them."""
LEAVING = 16
"""Visitors that disconnect at once."""
STALLED = 200
"""Visitors that read nothing."""
STALLED_MEGABYTES = 100
"""Memory that they may cost."""
HALF_OPEN = 600
"""Visitors that send half a request."""
END_SECONDS = 20
"""Seconds after which a process that has not ended is a survivor."""


def disconnects(target: Target, seconds: float) -> Outcome:
    """Disconnect during streams, statements, searches and downloads."""
    outcome = Outcome("disconnects")
    for address in (STREAM, STATEMENT, "/find?q=%2Bmpi", DOWNLOAD):
        visitors = [_request(target, address) for _ in range(LEAVING)]
        for visitor in visitors:
            time.sleep(min(0.05, seconds / 100))
            visitor.close()
        faults = []
        if not target.idle():
            faults.append("work continues without visitors")
        outcome.judge(address, faults)
    return outcome


def stall(target: Target, seconds: float, outcome: Outcome) -> None:
    """Request downloads and read nothing; send half of a request and wait."""
    # Downloads that nobody reads.
    before = target.peak_megabytes()
    stalled = [_request(target, DOWNLOAD, SMALL_BUFFER) for _ in range(STALLED)]
    time.sleep(min(2, seconds / 4))
    faults = []
    added = target.peak_megabytes() - before
    if added > STALLED_MEGABYTES:
        faults.append(f"they hold {added:.0f} MB")
    faults += target.server_faults()
    outcome.judge(f"{STALLED} downloads that nobody reads", faults)

    # Requests whose head does not end, while the downloads wait.
    half_open = [target.visit("GET / HTTP/1.1") for _ in range(HALF_OPEN)]
    outcome.judge(f"{HALF_OPEN} half-open connections", target.server_faults())
    for visitor in stalled + half_open:
        visitor.close()


def endings(file: Path) -> Outcome:
    """End a server by each signal during streams, statements and downloads."""
    outcome = Outcome("endings")
    longest = 0.0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with serving(file) as target:
            seconds, faults = _end(target, number)
        longest = max(longest, seconds)
        outcome.judge(number.name, faults)
    outcome.note = f"ended after at most {longest:.1f} s"
    return outcome


def _end(target: Target, number: signal.Signals) -> tuple[float, list[str]]:
    """Send a signal to a busy server; return how long it took to end, and faults."""
    visitors = []
    for address in [STREAM, STATEMENT, DOWNLOAD] * 6:
        visitors.append(_request(target, address, SMALL_BUFFER))
    time.sleep(0.5)

    # After SIGHUP, a server without a terminal continues with new processes.
    is_to_stay = number == signal.SIGHUP
    processes = family(target.pid)
    if is_to_stay:
        processes.remove(target.pid)
    began = time.monotonic()
    os.kill(target.pid, number)
    seconds = 0.0
    survivors = processes
    while survivors and seconds < END_SECONDS:
        time.sleep(0.05)
        seconds = time.monotonic() - began
        survivors = [pid for pid in processes if is_running(pid)]

    faults = []
    if survivors:
        faults.append(f"{len(survivors)} processes outlive it")
    if is_to_stay:
        faults += target.server_faults()
    for visitor in visitors:
        visitor.close()
    return seconds, faults


def _request(target: Target, address: str, buffer: int | None = None) -> socket.socket:
    """Request a URL and read nothing."""
    return target.visit(f"GET {address} HTTP/1.1", "", "", buffer=buffer)
