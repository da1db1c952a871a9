"""The heaviest requests that one visitor may send, and how long another one waits
meanwhile.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from itertools import cycle, islice, pairwise
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from attacks.outcome import Outcome
from attacks.requests import SQL
from attacks.target import PATIENCE, Target, field, require_short
from attacks.visitors import stall
from benchmarks.nginx import nginx

POLITE = {
    "/": 0.1,
    "/find?q=hdf5+%2Bmpi": 1.5,
    "/spack-cache/packages.json?_size=5": 1.5,
    f"{SQL}.json?sql=select+1": 1.5,
    "/spack-cache/releases.csv": 4.0,
}
"""The requests of the polite visitor, and the seconds that 99 of 100 of them may take.

The limits are for an idle machine.
"""
Attacks = dict[str, tuple[Callable[[Target], None], int]]
BUILDS = "/spack-cache/builds.json?_size=1000"
STREAM = "/spack-cache/spec_variants.csv?_stream=on"
SEGMENT = 1_400
"""Bytes of a packet, as on networks: on loopback the kernel buffers megabytes."""
BLANKS = "/**/" + " " * 31_000
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
CELLS = f"""
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)
SELECT {", ".join(["x"] * 24)} FROM n
"""  # noqa: S608 - our own columns


def large_environment() -> str:
    """Return 85 kB of a matrix of 900 specs, 200 excludes and version lists of 97
    parts.
    """
    versions = ",".join(f"1.{number}:1.{number}.5" for number in range(97))
    names = [f"hdf5@{versions}", *(f"package{number}" for number in range(29))]
    rows = [names, [f"%gcc@{number}" for number in range(30)]]
    excludes = [f"hdf5@{versions[:380]} %gcc@{number}" for number in range(200)]
    lines = ["spack:", "  specs:", "  - matrix:"]
    lines += [f"    - [{', '.join(map(repr, row))}]" for row in rows]
    lines += ["    exclude:", *(f"    - '{exclude}'" for exclude in excludes)]
    return "\n".join(lines) + "\n"


def doubling_environment() -> str:
    """Return 350 bytes of definitions, each of which contains the one before twice."""
    names = "abcdefghijklmno"
    doubled = (
        f"  - {name}: [${before}, ${before}]" for before, name in pairwise(names)
    )
    lines = ["spack:", "  definitions:", "  - a: [{matrix: [[]]}, zlib]", *doubled]
    return "\n".join([*lines, "  specs: [$o]"]) + "\n"


def multiplied_environment() -> str:
    """Return 500 bytes of requirements whose alternatives multiply."""
    choices = [
        f"{{one_of: [{', '.join(f'+a{x}{y}' for y in range(9))}]}}" for x in range(8)
    ]
    return f"spack: {{packages: {{all: {{require: [{', '.join(choices)}]}}}}, specs: [zlib]}}\n"


def behind_nginx(target: Target, seconds: float) -> Outcome:
    """Attack with slow clients through the nginx of `deploy/`, which must keep them
    away.
    """
    with _behind(target) as site:
        outcome = _neighbours(site, seconds / 2, "nginx", SLOW_CLIENTS)
        stall(site, seconds / 2, outcome)
    return outcome


def neighbours(target: Target, seconds: float) -> Outcome:
    """Attack with heavy requests through the nginx of `deploy/`, which gives fair
    shares.
    """
    with _behind(target) as site:
        return _neighbours(site, seconds, "neighbours", HEAVY)


@contextmanager
def _behind(target: Target) -> Iterator[Target]:
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        (folder / "published").symlink_to(target.folder)
        with nginx(folder, target.port, limits=True) as port:
            yield target.through(port)


def _neighbours(target: Target, seconds: float, kind: str, attacks: Attacks) -> Outcome:
    """Let one visitor repeat each heavy request, and time the requests of other
    visitors.
    """
    outcome = Outcome(kind)
    waited: dict[str, list[float]] = defaultdict(list)
    # First requests are slower and are not timed.
    _polite(target, 0)
    share = seconds / len(attacks)
    for name, heavy in attacks.items():
        with _repeating(target, *heavy):
            times_of, refused = _polite(target, share)
        faults = (
            [f"requests of a polite visitor were answered with {refused}"]
            if refused
            else []
        )
        for address, times in times_of.items():
            if _slowest(times) > POLITE[address]:
                faults.append(f"{address} takes {_slowest(times):.2f} s")
            waited["/" if address == "/" else "others"] += times
        outcome.waits[name] = ", ".join(
            f"{address.partition('?')[0]} {1000 * _slowest(times):.0f} ms"
            for address, times in times_of.items()
        )
        outcome.judge(name, faults + target.standing())
    worst = {name: _slowest(times) for name, times in waited.items()}
    outcome.note = ", ".join(
        f"{name} in {1000 * slowest:.0f} ms" for name, slowest in worst.items()
    )
    return outcome


def _slowest(times: list[float]) -> float:
    """Return the 99th percentile."""
    return quantiles([*times, *times], n=100)[-1]


@contextmanager
def _repeating(
    target: Target, ask: Callable[[Target], None], count: int = 4
) -> Iterator[None]:
    """Let one visitor repeat a request on several connections until the context
    ends.
    """
    ended = threading.Event()
    stranger = target.for_one()

    def visit() -> None:
        while not ended.is_set():
            with suppress(OSError, HTTPException):
                ask(stranger)

    visitors = [threading.Thread(target=visit) for _ in range(count)]
    for visitor in visitors:
        visitor.start()
    time.sleep(0.2)
    try:
        yield
    finally:
        ended.set()
        for visitor in visitors:
            visitor.join()


def _polite(target: Target, seconds: float) -> tuple[dict[str, list[float]], list[int]]:
    """Request pages one after the other; return the times of each, and the statuses of
    failures; 0 means no answer.
    """
    times_of: dict[str, list[float]] = defaultdict(list)
    refused: list[int] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times_of) < len(POLITE):
        for address in POLITE:
            # The random field bypasses caches.
            unique = f"{address}{'&' if '?' in address else '?'}_={random.random()}"
            began = time.monotonic()
            status = _status(target, "GET", unique)
            times_of[address].append(time.monotonic() - began)
            if status != 200:
                refused.append(status)
    return times_of, refused


def _status(
    target: Target, method: str, address: str, body: str | None = None, **headers: str
) -> int:
    connection = HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE)
    try:
        headers = {"X-Visitor": target.visitor, **headers}
        connection.request(method, address, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def _getting(address: str, **headers: str) -> Callable[[Target], None]:
    short = require_short(address)
    return lambda target: _discard(_status(target, "GET", short, **headers))


def _covering(environment: str) -> Callable[[Target], None]:
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = urlencode({"q": environment})
    return lambda target: _discard(_status(target, "POST", "/cover.json", body, **form))


def _discard(_: int) -> None:
    """Ignore a status."""


def _connected(target: Target, *lines: str, **options: int) -> socket.socket:
    """Return a connection that has sent a request in small packets.

    Args:
        target: the server.
        lines: the first line of the request, its fields, an empty line and a body.
        options: of the socket, by name.
    """
    visitor = socket.socket()
    visitor.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
    for name, value in options.items():
        visitor.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    visitor.settimeout(PATIENCE)
    visitor.connect(("127.0.0.1", target.port))
    head = [lines[0], "Host: localhost", f"X-Visitor: {target.visitor}", *lines[1:]]
    visitor.sendall("\r\n".join(head).encode())
    return visitor


def _half_a_form(target: Target) -> None:
    """Send the head of a form and one byte, and wait."""
    with _connected(
        target, "POST /cover.json HTTP/1.1", "Content-Length: 1000", "", "q"
    ):
        time.sleep(1)


def _half_forms(target: Target) -> None:
    """Fill the server's connections with forms that stop after one byte."""
    with ExitStack() as stack:
        for _ in range(300):
            lines = ("POST /cover.json HTTP/1.1", "Content-Length: 1000", "", "q")
            stack.enter_context(_connected(target, *lines))
        time.sleep(5)


