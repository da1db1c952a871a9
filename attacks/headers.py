"""Headers that are long or many, and parts of a request that a cache may keep without a
bound.
"""

from __future__ import annotations

from collections.abc import Callable

from attacks.odd_requests import SQL
from attacks.outcome import Outcome, until
from attacks.requests import SECONDS
from attacks.target import Reply, Target, field
from benchmarks.targets import with_query

MOST_GROWTH = 80.0
"""Megabytes of all processes together that requests which differ in one part may
add.
"""
REQUESTS = 400
"""Requests for each part: 6 MB of headers, and as many pages."""
MOST_HEADERS = 16_000
"""Characters of headers that the server may answer."""
LONG = 15_000
"""Characters of a header that the server still reads."""
PATHS = (
    "/",
    "/find?q=hdf5",
    "/spack-cache/packages.json",
    "/spack-cache.db",
    f"{SQL}.json?{field('sql', 'select 1')}",
)
KEPT = (
    "/find.json?q=hdf5",
    "/spack-cache/packages.json?_size=5",
    "/feed.atom",
    "/about",
)
"""Pages whose parts a server might keep."""

Part = Callable[[int], tuple[str, dict[str, str]]]
"""A function that returns the query string and the headers of a request by its number:
they differ in one part.
"""


def _header(name: str, ending: str = "") -> Part:
    """Return a part: a long header with another text in each request."""

    def part(number: int) -> tuple[str, dict[str, str]]:
        text = f"a{number}{'a' * LONG}{ending}"
        return "", {name: text}

    return part


def _field_of(name: str, filling: str) -> Part:
    """Return a part: a long field with another text in each request."""

    def part(number: int) -> tuple[str, dict[str, str]]:
        return f"{name}={number}{filling * LONG}", {}

    return part


def _encoded(number: int) -> tuple[str, dict[str, str]]:
    """Write a text with more encoding than it needs."""
    letter = ord("a") + number % 26
    return f"q=%{letter:02x}{'%61' * 200}{number}", {}


def _order(number: int) -> tuple[str, dict[str, str]]:
    """Write the same fields in another order."""
    fields = [
        f"release={number % 7}",
        f"stack={number % 11}",
        f"os={number % 13}",
        "sort=name",
    ]
    start = number % len(fields)
    return "&".join(fields[start:] + fields[:start]), {}


PARTS: dict[str, Part] = {
    "hosts": _header("Host", ".localhost"),
    "ports": _header("Host", ".localhost:80"),
    "types that are accepted": _header("Accept"),
    "languages": _header("Accept-Language"),
    "encodings": _header("Accept-Encoding"),
    "cookies": _header("Cookie", "=1"),
    "browsers": _header("User-Agent"),
    "pages before": _header("Referer"),
    "origins": _header("Origin"),
    "logins": _header("Authorization"),
    "addresses before the proxy": _header("X-Forwarded-For"),
    "schemes before the proxy": _header("X-Forwarded-Proto"),
    "tags": _header("If-None-Match"),
    # Fields of the query string.
    "unknown fields": _field_of("_", "a"),
    "fields of Datasette": _field_of("_ttl", "0"),
    "orders of fields": _order,
    "encoded fields": _encoded,
}
"""Parts of a request that visitors choose, by name."""

