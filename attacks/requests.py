"""Attacks by single requests: hostile SQL, odd parameters, raw bytes and repeated
fields.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from attacks.odd_requests import NAMES, ODD_PATHS, PATHS, RAW, REPEATED, SQL, VALUES
from attacks.outcome import Outcome, until
from attacks.statements import LARGE, SLOW, TELLING, WRITES
from attacks.target import Reply, Target, field, require_short, status_of
from spack_cache_db.site.http.checks import LONGEST_ADDRESS

SECONDS = 3.0
"""Processor time that no page may exceed, with a statement of the longest time."""
MANY = 600
"""Fields of a query string that repeats them."""
TABLES = ("/spack-cache/stacks", "/spack-cache/listings", "/package/hdf5", "/find")
"""Pages whose fields are repeated."""


def sql(target: Target, seconds: float) -> Outcome:
    """Send every statement as JSON, in random order."""
    outcome = Outcome("hostile SQL")
    slowest = 0.0
    statements = [*WRITES, *TELLING, *LARGE, *SLOW]
    random.Random(1).shuffle(statements)
    for statement in until(seconds, statements):
        address = f"{SQL}.json?{field('sql', statement)}"
        reply = target.ask(require_short(address))
        slowest = max(slowest, reply.cpu_seconds)
        faults = target.reply_faults(reply)
        if statement in WRITES and reply.status not in (400, 403):
            faults.append(f"was answered with {reply.status}")
        faults += reply.slowness(SECONDS)
        outcome.judge(statement, faults)
        if reply.status == 503:
            # The server may start another process: its time is not that of the next
            # statement.
            target.idle()
    outcome.faults += target.server_faults()
    outcome.note = f"at most {slowest:.1f} s of CPU, {target.peak_megabytes():.0f} MB"
    return outcome


def parameters(target: Target, seconds: float) -> Outcome:
    """Send odd values of fields, at random with a fixed seed, then odd paths and raw
    bytes.
    """
    outcome = Outcome("parameters")
    for address in until(seconds * 0.7, _addresses(random.Random(2))):
        reply = target.ask(address)
        faults = target.reply_faults(reply) + _form_faults(address, reply)
        outcome.judge(address, faults + reply.slowness(SECONDS))
    for address in until(seconds * 0.2, ODD_PATHS):
        reply = target.ask(address)
        faults = target.reply_faults(reply) + _form_faults(address, reply)
        outcome.judge(address, faults)
    for data in until(seconds * 0.1, RAW):
        status = status_of(target.send(data, is_all=True))
        faults = []
        if status.startswith("5"):
            faults.append(f"status {status}")
        outcome.judge(repr(data[:80]), faults)
    outcome.faults += target.server_faults()
    return outcome


def repetition(target: Target, seconds: float) -> Outcome:
    """Repeat one field hundreds of times, or send hundreds of different ones."""
    outcome = Outcome("repetition")
    before = target.peak_megabytes()
    for address in until(seconds, _repetitions()):
        reply = target.ask(address)
        outcome.judge(address, target.reply_faults(reply) + reply.slowness(SECONDS))
    outcome.faults += target.server_faults()
    outcome.note = f"{target.peak_megabytes() - before:.0f} MB more"
    return outcome


def _addresses(chance: random.Random) -> Iterator[str]:
    """Yield addresses with one to three odd fields, without end."""
    while True:
        path = chance.choice(PATHS)
        fields: list[str] = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            fields.append(field(chance.choice(NAMES), chance.choice(VALUES)))
        # Several long values would be refused for their length alone.
        while len(path) + len("?") + len("&".join(fields)) > LONGEST_ADDRESS:
            fields.pop()
        yield f"{path}?{'&'.join(fields)}"


def _repetitions() -> Iterator[str]:
    """Yield addresses with equal fields, and then with different ones."""
    for repeated in REPEATED:
        for path in TABLES:
            yield f"{path}?{'&'.join([repeated] * MANY)}"
    for repeated in REPEATED:
        fields = [f"{repeated}{number}" for number in range(MANY)]
        for path in TABLES:
            yield f"{path}?{'&'.join(fields)}"


def _form_faults(address: str, reply: Reply) -> list[str]:
    """Return the faults in the form of a response: an empty one, a redirect away."""
    faults = []
    if reply.status in (400, 404) and len(reply.body) < 15:
        faults.append(f"a {reply.status} without a sentence")
    path, _, _ = address.partition("?")
    if reply.status == 200 and path.endswith(".csv") and not reply.body.strip():
        faults.append("a CSV without a head")
    location = reply.headers.get("location", "")
    host, _, _ = location.partition("/")
    if location.startswith(("//", "/\\")) or "example.org" in host:
        faults.append(f"leads to {location[:80]}")
    return faults
