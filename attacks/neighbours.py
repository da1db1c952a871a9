"""The heaviest requests that one visitor may send, and how long another one waits
meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import cycle, islice
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from attacks.environments import (
    doubling_environment,
    large_environment,
    multiplied_environment,
)
from attacks.odd_requests import SQL
from attacks.outcome import Outcome
from attacks.statements import ENDLESS
from attacks.target import FORM, PIECE, Target, require_short
from attacks.target import field as query_field
from attacks.visitors import stall
from benchmarks.nginx import nginx
from benchmarks.targets import with_query

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
BUILDS = "/spack-cache/builds.json?_size=1000"
STREAM = "/spack-cache/spec_variants.csv?_stream=on"
STATEMENT = f"{SQL}.json?{query_field('sql', ENDLESS)}"
BLANKS = "/**/" + " " * 31_000
CELLS = f"""
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000)
SELECT {", ".join(["x"] * 24)} FROM n
"""  # noqa: S608 - our own columns
BEGUN_FORM = ("POST /cover.json HTTP/1.1", "Content-Length: 1000", "", "q")
"""The head of a form, and the first of its bytes."""

Request = Callable[[Target], object]
"""A function that sends a request; what it returns is ignored."""


@dataclass(frozen=True, slots=True)
class Heavy:
    """A heavy request, and the number of connections that one visitor repeats it on."""

    request: Request
    connections: int = 4


@dataclass(slots=True)
class Waits:
    """How the requests of a polite visitor went.

    Attributes:
        seconds: the times of each address.
        refused: the statuses of failures; 0 means no answer.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[int] = field(default_factory=list)


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
    """Run nginx before a server while the context lasts."""
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        (folder / "published").symlink_to(target.folder)
        with nginx(folder, target.port, limits=True) as port:
            yield target.behind_proxy(port)


def _neighbours(
    target: Target, seconds: float, kind: str, attacks: Mapping[str, Heavy]
) -> Outcome:
    """Let one visitor repeat each heavy request, and time the requests of other
    visitors.
    """
    outcome = Outcome(kind)
    # First requests are slower and are not timed.
    _polite(target, 0)

    waited: dict[str, list[float]] = defaultdict(list)
    for name, heavy in attacks.items():
        with _repeating(target, heavy):
            waits = _polite(target, seconds / len(attacks))
        faults = _faults_of_waits(waits)
        outcome.judge(name, faults + target.server_faults())

        # The table has a text for each attack; the note has the worst of all.
        texts = []
        for address, times in waits.seconds.items():
            path, _, _ = address.partition("?")
            texts.append(f"{path} {1000 * _slowest(times):.0f} ms")
            waited["/" if address == "/" else "others"] += times
        outcome.waits[name] = ", ".join(texts)
    notes = []
    for name, times in waited.items():
        notes.append(f"{name} in {1000 * _slowest(times):.0f} ms")
    outcome.note = ", ".join(notes)
    return outcome


def _faults_of_waits(waits: Waits) -> list[str]:
    """Return a fault for refused requests, and for each address that takes too long."""
    faults = []
    if waits.refused:
        statuses = waits.refused
        faults.append(f"requests of a polite visitor were answered with {statuses}")
    for address, times in waits.seconds.items():
        slowest = _slowest(times)
        if slowest > POLITE[address]:
            faults.append(f"{address} takes {slowest:.2f} s")
    return faults


def _slowest(times: list[float]) -> float:
    """Return the 99th percentile."""
    # Twice, because quantiles of a single value are not defined.
    return quantiles([*times, *times], n=100)[-1]


@contextmanager
def _repeating(target: Target, heavy: Heavy) -> Iterator[None]:
    """Let one visitor repeat a request on several connections until the context
    ends.
    """
    ended = threading.Event()
    stranger = target.of_one_visitor()

    def visit() -> None:
        while not ended.is_set():
            with suppress(OSError, HTTPException):
                heavy.request(stranger)

    visitors = [threading.Thread(target=visit) for _ in range(heavy.connections)]
    for visitor in visitors:
        visitor.start()
    time.sleep(0.2)
    try:
        yield
    finally:
        ended.set()
        for visitor in visitors:
            visitor.join()


def _polite(target: Target, seconds: float) -> Waits:
    """Request pages one after the other, each at least once."""
    waits = Waits()
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(waits.seconds) < len(POLITE):
        for address in POLITE:
            # The random field bypasses caches.
            unique = with_query(address, f"_={random.random()}")
            began = time.monotonic()
            reply = target.ask_unmeasured(unique)
            waits.seconds[address].append(time.monotonic() - began)
            if reply.status != 200:
                waits.refused.append(reply.status)
    return waits


