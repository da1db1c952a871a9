"""Sites of databases that are damaged or hostile, and what their visitors see."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import run
from attacks.databases import CHANGES, write_changed
from attacks.outcome import Outcome, until
from attacks.requests import SECONDS
from attacks.target import Reply, Target
from benchmarks.server import ServerError, free_port, start, stop, wait_until_up
from tests.site.cache import write_pages

DAMAGED = b"is damaged"
"""Words of the page that visitors of a damaged database see."""
PATHS = (
    "/",
    "/packages",
    "/releases",
    "/stacks",
    "/about",
    "/find?q=hdf5",
    "/find.json?q=*",
    "/package/hdf5",
    "/package/hdf5.json",
    "/package/zlib",
    "/release/develop",
    "/stack/e4s",
    "/diff/develop...v0.23.1",
    "/coverage/develop",
    "/feed.atom",
    "/badge/hdf5.svg",
    "/suggest.json?q=h",
    "/find.csv?q=%2Bmpi",
    "/cover.json?q=hdf5",
    "/sitemap.xml",
    "/spack-cache/builds.json",
    "/spack-cache/packages",
    "/spack-cache/listings.csv",
    "/spack-cache/build_listings?_facet=release",
    "/spack-cache/specs/1",
    "/-/health.json",
)
LONGEST_LOG = 1_000
"""Characters of a line of log."""


def hostile_sites(seconds: float) -> Outcome:
    """Serve a database that was changed in each way, and ask for pages of each kind."""
    outcome = Outcome("hostile sites")
    chance = random.Random(29)
    site_count = 0
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        good = folder / "good.db"
        bad = folder / "served" / "spack-cache.db"
        log = folder / "log"
        bad.parent.mkdir()
        run("build", write_pages(folder / "pages"), "-o", good)

        for title, change in until(seconds, cycle(CHANGES.items())):
            write_changed(good, bad, change, chance)
            try:
                with _serving(bad, log) as target:
                    site_count += 1
                    for path in PATHS:
                        reply = target.ask(path)
                        outcome.judge(f"{path} of {title}", _faults(target, reply))
            except ServerError:
                # A database that is not ours or damaged is refused with a sentence.
                outcome.judge(f"serve of {title}", [])
            outcome.judge(f"the log of {title}", _log_faults(log))
    outcome.note = f"{site_count} sites"
    return outcome


@contextmanager
def _serving(file: Path, log: Path) -> Iterator[Target]:
    """Serve a file with one process, and write its log."""
    port = free_port()
    with log.open("wb") as stream:
        one_process = ("--workers", "1")
        process = start(file, port, one_process, is_proxied=False, log=stream)
    try:
        wait_until_up(port, process)
        yield Target(file, process.pid, port)
    finally:
        stop(process)


def _faults(target: Target, reply: Reply) -> list[str]:
    """Return the faults of the response to a visitor."""
    faults = target.reply_faults(reply)
    if reply.status == 503 and DAMAGED not in reply.body:
        faults.append(f"a 503 that does not say why: {reply.body[:120]!r}")
    if b"<script>'" in reply.body or b"\x1b[" in reply.body:
        faults.append("shows markup or escapes of the database")
    return faults + reply.slowness(SECONDS)


def _log_faults(log: Path) -> list[str]:
    """Return what a log must not have: bugs, escapes of a terminal, long lines."""
    text = log.read_text(encoding="utf-8", errors="replace")
    faults = []
    for word in ("Traceback", "unexpected", "report it", "\x1b["):
        if word in text:
            position = text.index(word)
            around = text[position - 60 : position + 400]
            faults.append(f"the log has {word!r}: {around!r}")
    if any(len(line) > LONGEST_LOG for line in text.splitlines()):
        faults.append("the log has a long line")
    return faults
