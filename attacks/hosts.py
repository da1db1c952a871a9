"""Names by which a server on loopback must not answer, because a website could own
them.
"""

from __future__ import annotations

from pathlib import Path

from attacks.outcome import Outcome, until
from attacks.target import Target, serving, status_of

STRANGE = (
    "evil.example",
    "evil.example.",
    "EVIL.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:127.0.0.1",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost@evil.example",
    "localhost,evil.example",
    "evil.example, localhost",
    "evillocalhost",
    "localhost-",
    "localhost..",
    "xn--localhost",
    "127.0.0.1\t.evil.example",
    "[evil.example]",
    "[::1].evil.example",
    "[::2]",
    "::1.evil.example",
    "0.0.0.0",
    "10.0.0.1",
    "169.254.169.254",
    "192.168.1.1:8001",
    "128.0.0.1",
    "2130706434",
    "",
    ":",
    "*",
    "_",
)
"""Texts of the header `Host` that do not name this machine."""
OWN = (
    "localhost",
    "LOCALHOST:1",
    "127.0.0.1",
    "127.9.9.9:80",
    "[::1]",
    "[::1]:1",
    "a.localhost",
)
"""Texts that name this machine, in the ways in which browsers write them."""
PATHS = (
    "/",
    "/find.json?q=hdf5",
    "/spack-cache/packages.json",
    "/spack-cache.db",
    "/-/metrics",
)


def hosts(file: Path, seconds: float) -> Outcome:
    """Ask a server that is for its own machine, by names of others."""
    outcome = Outcome("hosts")
    with serving(file, is_proxied=False) as target:
        # Names of this machine are answered.
        for host in OWN:
            status = _status(target, "/", f"Host: {host}")
            faults = []
            if status != 200:
                faults.append(f"was answered with {status}")
            outcome.judge(f"the first page of {host}", faults)

        for path in until(seconds, PATHS):
            # Names of others are not.
            for host in STRANGE:
                faults = _faults(target, path, f"Host: {host}")
                outcome.judge(f"{path} of {host!r}", faults)
            # Two names, no name, and a name that only the target has.
            for fields in (("Host: localhost", "Host: evil.example"), ("X: a",)):
                outcome.judge(f"{path} with {fields}", _faults(target, path, *fields))
            absolute = f"http://evil.example{path}"
            outcome.judge(absolute, _faults(target, absolute, "Host: localhost"))
        outcome.faults += target.server_faults()
    return outcome


def _faults(target: Target, path: str, *fields: str) -> list[str]:
    """Return a fault if the server answers this request."""
    status = _status(target, path, *fields)
    if status in (400, 421):
        return []
    return [f"was answered with {status}"]


def _status(target: Target, path: str, *fields: str) -> int:
    """Return the status of a response; 400 if the server closes the connection."""
    lines = [f"GET {path} HTTP/1.1", *fields, "Connection: close", "", ""]
    answer = target.send("\r\n".join(lines).encode("latin-1"))
    if not answer:
        return 400
    return int(status_of(answer))