def _get(address: str, **headers: str) -> Request:
    """Return a function that asks for a page."""
    short = require_short(address)
    return lambda target: target.ask_unmeasured(short, "GET", None, **headers)


def _query(statement: str) -> Request:
    """Return a function that asks for a page with the result of a statement."""
    return _get(f"{SQL}?{query_field('sql', statement)}")


def _post(environment: str) -> Request:
    """Return a function that sends an environment as a form."""
    body = urlencode({"q": environment}).encode()
    return lambda target: target.ask_unmeasured("/cover.json", "POST", body, **FORM)


def _wait(target: Target) -> None:
    """Send nothing at all."""
    time.sleep(0.1)


def _half_a_form(target: Target) -> None:
    """Send the head of a form and one byte, and wait."""
    with target.visit(*BEGUN_FORM):
        time.sleep(1)


def _half_forms(target: Target) -> None:
    """Fill the server's connections with forms that stop after one byte."""
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(target.visit(*BEGUN_FORM))
        time.sleep(5)


def _unread(*addresses: str) -> Request:
    """Return a function that sends ten requests and reads nothing for five seconds."""

    def ask(target: Target) -> None:
        visitors = []
        for address in islice(cycle(addresses), 10):
            line = f"GET {address} HTTP/1.1"
            visitors.append(target.visit(line, "", "", buffer=2048))
        time.sleep(5)
        for visitor in visitors:
            visitor.close()

    return ask


def _bytes_one_by_one(target: Target) -> None:
    """Send a body in chunks of one byte, with a length as well."""
    fields = ("Content-Length: 9", "Transfer-Encoding: chunked")
    with target.visit("POST /cover.json HTTP/1.1", *fields, "", "") as visitor:
        with suppress(OSError):
            for _ in range(20):
                visitor.sendall(b"1\r\nx\r\n" * 10_000)
        # Wait for the refusal, so that each visitor has one connection.
        while visitor.recv(PIECE):
            pass


def _unknown_names(target: Target) -> None:
    """Ask for pages that do not exist."""
    for number in range(100):
        target.ask_unmeasured(f"/release/nope{number}")


HEAVY: dict[str, Heavy] = {
    "nothing at all": Heavy(_wait),
    # Statements and environments.
    "endless statements": Heavy(_get(STATEMENT)),
    "endless statements, for thirty": Heavy(_get(STATEMENT), 30),
    "a large environment": Heavy(_post(large_environment())),
    "a large environment, for thirty": Heavy(_post(large_environment()), 30),
    "definitions that double": Heavy(_post(doubling_environment())),
    "requirements that multiply": Heavy(_post(multiplied_environment())),
    # Long requests and large pages.
    "comments before a statement": Heavy(_query(BLANKS)),
    "a long cookie": Heavy(_get("/", Cookie='a="' + "\\" * 30_000 + '"')),
    "pages of many cells": Heavy(_query(CELLS)),
    "pages of many cells, for ten": Heavy(_query(CELLS), 10),
    # A page has 300 rows at most.
    "pages of many rows, for ten": Heavy(_get("/spack-cache/builds?_size=700"), 10),
    "broad searches, for ten": Heavy(_get("/find?q=*"), 10),
    "comparisons of everything": Heavy(_get("/diff/develop...v0.23.1.json"), 10),
    "whole tables": Heavy(_get("/spack-cache/spec_variants.csv?x=1"), 10),
    "names that are not there": Heavy(_unknown_names),
    # Dear pages, some by another spelling of their address.
    "filters that read a view, for ten": Heavy(
        _get("/spack-cache/build_listings.json?variants__contains=zz"), 10
    ),
    "encoded addresses of searches, for ten": Heavy(_get("/%66ind?q=%2Bmpi"), 10),
    "encoded fields of facets, for ten": Heavy(
        _get("/spack-cache/builds?_f%61cet=package"), 10
    ),
    "a long name, for thirty": Heavy(_get(f"/find?q={'a' * 30_000}"), 30),
    "coverage of everything, for ten": Heavy(_get("/coverage/develop"), 10),
    "files of a comparison, for ten": Heavy(_get("/diff/develop...v0.23.1.csv"), 10),
}
"""Heavy requests of one visitor."""

SLOW_CLIENTS: dict[str, Heavy] = {
    "nothing at all, through nginx": Heavy(_wait),
    "half a form": Heavy(_half_a_form),
    "half a form, on all connections": Heavy(_half_forms),
    "answers that nobody reads": Heavy(_unread("/find?q=*", "/packages", BUILDS)),
    "streams that nobody reads": Heavy(_unread(STREAM), 2),
    "bodies byte by byte": Heavy(_bytes_one_by_one),
    "a flood of pages": Heavy(_get("/packages"), 32),
}
"""Clients that read or write slowly, and floods, through nginx."""
