"""Other spellings of addresses, which a server may read in another way than a proxy
does.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from attacks.builder import enough
from attacks.outcome import Outcome
from attacks.requests import SECONDS
from attacks.target import PATIENCE, Target

DOWNLOAD = "/spack-cache.db"
CLOSED = (
    "/-/metrics",
    "/-/threads",
    "/-/databases.json",
    "/-/actor.json",
    "/-/permissions",
)
"""Addresses that only their own spelling may open, if any."""
NAMES = {
    "too long": "a" * 201,
    "too long, encoded": "%61" * 201,
    "too long, of two bytes": "%C3%A9" * 201,
    "a tilde": "~",
    "a tilde at the end": "a~",
    "a tilde of a letter": "~61",
    "a tilde of a line": "~2D",
    "a tilde of a small digit": "~2d",
    "a tilde of a slash": "~2F..~2F..~2Fetc~2Fpasswd",
    "a tilde of a tilde": "~7E2D",
    "a tilde of nothing": "~00",
    "a tilde, encoded": "%7E2D",
    "a tilde of no digit": "~GG",
    "a tilde of two bytes": "~C3~A9",
    "a tilde of half a character": "~C3",
    "a percent of a percent": "%2561",
    "a percent of nothing": "%00",
    "half a percent": "%",
    "half a percent, one digit": "%6",
    "a percent of no digit": "%u0061",
    "half a character": "%C3",
    "an overlong slash": "%C0%AF",
    "a slash": "%2F",
    "a slash the other way": "%5C",
    "two dots": "..",
    "two dots, encoded": "%2E%2E",
    "two dots with a parameter": "..;",
    "a parameter": "a;b=c",
    "a new line": "a%0D%0AX:1",
    "a tab": "a%09",
    "a blank": "%20",
    "an end of a text": "a%1A",
    "a direction": "%E2%80%AE",
    "half of a pair": "%ED%A0%80",
    "a hash": "%23",
    "a question": "%3F",
    "a plus": "+",
}
"""Names in a path, by what is odd about them."""
PLACES = (
    "/{}",
    "/{}.db",
    "/package/{}",
    "/package/{}.json",
    "/package/{}/",
    "/spec/{}",
    "/spec/{}.json",
    "/release/{}",
    "/stack/{}",
    "/diff/{}...develop",
    "/diff/develop...{}.json",
    "/diff/develop:{}...develop",
    "/coverage/{}",
    "/badge/{}.svg",
    "/spack-cache/{}",
    "/spack-cache/{}.json?x=1",
    "/spack-cache/packages/{}",
    "/spack-cache/packages/{}.json",
    "/spack-cache/packages/1.{}",
    "/static/{}",
    "/-/static/{}",
    "/-/{}",
)
TARGETS = (
    "*",
    "spack-cache.db",
    "?q=a",
    "#",
    "http://",
    "http:/spack-cache.db",
    "https://localhost/spack-cache.db",
    "http://localhost/spack-cache.db",
    "//localhost/spack-cache.db",
    "//spack-cache.db",
    "/\\spack-cache.db",
    "\\spack-cache.db",
    ";/spack-cache.db",
    "localhost:80",
    "/\xe9",
    "/\x7f",
    "javascript:alert(1)",
)
"""Targets of a request as bytes: most do not begin with one slash."""


def addresses(target: Target, seconds: float) -> Outcome:
    """Ask for other spellings of the download and of closed pages, and for odd
    names.
    """
    outcome = Outcome("addresses")
    began = time.monotonic()
    whole = target.ask(DOWNLOAD).body
    closed = {path: target.ask(path).status for path in CLOSED}
    # Only one address is the file, and no other spelling opens a closed page.
    for path in (DOWNLOAD, *CLOSED):
        for spelling in _spellings(path):
            reply = target.ask(spelling)
            faults = target.betrayals(reply)
            if path == DOWNLOAD and reply.body == whole and "%" not in spelling:
                faults.append("is the file")
            if path != DOWNLOAD and reply.status == 200 != closed[path]:
                faults.append("is open")
            outcome.judge(spelling, faults)
    for data in TARGETS:
        outcome.judge(repr(data), _target_faults(target, data, whole))
    for title, name in NAMES.items():
        for place in PLACES:
            address = place.format(name)
            reply = target.ask(address)
            faults = target.betrayals(reply)
            if title.startswith("too long") and reply.status not in (404, 414):
                faults.append(f"was answered with {reply.status}")
            if reply.cpu_seconds > SECONDS:
                faults.append(f"{reply.cpu_seconds:.1f} s of CPU")
            if "x" in reply.headers:
                faults.append("has a header of the visitor")
            if reply.headers.get("location", "/").startswith(("//", "/\\", "http")):
                faults.append(f"leads to {reply.headers['location'][:80]}")
            outcome.judge(f"{title}: {address}", faults)
        if enough(began, seconds):
            break
    outcome.faults += target.standing()
    return outcome


def _spellings(path: str) -> Iterator[str]:
    """Yield other spellings of a path."""
    for position in range(1, len(path)):
        character = path[position]
        for escape in (f"~{ord(character):02X}", f"~{ord(character):02x}"):
            yield path[:position] + escape + path[position + 1 :]
        yield f"{path[:position]}%{ord(character):02x}{path[position + 1 :]}"
        yield f"{path[:position]}%7E{ord(character):02X}{path[position + 1 :]}"
    yield from (
        f"{path}/",
        f"{path};a",
        f"{path}%20",
        f"{path}.",
        f"{path}%00",
        f"{path}%2e",
    )
    yield from (
        f"/.{path}",
        f"/a/..{path}",
        f"/{path}",
        f"/%2e{path}",
        f"/a/%2e%2e{path}",
    )
    yield from (path.upper(), path.replace("/", "/./"), f"{path}~", f"{path}.json")


def _target_faults(target: Target, text: str, whole: bytes) -> list[str]:
    lines = [f"GET {text} HTTP/1.1", "Host: localhost", "Connection: close", "", ""]
    with socket.create_connection(
        ("127.0.0.1", target.port), timeout=PATIENCE
    ) as visitor:
        visitor.sendall("\r\n".join(lines).encode("latin-1"))
        parts = []
        while part := visitor.recv(65_536):
            parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    status = head[9:12]
    faults = ["is the file"] if body == whole else []
    if head and status not in (b"400", b"404"):
        faults.append(f"was answered with {status.decode()}")
    return faults