def _unread(*addresses: str) -> Callable[[Target], None]:
    """Return a function that sends ten requests and reads nothing for five seconds."""

    def ask(target: Target) -> None:
        visitors = [
            _connected(target, f"GET {address} HTTP/1.1", "", "", SO_RCVBUF=2048)
            for address in islice(cycle(addresses), 10)
        ]
        time.sleep(5)
        for visitor in visitors:
            visitor.close()

    return ask


def _bytes_one_by_one(target: Target) -> None:
    """Send a body in chunks of one byte, with a length as well."""
    fields = ("Content-Length: 9", "Transfer-Encoding: chunked")
    with _connected(target, "POST /cover.json HTTP/1.1", *fields, "", "") as visitor:
        with suppress(OSError):
            for _ in range(20):
                visitor.sendall(b"1\r\nx\r\n" * 10_000)
        # Wait for the refusal, so that each visitor has one connection.
        while visitor.recv(65_536):
            pass


def _unknown_names(target: Target) -> None:
    """Ask for pages that do not exist."""
    for number in range(100):
        _status(target, "GET", f"/release/nope{number}")


HEAVY: Attacks = {
    "nothing at all": (lambda _: time.sleep(0.1), 4),
    "endless statements": (_getting(f"{SQL}.json?{field('sql', ENDLESS)}"), 4),
    "endless statements, for thirty": (
        _getting(f"{SQL}.json?{field('sql', ENDLESS)}"),
        30,
    ),
    "a large environment": (_covering(large_environment()), 4),
    "a large environment, for thirty": (_covering(large_environment()), 30),
    "definitions that double": (_covering(doubling_environment()), 4),
    "requirements that multiply": (_covering(multiplied_environment()), 4),
    "comments before a statement": (_getting(f"{SQL}?{field('sql', BLANKS)}"), 4),
    "a long cookie": (_getting("/", Cookie='a="' + "\\" * 30_000 + '"'), 4),
    "pages of many cells": (_getting(f"{SQL}?{field('sql', CELLS)}"), 4),
    "pages of many cells, for ten": (_getting(f"{SQL}?{field('sql', CELLS)}"), 10),
    # A page has 300 rows at most.
    "pages of many rows, for ten": (_getting("/spack-cache/builds?_size=700"), 10),
    "broad searches, for ten": (_getting("/find?q=*"), 10),
    "comparisons of everything": (_getting("/diff/develop...v0.23.1.json"), 10),
    "whole tables": (_getting("/spack-cache/spec_variants.csv?x=1"), 10),
    "names that are not there": (_unknown_names, 4),
    "filters that read a view, for ten": (
        _getting("/spack-cache/build_listings.json?variants__contains=zz"),
        10,
    ),
    "encoded addresses of searches, for ten": (_getting("/%66ind?q=%2Bmpi"), 10),
    "encoded fields of facets, for ten": (
        _getting("/spack-cache/builds?_f%61cet=package"),
        10,
    ),
    "a long name, for thirty": (_getting(f"/find?q={'a' * 30_000}"), 30),
    "coverage of everything, for ten": (_getting("/coverage/develop"), 10),
    "files of a comparison, for ten": (_getting("/diff/develop...v0.23.1.csv"), 10),
}
"""Heavy requests of one visitor, and the number of connections that repeat each."""

SLOW_CLIENTS: Attacks = {
    "nothing at all, through nginx": (lambda _: time.sleep(0.1), 4),
    "half a form": (_half_a_form, 4),
    "half a form, on all connections": (_half_forms, 4),
    "answers that nobody reads": (_unread("/find?q=*", "/packages", BUILDS), 4),
    "streams that nobody reads": (_unread(STREAM), 2),
    "bodies byte by byte": (_bytes_one_by_one, 4),
    "a flood of pages": (_getting("/packages"), 32),
}
"""Clients that read or write slowly, and floods, through nginx."""
