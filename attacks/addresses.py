"""Other spellings of addresses, which a server may read in another way than a proxy
does.
"""

from __future__ import annotations

from collections.abc import Iterator

from attacks.outcome import Outcome, until
from attacks.requests import SECONDS
from attacks.target import Reply, Target, status_of

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
    # Escapes of Datasette.
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
    # Escapes of the web.
    "a percent of a percent": "%2561",
    "a percent of nothing": "%00",
    "half a percent": "%",
    "half a percent, one digit": "%6",
    "a percent of no digit": "%u0061",
    "half a character": "%C3",
    "an overlong slash": "%C0%AF",
    # Parts of a path.
    "a slash": "%2F",
    "a slash the other way": "%5C",
    "two dots": "..",
    "two dots, encoded": "%2E%2E",
    "two dots with a parameter": "..;",
    "a parameter": "a;b=c",
    # Characters that are not shown, or have a meaning.
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
PATTERNS = (
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
"""Addresses; `{}` stands for a name."""
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
    whole_file = target.ask(DOWNLOAD).body

    # Only one address is the file.
    for spelling in _spellings(DOWNLOAD):
        reply = target.ask(spelling)
        faults = target.reply_faults(reply)
        if reply.body == whole_file and "%" not in spelling:
            faults.append("is the file")
        outcome.judge(spelling, faults)

    # No other spelling opens a closed page.
    for path in CLOSED:
        is_open = target.ask(path).status == 200
        for spelling in _spellings(path):
            reply = target.ask(spelling)
            faults = target.reply_faults(reply)
            if reply.status == 200 and not is_open:
                faults.append("is open")
            outcome.judge(spelling, faults)

    # Targets of a request that are no path, and odd names in paths.
    for text in TARGETS:
        outcome.judge(repr(text), _target_faults(target, text, whole_file))
    for title, name in until(seconds, NAMES.items()):
        for pattern in PATTERNS:
            address = pattern.format(name)
            reply = target.ask(address)
            outcome.judge(f"{title}: {address}", _name_faults(target, reply, title))
    outcome.faults += target.server_faults()
    return outcome


def _spellings(path: str) -> Iterator[str]:
    """Yield other spellings of a path."""
    # Each character but the first one in the escapes of Datasette and of the web.
    for position in range(1, len(path)):
        before = path[:position]
        after = path[position + 1 :]
        code = ord(path[position])
        for escape in (
            f"~{code:02X}",
            f"~{code:02x}",
            f"%{code:02x}",
            f"%7E{code:02X}",
        ):
            yield before + escape + after

    # Something added to its end, and to its beginning.
    for end in ("/", ";a", "%20", ".", "%00", "%2e", "~", ".json"):
        yield path + end
    for start in ("/.", "/a/..", "/", "/%2e", "/a/%2e%2e"):
        yield start + path
    yield path.upper()
    yield path.replace("/", "/./")


def _name_faults(target: Target, reply: Reply, title: str) -> list[str]:
    """Return the faults of the response to a path with an odd name."""
    faults = target.reply_faults(reply)
    if title.startswith("too long") and reply.status not in (404, 414):
        faults.append(f"was answered with {reply.status}")
    faults += reply.slowness(SECONDS)
    if "x" in reply.headers:
        faults.append("has a header of the visitor")
    location = reply.headers.get("location", "/")
    if location.startswith(("//", "/\\", "http")):
        faults.append(f"leads to {location[:80]}")
    return faults


def _target_faults(target: Target, text: str, whole_file: bytes) -> list[str]:
    """Return the faults of the response to a request with this target."""
    lines = [f"GET {text} HTTP/1.1", "Host: localhost", "Connection: close", "", ""]
    answer = target.send("\r\n".join(lines).encode("latin-1"))
    _, _, body = answer.partition(b"\r\n\r\n")
    faults = []
    if body == whole_file:
        faults.append("is the file")
    # The server may close the connection without an answer.
    if answer and status_of(answer) not in ("400", "404"):
        faults.append(f"was answered with {status_of(answer)}")
    return faults
