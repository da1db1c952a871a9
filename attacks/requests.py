"""Attacks by single requests: hostile SQL, odd parameters, raw bytes and repeated
fields.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from datasette.app import Datasette

from attacks.outcome import Outcome
from attacks.statements import LARGE, SLOW, TELLING, WRITES
from attacks.target import PATIENCE, Reply, Target, field, require_short
from spack_cache_db.site.http.checks import LONGEST_ADDRESS

T = TypeVar("T")

SECONDS = 3.0
"""Processor time that no page may exceed, with a statement of the longest time."""
SQL = "/spack-cache" if hasattr(Datasette, "metadata") else "/spack-cache/-/query"

PATHS = [
    *("/", "/find", "/package/hdf5", "/package/", "/spec/aaaaaaa", "/release/develop"),
    *(
        "/stack/e4s",
        "/llms.txt",
        "/robots.txt",
        "/spack-cache.db",
        "/spack-cache",
        "/spack-cache.json",
    ),
    *("/spack-cache.csv", "/spack-cache/listings", "/spack-cache/listings.json"),
    *("/spack-cache/listings.csv", "/spack-cache/builds", "/spack-cache/builds.csv"),
    *("/spack-cache/specs/1", "/spack-cache/specs/1.json", "/spack-cache/specs/1.blob"),
    *(
        "/spack-cache/listings/1",
        "/spack-cache/configurations_fts",
        "/spack-cache/most_hashes",
    ),
    *(
        "/spack-cache/most_hashes.json",
        "/spack-cache/most_hashes.csv",
        "/spack-cache/nope",
    ),
    *(
        SQL,
        f"{SQL}.json",
        f"{SQL}.csv",
        f"{SQL}.blob",
        "/-/versions.json",
        "/-/jump.json",
    ),
    *(
        "/-/metadata",
        "/-/settings",
        "/-/threads",
        "/-/static/app.css",
        "/static/parts.css",
    ),
    *(
        "/packages",
        "/releases",
        "/stacks",
        "/about",
        "/suggest.json",
        "/find.json",
        "/find.csv",
    ),
    *(
        "/cover",
        "/cover.json",
        "/cover.csv",
        "/package/hdf5/",
        "/package/hdf5.json",
        "/diff",
    ),
    *(
        "/diff/develop...v0.23.1",
        "/diff/develop:e4s...develop.json",
        "/diff/develop...a.csv",
    ),
    *(
        "/feed.atom",
        "/find.atom",
        "/badge/hdf5.svg",
        "/coverage/develop",
        "/packages.json",
    ),
    *(
        "/packages.csv",
        "/releases.json",
        "/stacks.csv",
        "/sitemap.xml",
        "/opensearch.xml",
    ),
    *(
        "/spack-cache/-/schema",
        "/spack-cache/-/queries",
        "/spack-cache/builds/-/definition",
    ),
]
NAMES = [
    *(
        "_next",
        "_sort",
        "_sort_desc",
        "_through",
        "_where",
        "_size",
        "_shape",
        "_facet",
        "_extra",
    ),
    *(
        "_facet_date",
        "_facet_array",
        "_facet_size",
        "_search",
        "_search_name",
        "_searchmode",
    ),
    *(
        "_col",
        "_nocol",
        "_json",
        "_label",
        "_labels",
        "_trace",
        "_nofacet",
        "_nocount",
        "_stream",
    ),
    *(
        "_dl",
        "_header",
        "_filter_column",
        "_filter_op",
        "_filter_value",
        "_ttl",
        "_timelimit",
    ),
    *(
        "_extras",
        "_blob_column",
        "_blob_hash",
        "_hide_sql",
        "_sort_by_desc",
        "sql",
        "spec",
        "q",
    ),
    *(
        "has",
        "lacks",
        "sort",
        "kind",
        "dependencies",
        "here",
        "format",
        "limit",
        "offset",
    ),
    *(
        "page",
        "release",
        "stack",
        "variant",
        "version",
        "hide",
        "versions",
        "common",
        "name",
    ),
    *(
        "behind",
        "missing",
        "explicit",
        "host",
        "target",
        "compiler",
        "os",
        "open",
        "spack",
        "old",
    ),
    *("new", "package", "order", "platform"),
    *(
        "id__gt",
        "id__in",
        "id__isnull",
        "hash__like",
        "hash__date",
        "stacks__arraycontains",
    ),
    *(
        "stacks__arraynotcontains",
        "id__notin",
        "name__nope",
        "__",
        "_",
        "rowid",
        "release__exact",
    ),
]
VALUES = [
    *(
        "",
        "abc",
        "-1",
        "0",
        "1.5",
        "1e999",
        "nan",
        "9" * 5000,
        "-" + "9" * 5000,
        "9" * 19,
        "[1]",
    ),
    *(
        "{}",
        "[]",
        "null",
        '{"table": 1}',
        '{"table": "builds"}',
        "[" * 3000,
        '{"a":' * 2500,
    ),
    *(
        '{"table": "listings", "column": ["a"], "value": {}}',
        "\0",
        "a\0b",
        "\ud800",
        "\U0001f600",
    ),
    *(
        "'",
        '"',
        "';--",
        "a,b,c",
        ",",
        "name",
        "select 1",
        "select nope",
        "on",
        "~",
        "~00",
        "~ff",
    ),
    *(
        "csv",
        "objects",
        "array",
        "max",
        "\r\nX: 1",
        "*",
        "AND",
        "NEAR(",
        "\n",
        "../../etc/passwd",
    ),
    *(
        "^a" * 5_000,
        "%a" * 5_000,
        "@1:2," * 5_000,
        "+a" * 7_000,
        "a " * 15_000,
        "%gcc ^hdf5",
    ),
    *(
        "hdf5 ^mpi",
        "^c",
        "%[deptypes=build] a",
        "[a, " * 4_000,
        "- a: [{matrix: [[]]}]\n" * 800,
    ),
    *(
        "spack:\n specs: [a]\n include: [a, b]",
        "develop...develop",
        "target=:zen3",
        "zen4 cuda",
    ),
    *(
        "<script>",
        "%s%n",
        "{{ 7 * 7 }}",
        "hdf5",
        "+mpi",
        "a" * 20_000,
        "develop",
        "é" * 3000,
        " ",
    ),
]
ODD_PATHS = [
    *(
        "//example.org/",
        "//example.org/%2e%2e",
        "/\\example.org/",
        "/%5cexample.org/",
        "/%00",
        "/%",
    ),
    *(
        "/%ff",
        "/%zz",
        "/..%2f..%2fetc/passwd",
        "/static/../../etc/passwd",
        "/static/%00",
    ),
    *(
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static//etc/passwd",
        "/static/" + "a" * 5000,
    ),
    *(
        "/static/" + "a/" * 2500,
        "/-/static/" + "a" * 5000,
        "/static/parts.css/x",
        "/static/",
    ),
    *(
        "/package/" + "a" * 20_000,
        "/package/%00",
        "/package/a%2Fb",
        "/spec/" + "a" * 9000,
    ),
    *("/spack-cache/~00", "/spack-cache/specs/~00", "/spack-cache/specs/" + "9" * 5000),
    *(
        "/spack-cache/listings/1,2,3,4",
        "/spack-cache/specs.nope",
        "/spack-cache.nope",
        "/x.db",
    ),
    *(
        "/..%2fx.db",
        "/%2fetc%2fpasswd.db",
        "/" + "a" * 31_000,
        "/" + "/".join("a" * 9000),
        "/~~~",
    ),
]
REPEATED = [
    *(
        "_facet=name",
        "_facet_date=first_seen",
        "_facet_array=stacks",
        "_sort=name",
        "_col=name",
    ),
    *(
        "_where=1",
        "_search=a",
        "name=a",
        "_through={}",
        "name__contains=a",
        "_nocol=name",
    ),
    *("variant=%2Bmpi", "hide=os", "q=hdf5", "_extra=count", "_label=release", "x"),
]
RAW = [
    *(
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    *(
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"G\0T / HTTP/1.1\r\n\r\n",
    ),
    *(
        b"GET http://example.org/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\r\n" * 99,
    ),
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
    b"GET /?" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-" + b"9" * 5000 + b"\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n",
]


def sql(target: Target, seconds: float) -> Outcome:
    """Send every statement as JSON, in random order."""
    outcome = Outcome("hostile SQL")
    longest = 0.0
    statements = random.Random(1).sample(WRITES + TELLING + LARGE + SLOW, k=len(_ALL))
    for statement in _until(seconds, statements):
        reply = target.ask(require_short(f"{SQL}.json?{field('sql', statement)}"))
        faults = target.betrayals(reply)
        if statement in WRITES and reply.status not in (400, 403):
            faults.append(f"was answered with {reply.status}")
        outcome.judge(statement, faults + _cost(reply))
        longest = max(longest, reply.cpu_seconds)
        if reply.status == 503:
            # The server may start another process: its time is not that of the next
            # statement.
            target.idle()
    outcome.faults += target.standing()
    outcome.note = f"at most {longest:.1f} s of CPU, {target.peak_megabytes():.0f} MB"
    return outcome


def parameters(target: Target, seconds: float) -> Outcome:
    """Send odd values of fields, at random with a fixed seed, then odd paths and raw
    bytes.
    """
    outcome, chosen = Outcome("parameters"), random.Random(2)
    for address in _until(seconds * 0.7, _addresses(chosen)):
        reply = target.ask(address)
        outcome.judge(
            address, target.betrayals(reply) + _shape(address, reply) + _cost(reply)
        )
    for address in _until(seconds * 0.2, ODD_PATHS):
        reply = target.ask(address)
        outcome.judge(address, target.betrayals(reply) + _shape(address, reply))
    for data in _until(seconds * 0.1, RAW):
        outcome.judge(repr(data[:80]), _raw(target, data))
    outcome.faults += target.standing()
    return outcome


def repetition(target: Target, seconds: float) -> Outcome:
    """Repeat one field hundreds of times, or send hundreds of different ones."""
    outcome = Outcome("repetition")
    before = target.peak_megabytes()
    tables = ("/spack-cache/stacks", "/spack-cache/listings", "/package/hdf5", "/find")
    several = [
        f"{path}?"
        + "&".join([f"{field}{number if vary else ''}" for number in range(600)])
        for vary in (False, True)
        for field in REPEATED
        for path in tables
    ]
    for address in _until(seconds, several):
        reply = target.ask(address)
        outcome.judge(address, target.betrayals(reply) + _cost(reply))
    outcome.faults += target.standing()
    outcome.note = f"{target.peak_megabytes() - before:.0f} MB more"
    return outcome


_ALL = (*WRITES, *TELLING, *LARGE, *SLOW)


def _until(seconds: float, items: Iterable[T]) -> Iterator[T]:
    """Yield until this time has passed."""
    end = time.monotonic() + seconds
    for item in items:
        yield item
        if time.monotonic() > end:
            return


def _addresses(chosen: random.Random) -> Iterator[str]:
    while True:
        fields = islice(
            zip(_endless(chosen, NAMES), _endless(chosen, VALUES), strict=False), 3
        )
        pairs = [field(name, value) for name, value in fields][
            : chosen.choice((1, 1, 1, 2, 3))
        ]
        path = chosen.choice(PATHS)
        # Several long values would be refused for their length alone.
        while len(address := f"{path}?{'&'.join(pairs)}") > LONGEST_ADDRESS:
            pairs.pop()
        yield address


def _endless(chosen: random.Random, texts: Sequence[str]) -> Iterator[str]:
    while True:
        yield chosen.choice(texts)


def _cost(reply: Reply) -> list[str]:
    return [f"{reply.cpu_seconds:.1f} s of CPU"] if reply.cpu_seconds > SECONDS else []


def _shape(address: str, reply: Reply) -> list[str]:
    """Return the faults of the response to an odd URL."""
    faults = []
    if reply.status in (400, 404) and len(reply.body) < 15:
        faults.append(f"a {reply.status} without a sentence")
    if (
        reply.status == 200
        and address.partition("?")[0].endswith(".csv")
        and not reply.body.strip()
    ):
        faults.append("a CSV without a head")
    leads = reply.headers.get("location", "")
    if leads.startswith(("//", "/\\")) or "example.org" in leads.partition("/")[0]:
        faults.append(f"leads to {leads[:80]}")
    return faults


def _raw(target: Target, data: bytes) -> list[str]:
    with socket.create_connection(
        ("127.0.0.1", target.port), timeout=PATIENCE
    ) as visitor:
        try:
            visitor.sendall(data)
            visitor.shutdown(socket.SHUT_WR)
            answer = visitor.recv(65536)
        except OSError:
            return []
    status = answer[9:12]
    return [f"status {status.decode()}"] if status.startswith(b"5") else []