LONG_HEADERS: dict[str, dict[str, str]] = {
    # Cookies, and what Datasette keeps in them.
    "a cookie of many parts": {"Cookie": "; ".join(f"a{n}=1" for n in range(12_000))},
    "a cookie of 2,000 parts": {"Cookie": "; ".join(f"a{n}=1" for n in range(1_500))},
    "a cookie of one name": {"Cookie": ";".join(["a=1"] * 3_500)},
    "a cookie without names": {"Cookie": ";" * LONG},
    "a cookie of quotes": {"Cookie": 'a="' + "\\" * LONG + '"'},
    "a cookie of octal digits": {"Cookie": 'a="' + "\\041" * 3_000 + '"'},
    "a login that is not signed": {"Cookie": "ds_actor=" + "." * LONG},
    "messages that are not signed": {"Cookie": "ds_messages=" + "a." * (LONG // 2)},
    # Lists of types, languages and encodings.
    "many types": {"Accept": ",".join(["a/b;q=0.1"] * 1_500)},
    "types of blanks": {"Accept": "text/html" + " ," * (LONG // 2)},
    "one long type": {"Accept": "a" * LONG + "/json"},
    "many languages": {"Accept-Language": ",".join(["a-b;q=0.1"] * 1_500)},
    "many encodings": {"Accept-Encoding": ",".join(["gzip;q=0"] * 1_500)},
    # Tags and ranges of a response that the client has.
    "many tags": {"If-None-Match": ",".join(['W/"a"'] * 2_000)},
    "a tag of quotes": {"If-None-Match": '"' * LONG},
    "a tag of blanks": {"If-None-Match": "W/" + " " * LONG + "a"},
    "many ranges": {"Range": "bytes=" + ",".join(["0-0"] * 3_500)},
    "ranges in reverse": {
        "Range": "bytes=" + ",".join(f"{n}-" for n in range(2_500, 0, -1))
    },
    "a range of digits": {"Range": "bytes=0-" + "9" * LONG},
    "a range from the end": {"Range": "bytes=-" + "9" * LONG},
    "a range of other digits": {"Range": "bytes=\xb2-\xb3"},
    "a tag and a range": {"If-Range": '"' * 7_000, "Range": "bytes=" + "0-0," * 1_800},
    "a day that is none": {"If-Modified-Since": "9" * LONG},
    # What proxies write.
    "many addresses": {"X-Forwarded-For": ",".join(["1.1.1.1"] * 1_900)},
    "addresses that are none": {"X-Forwarded-For": "[" * LONG},
    "many schemes": {"X-Forwarded-Proto": ",".join(["https"] * 2_500)},
    "a scheme that is a script": {"X-Forwarded-Proto": "javascript"},
    # Logins, bytes and many headers.
    "a long login": {"Authorization": "Bearer " + "a" * LONG},
    "a login of blanks": {"Authorization": "Basic" + " " * LONG},
    "bytes": {"Accept": "\xff" * LONG},
    "many headers": {f"X-{number}": "a" * 100 for number in range(80)},
    "two hundred headers": {f"X-{number}": "a" for number in range(200)},
    # Lengths of a form.
    "a length in other digits": {"Content-Length": "\xb2"},
    "a length with a sign": {"Content-Length": "+1"},
    "a length with a line": {"Content-Length": "1_0"},
    "a long length": {"Content-Length": "9" * 5_000},
    # Other methods, addresses and protocols.
    "an upgrade": {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "a",
    },
    "an expectation": {"Expect": "100-continue"},
    "another method": {"X-HTTP-Method-Override": "DELETE"},
    "another address": {"X-Original-URL": "/-/metrics", "X-Rewrite-URL": "/-/metrics"},
}
"""Headers that cost time in servers, or that they misread."""


def headers(target: Target, seconds: float) -> Outcome:
    """Send long headers, then many requests that differ in one part each."""
    outcome = Outcome("headers")
    slowest = 0.0
    for name, fields in until(seconds / 2, LONG_HEADERS.items()):
        for path in PATHS:
            reply = target.ask(path, "GET", None, **fields)
            slowest = max(slowest, reply.cpu_seconds)
            outcome.judge(f"{name} at {path}", _faults(target, reply, fields))

    most_growth = 0.0
    seconds_of_part = seconds / 2 / len(PARTS)
    for name, part in PARTS.items():
        growth = _growth(target, part, seconds_of_part)
        most_growth = max(most_growth, growth)
        faults = []
        if growth > MOST_GROWTH:
            faults.append(f"they hold {growth:.0f} MB more")
        outcome.judge(f"pages by {name}", faults)
    outcome.faults += target.server_faults()
    outcome.note = f"at most {slowest:.1f} s of CPU, {most_growth:.0f} MB more"
    return outcome


def _faults(target: Target, reply: Reply, fields: dict[str, str]) -> list[str]:
    """Return the faults of the response to a request with these headers."""
    faults = target.reply_faults(reply)
    # An answer to the length of a form may be a closed connection: no form is sent.
    if "Content-Length" in fields and reply.status == 0:
        faults = []
    faults += reply.slowness(SECONDS)
    size = sum(len(name) + len(text) for name, text in fields.items())
    if size > MOST_HEADERS and reply.status < 400:
        faults.append(f"was answered with {reply.status}")
    if b"javascript:" in reply.body:
        faults.append("the answer has a scheme of the visitor")
    return faults


def _growth(target: Target, part: Part, seconds: float) -> float:
    """Return the megabytes that requests add which differ in one part only."""
    _ask_all(target, part, range(20), seconds)
    before = target.resident_megabytes()
    _ask_all(target, part, range(20, 20 + REQUESTS), seconds)
    return target.resident_megabytes() - before


def _ask_all(target: Target, part: Part, numbers: range, seconds: float) -> None:
    """Send a request for each number, until the time has passed."""
    for number in until(seconds, numbers):
        query, fields = part(number)
        address = KEPT[number % len(KEPT)]
        if query:
            address = with_query(address, query)
        target.ask(address, "GET", None, **fields)
