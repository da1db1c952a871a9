"""The server under attack: a real `spack-cache-db serve`, and the checks of its
responses.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote_plus

from benchmarks.server import (
    becomes_idle,
    free_port,
    start,
    start_datasette,
    stop,
    wait_until_up,
)
from spack_cache_db.site.http.checks import LONGEST_ADDRESS

MOST_MEGABYTES = 512
SHORT = "(),'*/:=<>|-@[];"
"""Characters that need no encoding in a query string, so that more fits into an
address.
"""
POLITE_NETWORK = "198.51"
STRANGER_NETWORK = "203.0"
"""Another network, because nginx would take two visitors of one address for one."""
PATIENCE = 60
"""Seconds after which a response counts as missing."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, and the server's processor time for it; status 0 means no
    response.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cpu_seconds: float = 0.0


class Target:
    """A server of a file that must not change."""

    def __init__(
        self, file: Path, pid: int, port: int, *, plain: bool = False, visitor: str = ""
    ) -> None:
        self.port, self.pid, self._is_plain = port, pid, plain
        self._visitor = visitor
        self._file = file
        self._before = self._state()

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self._file.parent

    @property
    def visitor(self) -> str:
        """The address that the next request comes from, if nginx is asked."""
        return self._visitor or any_address(POLITE_NETWORK)

    def through(self, port: int) -> Target:
        """Return the same server behind a proxy on another port."""
        return Target(self._file, self.pid, port)

    def for_one(self) -> Target:
        """Return the same server, asked by one visitor, who has one address."""
        return Target(
            self._file, self.pid, self.port, visitor=any_address(STRANGER_NETWORK)
        )

    def ask(
        self,
        address: str,
        method: str = "GET",
        body: bytes | None = None,
        **headers: str,
    ) -> Reply:
        """Request a URL on a new connection."""
        before = self.cpu_seconds()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(
                method,
                address,
                body=body,
                headers={"X-Visitor": self.visitor, **headers},
            )
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            body, status = answer.read(), answer.status
        except (OSError, HTTPException):
            return Reply(0, {}, b"", self.cpu_seconds() - before)
        finally:
            connection.close()
        return Reply(status, fields, body, self.cpu_seconds() - before)

    def cpu_seconds(self) -> float:
        """Return the processor time of all its processes, ended ones too."""
        ticks = 0
        for pid in self.processes():
            with suppress(OSError):
                fields = (
                    Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                )
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        """Return the largest memory that one of its processes has used."""
        peaks = [0]
        for pid in self.processes():
            with suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                peaks += map(int, re.findall(r"^VmHWM:\s*(\d+)", status, re.MULTILINE))
        return max(peaks) / 1024

    def resident_megabytes(self) -> float:
        """Return the memory of all its processes together; shared memory counts
        once.
        """
        kilobytes = 0
        for pid in self.processes():
            with suppress(OSError):
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                kilobytes += sum(
                    map(int, re.findall(r"^Pss:\s*(\d+)", rollup, re.MULTILINE))
                )
        return kilobytes / 1024

    def processes(self) -> list[int]:
        """Return the server's process and all its children."""
        found = [self.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(OSError):
                    found += map(int, children.read_text().split())
        return found

    def betrayals(self, reply: Reply) -> list[str]:
        """Return the faults of a response: signs of bugs, or data about the machine."""
        faults = [] if reply.status else ["no answer"]
        if reply.status >= 500 and reply.status != 503:
            faults.append(f"status {reply.status}")
        cached = "no-store" not in reply.headers.get("cache-control", "")
        # Datasette alone never sends no-store, so every request would count as a fault.
        if reply.status >= 400 and cached and not self._is_plain:
            faults.append(f"a {reply.status} that caches keep")
        for word in (
            str(self._file.parent),
            "site-packages",
            "Traceback (most",
            "root:x:0",
        ):
            if word.encode() in reply.body:
                faults.append(f"the answer tells {word!r}")
        return faults

    def standing(self) -> list[str]:
        """Return the faults of the server: changes of the file or its folder,
        responses, memory.
        """
        faults = (
            []
            if self._state() == self._before
            else ["the file or its folder has changed"]
        )
        first = self.ask("/")
        if first.status != 200:
            faults.append(f"the first page is a {first.status}")
        if (peak := self.peak_megabytes()) > MOST_MEGABYTES:
            faults.append(f"a process held {peak:.0f} MB")
        return faults

    def idle(self, within: float = PATIENCE) -> bool:
        """Return whether the server becomes idle."""
        return becomes_idle(self.cpu_seconds, within)

    def _state(self) -> tuple[str, list[str]]:
        digest = hashlib.sha256(self._file.read_bytes()).hexdigest()
        return digest, sorted(path.name for path in self._file.parent.iterdir())


def any_address(network: str) -> str:
    """Return a random address of a visitor in a network, such as `198.51`."""
    return f"{network}.{random.randrange(256)}.{random.randrange(256)}"


def field(name: str, value: str) -> str:
    """Return a field of a query string with as little encoding as possible."""
    return f"{name}={quote_plus(value, safe=SHORT, errors='surrogatepass')}"


def require_short(address: str) -> str:
    """Return an address; `ValueError` if the server refuses it because of its length
    alone.
    """
    if len(address) > LONGEST_ADDRESS:
        raise ValueError(
            f"{address[:80]} has {len(address):,} characters: it would test nothing"
        )
    return address


@contextmanager
def serving(
    file: Path, *, plain: bool = False, is_proxied: bool = True
) -> Iterator[Target]:
    """Serve a file while the context lasts.

    Args:
        file: the database.
        plain: whether Datasette serves it without this program's plugin and its
            defences.
        is_proxied: whether a proxy may be before the server, which then takes any host.
    """
    port = free_port()
    process = (
        start_datasette(file, port)
        if plain
        else start(file, port, is_proxied=is_proxied)
    )
    try:
        wait_until_up(port, process)
        target = Target(file, process.pid, port, plain=plain)
        # The server compiles templates when its first process answers already: this
        # time is not that of the first attack.
        target.idle()
        yield target
    finally:
        stop(process)
